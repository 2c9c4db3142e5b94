package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// populate fills both drivers with 24 rows of each listed table, in an order
// that is not that of their ids; the n-th row of two tenants is the first's
// where n is even.
func populate(t *testing.T, p *pair) {
	t.Helper()
	for _, half := range []int{12, 0} {
		var logs ledger.Rows
		for n := half; n < half+12; n++ {
			tenant := []string{"t", "u"}[n%2]
			a := sample[ledger.Audit](n)
			a.ID, a.Tenant, a.At = id(n), tenant, at(n)
			a.Actor, a.Action, a.Subject = fmt.Sprint("key", n%3), fmt.Sprint("act", n%4), fmt.Sprint("op", n%6)
			e := sample[ledger.Entry](n)
			e.ID, e.Account, e.Tenant = id(n), id(n%2), tenant
			logs.Audits, logs.Entries = append(logs.Audits, a), append(logs.Entries, e)
		}
		p.save(t, rows{logs: logs, put: func(d *ledger.Draft) {
			for n := half; n < half+12; n++ {
				populateRow(d, n)
			}
		}})
	}
}

// populateRow spreads the values that filters ask for over the rows, each with
// another period.
func populateRow(d *ledger.Draft, n int) {
	tenant, i := []string{"t", "u"}[n%2], id(n)
	o := operation(n, tenant, pawl.Never)
	o.State = pawl.State(1 + n%7)
	o.Upstream = []string{"up", "down", "left"}[n%3]
	o.Task, o.CorrelationID = fmt.Sprint("task", n/2), fmt.Sprint("c", n%5)
	o.RequestID, o.UpstreamRequestID = fmt.Sprint("req_", n%8), fmt.Sprint("p", n%6)
	d.Operations.Put(i, o)
	task := ledger.TaskID{Upstream: o.Upstream, Task: o.Task}
	d.Tasks.Put(task, ledger.Task{ID: task, Operation: i})
	d.Events.Put(i, ledger.Event{
		ID: i, Direction: ledger.Direction(1 + n%3%2), Tenant: tenant, Source: o.Upstream, Task: o.Task, Type: fmt.Sprint("type", n%4),
		Verdict: pawl.Verdict(1 + n%5), Operation: id(n % 6), At: at(n), ExternalID: fmt.Sprint(n),
		Inbox: pawl.InboxState(n % 6 % 5),
	})
	d.Deliveries.Put(i, ledger.Delivery{
		ID: i, Tenant: tenant, State: pawl.DeliveryState(1 + n%5), Endpoint: id(n % 3), Event: i, Operation: id(n % 6),
		CreatedAt: at(n), DueAt: pawl.Never,
	})
	e := ledger.Endpoint{
		ID: i, Tenant: tenant, Kind: ledger.EndpointKind(1 + n%3%2), APIKey: id(n % 4), URL: fmt.Sprint("https://example.com/", n),
		CreatedAt: at(n),
	}
	if n%8 == 7 {
		e.DeletedAt = at(n)
	}
	d.Endpoints.Put(i, e)
	r := ledger.Review{ID: i, Tenant: tenant, Reason: pawl.Reason(1 + n%5), Operation: id(n % 6), OpenedAt: at(n)}
	if n%3 == 0 {
		r.ClosedAt = at(n + 1)
	}
	d.Reviews.Put(i, r)
	d.Accounts.Put(i, ledger.Account{ID: i, Tenant: tenant, Currency: "USD", CreatedAt: at(n)})
	d.APIKeys.Put(i, ledger.APIKey{ID: i, Tenant: tenant, Hash: ledger.Digest{byte(n + 1)}, CreatedAt: at(n)})
	name := fmt.Sprint("tenant", (n*7+5)%24)
	if n >= 24 {
		name = fmt.Sprint("tenant", n)
	}
	d.Tenants.Put(name, ledger.Tenant{Name: name, Account: i, CreatedAt: at(n)})
}

