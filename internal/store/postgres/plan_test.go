package postgres

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// manyRows puts 20,000 rows of each large table into the ledger, of 20 tenants, most
// of them finished.
const manyRows = `
INSERT INTO operations (id, tenant, upstream, state, money, due_at, queue, correlation_id, task, api_key, model, waiting_at)
	SELECT gen_random_uuid(), 't' || n % 20, 'u' || n % 5, CASE WHEN n % 50 = 0 THEN 3 ELSE 4 END, 1,
	CASE WHEN n % 50 = 0 THEN now() ELSE 'infinity' END, 2, 'c' || n, 'x' || n, gen_random_uuid(),
	'm' || n % 3, CASE WHEN n % 50 = 0 THEN now() ELSE 'epoch' END FROM generate_series(1, 20000) n;
INSERT INTO tasks (upstream, task, operation) SELECT upstream, task, id FROM operations;
INSERT INTO idempotency_keys (tenant, value, operation) SELECT tenant, 'k' || correlation_id, id FROM operations;
INSERT INTO event_keys (source, task, external_id, event) SELECT upstream, task, 'e', id FROM operations;
INSERT INTO events (id, direction, tenant, operation, source, verdict, at, parked, inbox)
	SELECT gen_random_uuid(), 1 + n % 2, 't' || n % 20, gen_random_uuid(), 'u' || n % 5, 1 + n % 3, now(), n % 400 = 0, CASE WHEN n % 2 = 0 THEN 0 WHEN n % 100 = 1 THEN 2 ELSE 3 END FROM generate_series(1, 20000) n;
INSERT INTO deliveries (id, event, endpoint, operation, tenant, state, due_at, sequence)
	SELECT gen_random_uuid(), id, gen_random_uuid(), operation, tenant, CASE WHEN parked THEN 1 ELSE 3 END, CASE WHEN parked THEN now() ELSE 'infinity' END, 1 FROM events;
INSERT INTO reviews (id, tenant, reason, operation, closed_at) SELECT gen_random_uuid(), tenant, 1, operation, now() FROM events;
INSERT INTO audits (id, tenant, actor, action, subject) SELECT gen_random_uuid(), tenant, 'a' || tenant, 'b' || source, id::text FROM events;
INSERT INTO artifacts (id, operation, due_at, ends_at, leased)
	SELECT gen_random_uuid(), operation, CASE WHEN parked THEN now() ELSE 'infinity' END, now(), parked FROM events;
INSERT INTO entries (account, id, operation) SELECT operation, gen_random_uuid(), operation FROM events;
INSERT INTO payloads (owner, kind, body) SELECT id, 1, '' FROM events;
INSERT INTO history (operation, id) SELECT operation, id FROM events;
INSERT INTO attempts (delivery, id) SELECT id, id FROM deliveries;
INSERT INTO queues (kind, upstream, tenant, endpoint, next_due) SELECT 3, '', '', gen_random_uuid(), 'infinity' FROM events;
INSERT INTO endpoints (id, tenant, kind, api_key, url) SELECT gen_random_uuid(), tenant, 1, gen_random_uuid(), 'u' FROM events;
INSERT INTO api_keys (id, tenant, hash) SELECT gen_random_uuid(), tenant, sha256(id::text::bytea) FROM events;`

// plans explains statements of a driver with many rows.
type plans struct {
	t *testing.T
	d *Driver
}

func withRows(t *testing.T) plans {
	t.Helper()
	d := openTest(t, pgtest.Database(t))
	for sql := range strings.SplitSeq(manyRows, ";\n") {
		execute(t, d, sql)
	}
	execute(t, d, "ANALYZE")
	return plans{t, d}
}

// large are the tables that no list and no claim may walk over.
var large = regexp.MustCompile(`^(operations|tasks|idempotency_keys|event_keys|events|deliveries|reviews|audits|artifacts|entries|payloads|history|attempts|queues|endpoints|api_keys)`)

