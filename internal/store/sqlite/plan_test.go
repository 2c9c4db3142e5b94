package sqlite

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// scanned matches a plan that walks over all of something other than a partial
// index, which holds what is open alone.
var scanned = regexp.MustCompile(`^SCAN (operations|events|deliveries|payloads|history|entries|attempts|audits|reviews|artifacts|idempotency_keys|event_keys|tasks|.)\b`)

var partial = regexp.MustCompile(`INDEX (operations_open|operations_due|operations_ended_badly|operations_by_deadline|operations_leased|operations_waiting|reviews_open|deliveries_due|deliveries_dead|deliveries_leased|artifacts_due|artifacts_leased|events_parked|operations_kept|events_kept)`)

func plan(t *testing.T, c *conn, sql string) []string {
	t.Helper()
	var lines []string
	if err := c.each("EXPLAIN QUERY PLAN "+sql, nil, func(s *sqlite3.Stmt) { lines = append(lines, s.ColumnText(3)) }); err != nil {
		t.Fatal(sql, err)
	}
	return lines
}

func expectIndexes(t *testing.T, c *conn, sql string) (lines []string) {
	t.Helper()
	lines = plan(t, c, sql)
	for _, line := range lines {
		if scanned.MatchString(line) && !partial.MatchString(line) && !strings.Contains(line, "VIRTUAL TABLE") || strings.Contains(line, "AUTOMATIC") {
			t.Errorf("%s\n%s", sql, strings.Join(lines, "\n"))
		}
	}
	return lines
}

// combinations calls fn with every subset of n filters.
func combinations(n int, fn func(has func(bit int) bool)) {
	for set := range 1 << n {
		fn(func(bit int) bool { return set&(1<<bit) != 0 })
	}
}

// either is v where the condition holds.
func either[V any](is bool, v V) (out V) {
	if is {
		return v
	}
	return out
}

func pageSQL[R any](t *relation[R], s selection) string {
	rest, _ := s.newest(store.Page{Limit: 10})
	return "SELECT " + t.list + " FROM " + t.name + " " + rest
}

// TestPlansOfLists holds that every list, however it is filtered, walks along
// an index in the order of the page and never sorts or scans a large table.
func TestPlansOfLists(t *testing.T) {
	c := openTest(t, Options{}).write
	check := func(sql string) {
		for _, line := range expectIndexes(t, c, sql) {
			if strings.Contains(line, "TEMP B-TREE") {
				t.Errorf("sorts: %s\n%s", sql, line)
			}
		}
	}
	one := testID(1)
	for _, state := range []pawl.State{0, pawl.Running, pawl.Failed} {
		combinations(8, func(has func(int) bool) {
			check(pageSQL(&operations.relation, selectOperations(store.OperationFilter{
				Tenant: either(has(0), "t"), Unfinished: has(1), Upstream: either(has(2), "u"), Task: either(has(3), "t"),
				CorrelationID: either(has(4), "c"), MetadataKey: either(has(5), "k"), State: state,
				RequestID: either(has(6), "req_1"), UpstreamRequestID: either(has(7), "p"),
			})))
		})
	}
	for _, verdict := range []pawl.Verdict{0, pawl.Applied, pawl.Conflict} {
		combinations(11, func(has func(int) bool) {
			inbox := either(has(8), pawl.InboxWaiting)
			if has(9) {
				inbox = pawl.InboxDone
			}
			selected := selectEvents(store.EventFilter{
				Tenant: either(has(0), "t"), Direction: either(has(1), ledger.Inbound), Source: either(has(2), "s"),
				Task: either(has(3), "t"), Type: either(has(4), "t"), Operation: either(has(5), one), Verdict: verdict,
				Inbox: inbox, ExternalID: either(has(10), "x"),
				From: either[pawl.Time](has(6), 1), Until: either[pawl.Time](has(7), 2),
			})
			check(pageSQL(&events.relation, selected))
			rest, _ := selected.newest(store.Page{Limit: 10, Oldest: true})
			check("SELECT " + events.list + " FROM events " + rest)
		})
	}
	for _, state := range []pawl.DeliveryState{0, pawl.DeliveryPending, pawl.DeliveryDead} {
		combinations(4, func(has func(int) bool) {
			check(pageSQL(&deliveries.relation, selectDeliveries(store.DeliveryFilter{
				Tenant: either(has(0), "t"), Endpoint: either(has(1), one), Event: either(has(2), one),
				Operation: either(has(3), one), State: state,
			})))
		})
	}
	combinations(6, func(has func(int) bool) {
		check(pageSQL(&audits, selectAudits(store.AuditFilter{
			Tenant: either(has(0), "t"), Actor: either(has(1), "a"), Action: either(has(2), "b"), Subject: either(has(3), "s"),
			From: either(has(4), pawl.Time(1)), Until: either(has(5), pawl.Time(2)),
		})))
	})
	for _, sql := range []string{
		"SELECT " + operations.list + " FROM operations " + keptOperations, "SELECT " + events.list + " FROM events " + keptEvents,
		"SELECT " + idempotencyKeys.list + " FROM idempotency_keys " + oldKeys,
	} {
		check(sql)
	}
	combinations(4, func(has func(int) bool) {
		check(pageSQL(&reviews.relation, selectReviews(store.ReviewFilter{
			Tenant: either(has(0), "t"), Open: has(1), Reason: either(has(2), pawl.ReviewOrphan), Operation: either(has(3), one),
		})))
		expectIndexes(t, c, pageSQL(&endpoints.relation, selectEndpoints(store.EndpointFilter{
			Tenant: either(has(0), "t"), Kind: either(has(1), ledger.WebhookEndpoint), APIKey: either(has(2), one), URL: either(has(3), "u"),
		})))
	})
}