// lister is one list with one filter.
type lister struct {
	name string
	// matches says how many of the 24 rows the filter lets pass.
	matches int
	// page reads a page and returns the ids; tenants are those of its rows.
	page func(context.Context, store.Driver, store.Page) (ids []pawl.ID, tenants []string, err error)
}

func list[F, R any](name string, matches int, filter F,
	read func(store.Driver) func(context.Context, F, store.Page) ([]R, error), of func(R) (pawl.ID, string),
) lister {
	return lister{name, matches, func(ctx context.Context, d store.Driver, page store.Page) (ids []pawl.ID, tenants []string, err error) {
		all, err := read(d)(ctx, filter, page)
		for _, r := range all {
			i, tenant := of(r)
			ids, tenants = append(ids, i), append(tenants, tenant)
		}
		return ids, tenants, err
	}}
}

func operations(name string, matches int, f store.OperationFilter) lister {
	return list("operations "+name, matches, f, func(d store.Driver) func(context.Context, store.OperationFilter, store.Page) ([]ledger.Operation, error) {
		return d.Operations
	}, func(r ledger.Operation) (pawl.ID, string) { return r.ID, r.Tenant })
}

func events(name string, matches int, f store.EventFilter) lister {
	return list("events "+name, matches, f, func(d store.Driver) func(context.Context, store.EventFilter, store.Page) ([]ledger.Event, error) {
		return d.Events
	}, func(r ledger.Event) (pawl.ID, string) { return r.ID, r.Tenant })
}

func deliveries(name string, matches int, f store.DeliveryFilter) lister {
	return list("deliveries "+name, matches, f, func(d store.Driver) func(context.Context, store.DeliveryFilter, store.Page) ([]ledger.Delivery, error) {
		return d.Deliveries
	}, func(r ledger.Delivery) (pawl.ID, string) { return r.ID, r.Tenant })
}

func endpoints(name string, matches int, f store.EndpointFilter) lister {
	return list("endpoints "+name, matches, f, func(d store.Driver) func(context.Context, store.EndpointFilter, store.Page) ([]ledger.Endpoint, error) {
		return d.Endpoints
	}, func(r ledger.Endpoint) (pawl.ID, string) { return r.ID, r.Tenant })
}

func reviews(name string, matches int, f store.ReviewFilter) lister {
	return list("reviews "+name, matches, f, func(d store.Driver) func(context.Context, store.ReviewFilter, store.Page) ([]ledger.Review, error) {
		return d.Reviews
	}, func(r ledger.Review) (pawl.ID, string) { return r.ID, r.Tenant })
}

func apiKeys(name string, matches int, f store.APIKeyFilter) lister {
	return list("api keys "+name, matches, f, func(d store.Driver) func(context.Context, store.APIKeyFilter, store.Page) ([]ledger.APIKey, error) {
		return d.APIKeys
	}, func(r ledger.APIKey) (pawl.ID, string) { return r.ID, r.Tenant })
}

func audits(name string, matches int, f store.AuditFilter) lister {
	return list("audits "+name, matches, f, func(d store.Driver) func(context.Context, store.AuditFilter, store.Page) ([]ledger.Audit, error) {
		return d.Audits
	}, func(r ledger.Audit) (pawl.ID, string) { return r.ID, r.Tenant })
}