// expectIndexes fails if a statement walks over all of a large table. The
// planner has all its choices.
func (p plans) expectIndexes(sql string, args ...value) {
	p.t.Helper()
	var text []byte
	err := p.d.each(context.Background(), "explain", "EXPLAIN (FORMAT JSON) "+sql, args, func(row [][]byte) error {
		text = append(text, row[0]...)
		return nil
	})
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	var found []struct{ Plan node }
	if err := json.Unmarshal(text, &found); err != nil || len(found) != 1 {
		p.t.Fatal(err)
	}
	if walked := found[0].Plan.walked(); walked != "" {
		p.t.Errorf("%s is walked over: %s\n%s", walked, sql, text)
	}
}

type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Plan Rows"`
	Plans    []node
}

func (n node) walked() string {
	// A default partition without rows is no walk.
	if n.Type == "Seq Scan" && large.MatchString(n.Relation) && n.Rows > 100 {
		return n.Relation
	}
	for _, below := range n.Plans {
		if found := below.walked(); found != "" {
			return found
		}
	}
	return ""
}

// halfOld gives the older half of some rows to one tenant, source, endpoint, actor,
// action and subject.
const halfOld = `
UPDATE operations SET tenant = 'old' WHERE id < '80000000-0000-0000-0000-000000000000';
UPDATE events SET tenant = 'old', source = 'old' WHERE id < '80000000-0000-0000-0000-000000000000';
UPDATE deliveries SET tenant = 'old', endpoint = '00000000-0000-0000-0000-000000000001' WHERE id < '80000000-0000-0000-0000-000000000000';
UPDATE reviews SET tenant = 'old' WHERE id < '80000000-0000-0000-0000-000000000000';
UPDATE audits SET tenant = 'old', actor = 'old', action = 'old', subject = 'old' WHERE id < '80000000-0000-0000-0000-000000000000'`

// TestPlansOfOldRows: half of all rows are of one tenant, and all of these are
// older than the others. Its list does not walk past those, though they would
// soon be among its own if rows were spread evenly.
func TestPlansOfOldRows(t *testing.T) {
	t.Parallel()
	p := withRows(t)
	for sql := range strings.SplitSeq(halfOld, ";\n") {
		execute(t, p.d, sql)
	}
	execute(t, p.d, "ANALYZE")
	endpoint := pawl.ID{15: 1}
	byTenant := selectOperations(store.OperationFilter{Tenant: "old"})
	oldOf(p, &operations.relation, byTenant)
	oldOf(p, &operations.relation, selectOperations(store.OperationFilter{Tenant: "old", Upstream: "u1"}))
	oldOf(p, &events.relation, selectEvents(store.EventFilter{Tenant: "old"}))
	oldOf(p, &events.relation, selectEvents(store.EventFilter{Source: "old", Direction: ledger.Inbound}))
	oldOf(p, &deliveries.relation, selectDeliveries(store.DeliveryFilter{Tenant: "old"}))
	oldOf(p, &deliveries.relation, selectDeliveries(store.DeliveryFilter{Endpoint: endpoint}))
	oldOf(p, &reviews.relation, selectReviews(store.ReviewFilter{Tenant: "old"}))
	for _, f := range []store.AuditFilter{{Tenant: "old"}, {Actor: "old"}, {Action: "old"}, {Subject: "old"}, {Subject: "old", Tenant: "old"}} {
		oldOf(p, &audits, selectAudits(f))
	}
	sql, args := byTenant.step(operations.name, store.Page{Limit: 10})
	p.expectFew(sql, args...)
}

// oldOf looks at the first page of a list, and at what bounds it.
func oldOf[R any](p plans, t *relation[R], s selection) {
	p.t.Helper()
	rest, args := s.newest(store.Page{Limit: 10})
	p.expectFew("SELECT "+t.list+" FROM "+t.name+" "+rest, args...)
	page := store.Page{Limit: 10, Look: &store.Look{Most: 100}}
	from, args := s.looking(t.name, page)
	p.expectFew("SELECT "+t.list+" FROM "+from, args...)
	sql, args := s.floor(t.name, page)
	p.expectFew(sql, args...)
}