// TestPlansOfEverythingElse holds the same of whatever else is prepared in a
// tour of the driver's methods.
func TestPlansOfEverythingElse(t *testing.T) {
	d := openTest(t, Options{Readers: 1})
	tour(t, d)
	r := <-d.pool
	defer func() { d.pool <- r }()
	for _, c := range []*conn{d.write, r} {
		for sql := range c.stmts {
			if strings.HasPrefix(sql, "SELECT") {
				expectIndexes(t, d.write, sql)
			}
		}
	}
	for sql, index := range map[string]string{
		"SELECT id FROM operations " + dueWork:     "operations_due (upstream=? AND tenant=? AND queue=? AND due_at<?)",
		"SELECT id FROM deliveries " + dueDelivery: "deliveries_due (endpoint=? AND due_at<?)",
		"SELECT kind FROM queues " + readyQueues:   "queues_ready (kind=? AND upstream=? AND ready<?)",
		countUnfinished:                            "COVERING INDEX operations_open",
		sumOfHeld:                                  "COVERING INDEX operations_open",
		sumOfKey:                                   "operations_by_key_budget (api_key=? AND currency=?)",
		sumOfDay:                                   "operations_by_spend_day (upstream=? AND spend_day=? AND currency=?)",
		"SELECT name FROM budgets " + nextBudget:   "SEARCH budgets USING PRIMARY KEY",
		countReviews:                               "COVERING INDEX reviews_open",
		countWaiting:                               "COVERING INDEX deliveries_due",
		countDead:                                  "COVERING INDEX deliveries_dead",
		nextLine:                                   "COVERING INDEX operations_waiting ((upstream,tenant,model)>(?,?,?))",
		waitingWork:                                "COVERING INDEX operations_waiting (upstream=? AND tenant=? AND model=? AND waiting_at>? AND waiting_at<?)",
		countWork:                                  "COVERING INDEX operations_due",
		countDisabled:                              "COVERING INDEX endpoints_disabled",
		countParked:                                "COVERING INDEX events_parked",
		"SELECT id FROM operations " + leasedOperations: "operations_leased (id>?)",
		"SELECT id FROM deliveries " + leasedDeliveries: "deliveries_leased (id>?)",
		"SELECT id FROM reviews " + openReviewsOf:       "reviews_by_operation (operation=?)",
		"SELECT id FROM deliveries " + feedOf:           "deliveries_by_sequence (endpoint=? AND sequence>?)",
		"SELECT id FROM events " + parkedOf:             "events_parked (source=? AND task=?)",
		"SELECT id FROM endpoints " + endpointsOf:       "endpoints_by_tenant (tenant=? AND kind=?)",
	} {
		lines := plan(t, d.write, sql)
		if len(lines) == 0 || !strings.Contains(lines[0], index) || strings.Contains(fmt.Sprint(lines[1:]), "ORDER BY") {
			t.Errorf("%s\n%s\nwant %s", sql, strings.Join(lines, "\n"), index)
		}
	}
}