// listers are all lists by each of their filters over the rows of populate.
var listers = []lister{
	operations("all", 24, store.OperationFilter{}),
	operations("of a tenant", 12, store.OperationFilter{Tenant: "t"}),
	operations("in a state", 4, store.OperationFilter{State: pawl.Pending}),
	operations("unfinished", 12, store.OperationFilter{Unfinished: true}),
	operations("of an upstream", 8, store.OperationFilter{Upstream: "up"}),
	operations("with a task", 2, store.OperationFilter{Task: "task3"}),
	operations("with a correlation id", 5, store.OperationFilter{CorrelationID: "c0"}),
	operations("of a request of ours", 3, store.OperationFilter{RequestID: "req_3"}),
	operations("of a provider's request", 4, store.OperationFilter{UpstreamRequestID: "p5"}),
	operations("of a tenant and a request of ours", 3, store.OperationFilter{Tenant: "u", RequestID: "req_3"}),
	operations("with everything", 1, store.OperationFilter{Tenant: "t", State: pawl.Pending, Unfinished: true, Upstream: "up", Task: "task0", CorrelationID: "c0"}),
	operations("of a tenant, unfinished", 6, store.OperationFilter{Tenant: "u", Unfinished: true}),
	operations("that nobody has", 0, store.OperationFilter{Tenant: "nobody"}),

	events("all", 24, store.EventFilter{}),
	events("of a tenant", 12, store.EventFilter{Tenant: "u"}),
	events("inbound", 16, store.EventFilter{Direction: ledger.Inbound}),
	events("outbound", 8, store.EventFilter{Direction: ledger.Outbound}),
	events("of a source", 8, store.EventFilter{Source: "down"}),
	events("with a verdict", 5, store.EventFilter{Verdict: pawl.Applied}),
	events("of a task", 2, store.EventFilter{Task: "task11"}),
	events("by its sender's id", 1, store.EventFilter{ExternalID: "7"}),
	events("of a type", 6, store.EventFilter{Type: "type3"}),
	events("of an operation", 4, store.EventFilter{Operation: id(5)}),
	events("in a state of the inbox", 4, store.EventFilter{Inbox: pawl.InboxWaiting}),
	events("done", 4, store.EventFilter{Inbox: pawl.InboxDone}),
	events("from a moment", 4, store.EventFilter{From: at(20)}),
	events("until a moment", 20, store.EventFilter{Until: at(20)}),
	events("between two moments", 3, store.EventFilter{From: at(7), Until: at(10)}),
	events("of a source between two moments", 1, store.EventFilter{Source: "down", From: at(7), Until: at(10)}),
	events("of no time", 0, store.EventFilter{From: at(10), Until: at(10)}),
	events("with everything", 1, store.EventFilter{Tenant: "t", Direction: ledger.Inbound, Source: "up", Verdict: pawl.Applied, Task: "task0", Type: "type0", Operation: id(0)}),

	deliveries("all", 24, store.DeliveryFilter{}),
	deliveries("of a tenant", 12, store.DeliveryFilter{Tenant: "t"}),
	deliveries("in a state", 5, store.DeliveryFilter{State: pawl.DeliveryDead}),
	deliveries("to an endpoint", 8, store.DeliveryFilter{Endpoint: id(2)}),
	deliveries("of an event", 1, store.DeliveryFilter{Event: id(13)}),
	deliveries("of an operation", 4, store.DeliveryFilter{Operation: id(0)}),
	deliveries("of a tenant to an endpoint", 4, store.DeliveryFilter{Tenant: "u", Endpoint: id(1)}),

	endpoints("all that live", 21, store.EndpointFilter{}),
	endpoints("of a tenant", 9, store.EndpointFilter{Tenant: "u"}),
	endpoints("of a kind", 7, store.EndpointFilter{Kind: ledger.CallbackEndpoint}),
	endpoints("of a key", 6, store.EndpointFilter{APIKey: id(0)}),
	endpoints("of a key and address", 1, store.EndpointFilter{APIKey: id(1), URL: "https://example.com/5"}),
	endpoints("at an address of a deleted one", 0, store.EndpointFilter{URL: "https://example.com/7"}),

	reviews("all", 24, store.ReviewFilter{}),
	reviews("of a tenant", 12, store.ReviewFilter{Tenant: "t"}),
	reviews("open", 16, store.ReviewFilter{Open: true}),
	reviews("for a reason", 5, store.ReviewFilter{Reason: pawl.ReviewOrphan}),
	reviews("of an operation", 4, store.ReviewFilter{Operation: id(1)}),
	reviews("of a tenant, open", 8, store.ReviewFilter{Tenant: "u", Open: true}),

	list("accounts all", 24, "", accountsOf, func(r ledger.Account) (pawl.ID, string) { return r.ID, r.Tenant }),
	list("accounts of a tenant", 12, "u", accountsOf, func(r ledger.Account) (pawl.ID, string) { return r.ID, r.Tenant }),
	apiKeys("all", 24, store.APIKeyFilter{}),
	apiKeys("of a tenant", 12, store.APIKeyFilter{Tenant: "t"}),
	apiKeys("by hash", 1, store.APIKeyFilter{Hash: ledger.Digest{9}}),
	apiKeys("by hash in another tenant", 0, store.APIKeyFilter{Tenant: "u", Hash: ledger.Digest{9}}),

	list("entries", 12, id(1), func(d store.Driver) func(context.Context, pawl.ID, store.Page) ([]ledger.Entry, error) {
		return d.Entries
	},
		func(r ledger.Entry) (pawl.ID, string) { return r.ID, r.Tenant }),
	audits("all", 24, store.AuditFilter{}),
	audits("of a tenant", 12, store.AuditFilter{Tenant: "t"}),
	audits("by an actor", 8, store.AuditFilter{Actor: "key1"}),
	audits("of an action", 6, store.AuditFilter{Action: "act3"}),
	audits("of a subject", 4, store.AuditFilter{Subject: "op5"}),
	audits("from a moment", 4, store.AuditFilter{From: at(20)}),
	audits("until a moment", 20, store.AuditFilter{Until: at(20)}),
	audits("by an actor between two moments", 2, store.AuditFilter{Actor: "key1", From: at(4), Until: at(10)}),
	audits("with everything", 2, store.AuditFilter{Tenant: "t", Actor: "key0", Action: "act0", Subject: "op0", From: at(0), Until: at(24)}),
}