var skipped = regexp.MustCompile(`Rows Removed by Filter": ([0-9]+)`)

// expectFew runs a statement and fails if it looked at many rows in vain.
func (p plans) expectFew(sql string, args ...value) {
	p.t.Helper()
	var text []byte
	err := p.d.each(context.Background(), "explain", "EXPLAIN (ANALYZE, FORMAT JSON) "+sql, args, func(row [][]byte) error {
		text = append(text, row[0]...)
		return nil
	})
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	for _, found := range skipped.FindAllSubmatch(text, -1) {
		if n, err := strconv.Atoi(string(found[1])); err != nil || n > 1000 {
			p.t.Errorf("%s rows were looked at in vain: %s\n%s", found[1], sql, text)
		}
	}
}

func pageOf[R any](p plans, t *relation[R], s selection) {
	p.t.Helper()
	rest, args := s.newest(store.Page{Limit: 10})
	p.expectIndexes("SELECT "+t.list+" FROM "+t.name+" "+rest, args...)
}

// TestPlansOfLists holds that lists walk along an index, however they are
// filtered.
func TestPlansOfLists(t *testing.T) {
	t.Parallel()
	p := withRows(t)
	one := testID(1)
	p.expectIndexes("SELECT "+operations.list+" FROM operations "+keptOperations, intValue(3), idValue(one), idValue(one), limit(10))
	p.expectIndexes("SELECT "+events.list+" FROM events "+keptEvents, idValue(one), idValue(one), limit(10))
	p.expectIndexes("SELECT "+idempotencyKeys.list+" FROM idempotency_keys "+oldKeys, idValue(one), idValue(one), limit(10))
	for _, f := range []store.OperationFilter{
		{}, {Tenant: "t1"}, {Unfinished: true}, {Tenant: "t1", Unfinished: true}, {State: pawl.Running}, {State: pawl.Failed},
		{Upstream: "u1", Task: "x7"}, {Task: "x7"}, {CorrelationID: "c7"}, {Tenant: "t1", CorrelationID: "c7"}, {Tenant: "t1", Upstream: "u1"},
		{RequestID: "req_7"}, {Tenant: "t1", RequestID: "req_7"}, {UpstreamRequestID: "p7"},
	} {
		pageOf(p, &operations.relation, selectOperations(f))
	}
	for _, f := range []store.EventFilter{
		{}, {Tenant: "t1"}, {Source: "u1"}, {Operation: one}, {Verdict: pawl.Conflict}, {Tenant: "t1", Source: "u1", Verdict: pawl.Applied},
		{Tenant: "t1", From: 1, Until: 2}, {Tenant: "t1", Direction: ledger.Inbound}, {Inbox: pawl.InboxWaiting}, {Tenant: "t1", Inbox: pawl.InboxReview},
		{Inbox: pawl.InboxDone}, {ExternalID: "7"}, {Tenant: "t1", ExternalID: "7"},
	} {
		pageOf(p, &events.relation, selectEvents(f))
	}
	for _, f := range []store.DeliveryFilter{{}, {Tenant: "t1"}, {Endpoint: one}, {Event: one}, {Operation: one}, {State: pawl.DeliveryDead}} {
		pageOf(p, &deliveries.relation, selectDeliveries(f))
	}
	for _, f := range []store.ReviewFilter{{}, {Tenant: "t1"}, {Open: true}, {Tenant: "t1", Open: true}, {Operation: one}} {
		pageOf(p, &reviews.relation, selectReviews(f))
	}
	for _, f := range []store.EndpointFilter{{}, {Tenant: "t1"}, {APIKey: one, URL: "u"}} {
		pageOf(p, &endpoints.relation, selectEndpoints(f))
	}
	for _, f := range []store.AuditFilter{
		{}, {Tenant: "t1"}, {Actor: "at1"}, {Action: "bu1"}, {Subject: "s"}, {Tenant: "t1", Actor: "at1", Action: "bu1"}, {Actor: "at1", From: 1, Until: 2},
	} {
		pageOf(p, &audits, selectAudits(f))
	}
	for _, f := range []store.APIKeyFilter{{}, {Hash: ledger.Digest{1}}, {Tenant: "t1"}} {
		pageOf(p, &apiKeys.relation, selectAPIKeys(f))
	}
}