// tour stores one row of each table and calls every method that reads.
func tour(t *testing.T, d *Driver) {
	t.Helper()
	one, ctx, p := testID(1), t.Context(), store.Page{Limit: 10}
	keys := &ledger.Keys{
		IdempotencyKeys: []ledger.IdempotencyKeyID{{}}, EventKeys: []ledger.EventKeyID{{}}, Tasks: []ledger.TaskID{{}},
		Sources: []string{""}, Tenants: []string{""}, APIKeys: []pawl.ID{one},
		Operations: []pawl.ID{one}, Events: []pawl.ID{one}, Reviews: []pawl.ID{one}, OpenReviews: []pawl.ID{one}, Parked: []ledger.TaskID{{}},
		Accounts: []pawl.ID{one}, EndpointSets: []string{""}, Endpoints: []pawl.ID{one},
		Queues: []ledger.QueueID{{}}, Deliveries: []pawl.ID{one}, Artifacts: []pawl.ID{one}, ArtifactSets: []pawl.ID{one},
		DueWork: []ledger.Window{{Limit: 1}}, DueDeliveries: []ledger.Window{{Limit: 1}},
	}
	steps := []func() error{
		func() error { return add(d.write, &operations.relation, &ledger.Operation{ID: one}) },
		func() error { return add(d.write, &events.relation, &ledger.Event{ID: one, Direction: 1, Verdict: 1}) },
		func() error { return add(d.write, &accounts.relation, &ledger.Account{ID: one}) },
		func() error { return add(d.write, &endpoints.relation, &ledger.Endpoint{ID: one}) },
		func() error {
			return add(d.write, &budgets.relation, &ledger.Budget{ID: ledger.KeyBudgetID(one, "USD")})
		},
		func() error {
			return add(d.write, &budgets.relation, &ledger.Budget{ID: ledger.UpstreamBudgetID("up", "USD", 1)})
		},
		func() error { return add(d.write, &tasks.relation, &ledger.Task{Operation: one}) },
		func() error { return add(d.write, &deliveries.relation, &ledger.Delivery{ID: one}) },
		func() error { return add(d.write, &idempotencyKeys.relation, &ledger.IdempotencyKey{Operation: one}) },
		func() error {
			return d.Update(ctx, one, func(tx store.Tx) error { return tx.Load(keys, new(ledger.Rows)) })
		},
		func() error { return second(d.Payloads(ctx, ledger.PayloadID{})) },
		func() error { return second(d.Accounts(ctx, "", p)) },
		func() error { return second(d.Accounts(ctx, "t", p)) },
		func() error { return second(d.APIKeys(ctx, store.APIKeyFilter{Hash: ledger.Digest{1}}, p)) },
		func() error { return second(d.History(ctx, one)) },
		func() error { return second(d.Attempts(ctx, one)) },
		func() error { return second(d.Story(ctx, one, 1, 1)) },
		func() error { return second(d.Feed(ctx, one, 1, 1)) },
		func() error { return second(d.Entries(ctx, one, p)) },
		func() error { return second(d.Audits(ctx, store.AuditFilter{}, p)) },
		func() error { return second(d.Audits(ctx, store.AuditFilter{Tenant: "t"}, p)) },
		func() error { return second(d.Ready(ctx, 1, "up", 1, 1)) },
		func() error { return second(d.LeasedOperations(ctx, p)) },
		func() error { return second(d.LeasedDeliveries(ctx, p)) },
		func() error {
			return second(d.DueArtifacts(ctx, store.DueFilter{By: 1, EndsBy: 1, Host: "h", WithoutHosts: []string{"h"}, WithoutTenants: []string{"t"}}, 1))
		},
		func() error { return second(d.LeasedArtifacts(ctx, p)) },
		func() error { return second(d.Parked(ctx, 1, 1)) },
		func() error { return second(d.Misqueued(ctx, 1)) },
		func() error { return second(d.WaitedFor(ctx)) },
		func() error { return second(d.Late(ctx, "up", 1, 1)) },
		func() error { return second(d.WorkLines(ctx, 1)) },
		func() error { return second(d.WorkWaiting(ctx, store.Line{Upstream: "up"}, 1, 1)) },
		func() error { return second(d.Stats(ctx)) },
		func() error { return second(d.OperationFacts(ctx, p)) },
		func() error { return second(d.AccountFacts(ctx)) },
		func() error { return second(d.BudgetFacts(ctx)) },
		func() error { return second(d.Versions(ctx, one)) },
		func() error { return second(d.EndpointFacts(ctx)) },
		func() error { return second(d.LooseFacts(ctx)) },
	}
	if err := first(steps...); err != nil {
		t.Fatal(err)
	}
}

func second[V any](_ V, err error) error { return err }