func accountsOf(d store.Driver) func(context.Context, string, store.Page) ([]ledger.Account, error) {
	return d.Accounts
}

func testLists(t *testing.T, open Open) {
	p := newPair(t, open)
	populate(t, p)
	for _, l := range listers {
		t.Run(l.name, func(t *testing.T) {
			var tenants []string
			all := ask(t, p, l.name, func(ctx context.Context, d store.Driver) (got []pawl.ID, err error) {
				got, tenants, err = l.page(ctx, d, store.Page{Limit: 100})
				return got, err
			})
			if len(all) != l.matches {
				t.Errorf("%d rows, want %d", len(all), l.matches)
			}
			if !slices.IsSortedFunc(all, func(a, b pawl.ID) int { return b.Compare(a) }) {
				t.Error("not newest first")
			}
			if strings.HasSuffix(l.name, "of a tenant") && len(slices.Compact(tenants)) != 1 {
				t.Error("tenants are mixed")
			}
			var paged []pawl.ID
			for page := (store.Page{Limit: 5}); ; {
				got, _, err := l.page(t.Context(), p, page)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) > 5 || len(got) < 5 && len(paged)+len(got) != l.matches {
					t.Fatalf("a page of %d after %d of %d rows", len(got), len(paged), l.matches)
				}
				if paged = append(paged, got...); len(got) < 5 {
					break
				}
				page.After = got[4]
			}
			same(t, "page by page", all, paged)
			if strings.HasPrefix(l.name, "events ") {
				testOldest(t, p, l, all)
			}
		})
	}
	t.Run("tenants", func(t *testing.T) {
		all := ask(t, p, "tenants", func(ctx context.Context, d store.Driver) ([]ledger.Tenant, error) { return d.Tenants(ctx) })
		if len(all) != 24 {
			t.Errorf("%d tenants, want 24", len(all))
		}
	})
}

// testOldest reads a list of events from its other end.
func testOldest(t *testing.T, p *pair, l lister, newest []pawl.ID) {
	t.Helper()
	var paged []pawl.ID
	for page := (store.Page{Limit: 5, Oldest: true}); ; {
		got, _, err := l.page(t.Context(), p, page)
		if err != nil {
			t.Fatal(err)
		}
		if paged = append(paged, got...); len(got) < 5 {
			break
		}
		page.After = got[4]
	}
	same(t, "oldest first", reversed(newest), paged)
}