// TestPlansThatWalk: what the other tests look for is found.
func TestPlansThatWalk(t *testing.T) {
	n := node{Type: "Limit", Plans: []node{{Type: "Sort"}, {Type: "Seq Scan", Relation: "payloads_default", Rows: 20000}}}
	if got := n.walked(); got != "payloads_default" {
		t.Errorf("walked over %q", got)
	}
	if got := (node{Type: "Index Scan", Relation: "operations", Rows: 20000}).walked(); got != "" {
		t.Errorf("walked over %q", got)
	}
}

// TestPlansOfClaims holds the same of what batches and sweeps ask.
func TestPlansOfClaims(t *testing.T) {
	t.Parallel()
	p := withRows(t)
	one := testID(1)
	byKey(p, &idempotencyKeys, ledger.IdempotencyKeyID{Tenant: "t1", Value: "kc7"})
	byKey(p, &eventKeys, ledger.EventKeyID{Source: "u1", Task: "x7", Event: "e"})
	byKey(p, &tasks, ledger.TaskID{Upstream: "u1", Task: "x7"})
	byKey(p, &operations, one)
	byKey(p, &events, one)
	byKey(p, &deliveries, one)
	byKey(p, &reviews, one)
	byKey(p, &endpoints, one)
	byKey(p, &artifacts, one)
	byKey(p, &queues, ledger.DeliveryQueueID(one))
	window := []value{intArray(2), textArray([]string{"u1"}), textArray([]string{"t1"}), idArray([]pawl.ID{one}), intArray(5)}
	p.expectIndexes(dueWork, window...)
	p.expectIndexes(dueDelivery, window...)
	p.expectIndexes(parkedOf, textArray([]string{"u1"}), textArray([]string{"x7"}))
	p.expectIndexes(openReviewsOf, idArray([]pawl.ID{one}))
	p.expectIndexes("SELECT id FROM endpoints "+endpointsOf, textArray([]string{"t1"}))
	p.expectIndexes("SELECT kind FROM queues "+readyQueues, intValue(3), textValue(""), timeValue(testTime), limit(5))
	p.expectIndexes("SELECT id FROM operations "+leasedOperations, idValue(one), limit(5))
	p.expectIndexes("SELECT id FROM deliveries "+leasedDeliveries, idValue(one), limit(5))
	p.expectIndexes("SELECT id FROM events "+parkedAlone, timeValue(testTime), limit(5))
	p.expectIndexes(versionsOf, idArray([]pawl.ID{one}))
	p.expectIndexes(waitedFor)
	p.expectIndexes(artifactsOf, idArray([]pawl.ID{one}))
	p.expectIndexes("SELECT id FROM artifacts "+dueArtifacts, timeValue(testTime), timeValue(pawl.Never), textValue(""), textArray([]string{"h"}), textArray([]string{"h"}), limit(5))
	p.expectIndexes("SELECT id FROM artifacts "+leasedArtifacts, idValue(one), limit(5))
	p.expectIndexes("SELECT id FROM deliveries "+feedOf, idValue(one), intValue(1), limit(5))
	p.expectIndexes(workLines, limit(5))
	p.expectIndexes(workWaiting, textValue("u1"), textValue("t1"), textValue("m1"), timeValue(testTime), limit(5))
	for _, sql := range []string{countUnfinished, countReviews, countWaiting, countDead, countArtifacts, countParked} {
		p.expectIndexes(sql)
	}
	p.expectIndexes("SELECT body FROM payloads WHERE owner = $1::uuid AND kind = 1", idValue(one))
	p.expectIndexes("SELECT id FROM history "+historyOf, idValue(one))
	p.expectIndexes("SELECT id FROM attempts "+attemptsOf, idValue(one))
	p.expectIndexes("SELECT id FROM history "+latestHistory, idValue(one), timeValue(testTime), limit(5))
	p.expectIndexes("SELECT id FROM entries "+latestEntries, idValue(one), timeValue(testTime), limit(5))
	p.expectIndexes("SELECT id FROM deliveries "+latestDeliveries, idValue(one), timeValue(testTime), limit(5))
	p.expectIndexes("SELECT id FROM attempts "+latestAttempts, idArray([]pawl.ID{one}), timeValue(testTime), limit(5))
	p.expectIndexes("SELECT id FROM operations "+lateOperations, textValue("u1"), timeValue(testTime), limit(5))
}