func testMetadata(t *testing.T, open Open) {
	p := newPair(t, open)
	bodies := []string{
		`{"a":"x"}`, `{ "b" : "y", "a" : "x" }`, `{"a":"xx"}`, `{"a":"é\n"}`, `{"a":"\u00e9\u000a"}`, `{"c":{"a":"x"}}`,
		`{"a.b":"x"}`, `{"a\"b":"x"}`, `{"a":1}`, `{"a":null}`, `{"":"x"}`,
		`{ "n" : 12345678901234567890 }`, `{"n":1.50}`, `{"n":true}`, `{"n":"true"}`, `{"n\"\\.":-7}`, `{"n":{"m":1}}`, `{"n":[1]}`,
	}
	var logs ledger.Rows
	for n, body := range bodies {
		logs.Payloads = append(logs.Payloads, ledger.Payload{ID: ledger.PayloadID{Owner: id(n), Kind: ledger.MetadataPayload}, Body: body})
	}
	// What looks like metadata and is not.
	logs.Payloads = append(logs.Payloads, ledger.Payload{ID: ledger.PayloadID{Owner: id(len(bodies)), Kind: ledger.InputPayload}, Body: bodies[0]})
	p.save(t, rows{logs: logs, put: func(d *ledger.Draft) {
		for n := range len(bodies) + 1 {
			d.Operations.Put(id(n), operation(n, "t", pawl.Never))
		}
	}})
	for _, tc := range []struct {
		key, value string
		want       []pawl.ID
	}{
		{"a", "x", numbered(1, 0)},
		{"a", "é\n", numbered(4, 3)},
		{"a.b", "x", numbered(6)},
		{`a"b`, "x", numbered(7)},
		{"a", "1", numbered(8)},
		{"n", "12345678901234567890", numbered(11)},
		{"n", "1.50", numbered(12)},
		{"n", "1.5", nil},
		{"n", "true", numbered(14, 13)},
		{`n"\.`, "-7", numbered(15)},
		{"n", `{"m":1}`, nil},
		{"n", "[1]", nil},
		{"a", "null", nil},
		{"c", "x", nil},
		{"a", "X", nil},
		{"b' OR '1'='1", "x", nil},
	} {
		got := ask(t, p, fmt.Sprintf("metadata %q=%q", tc.key, tc.value), func(ctx context.Context, d store.Driver) ([]ledger.Operation, error) {
			return d.Operations(ctx, store.OperationFilter{MetadataKey: tc.key, MetadataValue: tc.value}, store.Page{Limit: 100})
		})
		same(t, fmt.Sprintf("metadata %q=%q", tc.key, tc.value), tc.want, ids(got, operationID))
	}
}

// testPaging reads all lists page by page and adds newer rows between the
// pages: what was there when a list began comes once, in order.
func testPaging(t *testing.T, open Open) {
	p := newPair(t, open)
	populate(t, p)
	before, paged := make([][]pawl.ID, len(listers)), make([][]pawl.ID, len(listers))
	read := func(l lister, page store.Page) []pawl.ID {
		t.Helper()
		got, _, err := l.page(t.Context(), p, page)
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		return got
	}
	for i, l := range listers {
		before[i] = read(l, store.Page{Limit: 100})
		paged[i] = read(l, store.Page{Limit: 3})
	}
	for n := 100; n < 108; n++ {
		p.put(t, func(d *ledger.Draft) { populateRow(d, n) })
		for i, l := range listers {
			if len(paged[i]) > 0 {
				paged[i] = append(paged[i], read(l, store.Page{Limit: 3, After: paged[i][len(paged[i])-1]})...)
			}
		}
	}
	for i, l := range listers {
		same(t, l.name+" page by page", before[i], paged[i])
	}
}