const testTime = pawl.Time(1_760_000_000_000_000)

func intArray(n int64) value {
	a := array{kind: integer}
	a.int(n)
	return a.value()
}

func byKey[K, R comparable](p plans, t *table[K, R], k K) {
	p.t.Helper()
	p.expectIndexes(t.lock, t.written([]K{k})...)
}

// forbidden is what the driver must not use: what hangs on a session, what
// blocks more than it must, and what a hot path cannot have (O-122, O-123,
// O-126; 3-architecture, "The store").
var forbidden = regexp.MustCompile(`(?i)\b(listen|unlisten|notify|pg_notify|pg_\w*advisory\w*|nextval|for update|serializable|create temp\w*|set session|set_config\([^)]*, false\))\b`)

// TestO122NothingHangsOnASession: overruled by 7-rules §7. Nothing listens, so
// nothing can be lost behind a pooler; the conformance suite runs through one.
func TestO122NothingHangsOnASession(t *testing.T) { absent(t, "listen", "set session", "create temp") }

// TestO123NoAdvisoryLocks: overruled by 7-rules §7. Nodes elect nobody.
func TestO123NoAdvisoryLocks(t *testing.T) {
	absent(t, "advisory")
	d := openTest(t, pgtest.Database(t))
	run(t, store.NewBatcher(d, store.Options{}), count{"s"})
	if n := one(t, d, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
		t.Errorf("%d advisory locks are held", n)
	}
}

// TestO126NoNotifications: overruled by 7-rules §7. No commit notifies.
func TestO126NoNotifications(t *testing.T) { absent(t, "notify") }

// absent fails if the driver's source has one of the words, or any other of what
// is forbidden.
func absent(t *testing.T, words ...string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	more, err2 := filepath.Glob("migrations/*.sql")
	if err != nil || err2 != nil || len(files) < 10 || len(more) == 0 {
		t.Fatal(err, err2, len(files), len(more))
	}
	for _, name := range append(files, more...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if comment := strings.TrimSpace(line); strings.HasPrefix(comment, "//") || strings.HasPrefix(comment, "--") {
				continue
			}
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("%s:%d: %s", name, n+1, found)
			}
			for _, word := range words {
				if strings.Contains(strings.ToLower(line), word) {
					t.Errorf("%s:%d: %s", name, n+1, word)
				}
			}
		}
	}
	for _, sql := range []string{operations.lock, queues.lock, eventKeys.place, shareSets, extendSets} {
		if found := forbidden.FindString(sql); found != "" {
			t.Errorf("%s in %s", found, sql)
		}
	}
	for _, bad := range []string{"LISTEN x", "SELECT pg_advisory_lock(1)", "SELECT 1 FROM a FOR UPDATE", "NOTIFY x"} {
		if !forbidden.MatchString(bad) {
			t.Errorf("%q would not be found", bad)
		}
	}
}
