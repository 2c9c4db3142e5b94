package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// kind is one table as the tests of rows see it.
type kind struct {
	name string
	// trip saves, changes and loads rows of the table.
	trip func(*testing.T, *pair)
	// absent asks for a row that is not there.
	absent func(*testing.T, *pair)
}

// table makes a kind: how to make the n-th row, what its key is, and where it
// lives.
func table[K, R comparable](name string, make func(n int) R, bare func(K) R, key func(R) K,
	view func(*ledger.Draft) *ledger.View[K, R], tableOf func(*ledger.Rows) *ledger.Table[K, R], want func(*ledger.Keys) *[]K,
) kind {
	keysOf := func(keys ...K) (k ledger.Keys) {
		*want(&k) = keys
		return k
	}
	trip := func(t *testing.T, p *pair) {
		a, b, c := make(1), make(2), bare(key(make(3)))
		expect := func(what string, all ...R) {
			t.Helper()
			loaded := load(t, p, keysOf(key(a), key(b), key(c)))
			for _, r := range all {
				got, ok := tableOf(loaded).Get(key(r))
				if diff := cmp.Diff(r, got); !ok || diff != "" {
					t.Errorf("%s: present %v (-saved +loaded):\n%s", what, ok, diff)
				}
			}
		}
		p.put(t, func(d *ledger.Draft) {
			for _, r := range []R{a, b, c} {
				view(d).Put(key(r), r)
			}
		})
		expect("new", a, b, c)
		// Each row is put in another's place with all its other fields.
		a, b, c = rekeyed(make(4), a), bare(key(b)), rekeyed(make(5), c)
		p.save(t, rows{keys: keysOf(key(a), key(b), key(c)), put: func(d *ledger.Draft) {
			for _, r := range []R{a, b, c} {
				view(d).Put(key(r), r)
			}
		}})
		expect("changed", a, b, c)
	}
	absent := func(t *testing.T, p *pair) {
		k := key(make(9))
		loaded := load(t, p, keysOf(k))
		if _, ok := tableOf(loaded).Get(k); ok || !tableOf(loaded).Has(k) {
			t.Errorf("an absent row is present (%v) or not recorded as absent", ok)
		}
	}
	return kind{name, trip, absent}
}

var kinds = []kind{
	table("idempotency keys", sample[ledger.IdempotencyKey],
		func(k ledger.IdempotencyKeyID) ledger.IdempotencyKey {
			return ledger.IdempotencyKey{ID: k, For: "operation", Operation: id(1)}
		},
		func(r ledger.IdempotencyKey) ledger.IdempotencyKeyID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.IdempotencyKeyID, ledger.IdempotencyKey] {
			return &d.IdempotencyKeys
		},
		func(r *ledger.Rows) *ledger.Table[ledger.IdempotencyKeyID, ledger.IdempotencyKey] {
			return &r.IdempotencyKeys
		},
		func(k *ledger.Keys) *[]ledger.IdempotencyKeyID { return &k.IdempotencyKeys }),
	table("correlations", sample[ledger.Correlation],
		func(k ledger.CorrelationID) ledger.Correlation { return ledger.Correlation{ID: k, Operation: id(1)} },
		func(r ledger.Correlation) ledger.CorrelationID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.CorrelationID, ledger.Correlation] { return &d.Correlations },
		func(r *ledger.Rows) *ledger.Table[ledger.CorrelationID, ledger.Correlation] { return &r.Correlations },
		func(k *ledger.Keys) *[]ledger.CorrelationID { return &k.Correlations }),
	table("event keys", sample[ledger.EventKey],
		func(k ledger.EventKeyID) ledger.EventKey { return ledger.EventKey{ID: k} },
		func(r ledger.EventKey) ledger.EventKeyID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.EventKeyID, ledger.EventKey] { return &d.EventKeys },
		func(r *ledger.Rows) *ledger.Table[ledger.EventKeyID, ledger.EventKey] { return &r.EventKeys },
		func(k *ledger.Keys) *[]ledger.EventKeyID { return &k.EventKeys }),
	table("tasks", sample[ledger.Task],
		func(k ledger.TaskID) ledger.Task { return ledger.Task{ID: k} },
		func(r ledger.Task) ledger.TaskID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.TaskID, ledger.Task] { return &d.Tasks },
		func(r *ledger.Rows) *ledger.Table[ledger.TaskID, ledger.Task] { return &r.Tasks },
		func(k *ledger.Keys) *[]ledger.TaskID { return &k.Tasks }),
	table("sources", sample[ledger.Source],
		func(k string) ledger.Source { return ledger.Source{Name: k} },
		func(r ledger.Source) string { return r.Name },
		func(d *ledger.Draft) *ledger.View[string, ledger.Source] { return &d.Sources },
		func(r *ledger.Rows) *ledger.Table[string, ledger.Source] { return &r.Sources },
		func(k *ledger.Keys) *[]string { return &k.Sources }),
	table("unknown types", sample[ledger.UnknownTypes],
		func(k ledger.UnknownTypesID) ledger.UnknownTypes { return ledger.UnknownTypes{ID: k} },
		func(r ledger.UnknownTypes) ledger.UnknownTypesID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.UnknownTypesID, ledger.UnknownTypes] { return &d.UnknownTypes },
		func(r *ledger.Rows) *ledger.Table[ledger.UnknownTypesID, ledger.UnknownTypes] { return &r.UnknownTypes },
		func(k *ledger.Keys) *[]ledger.UnknownTypesID { return &k.UnknownTypes }),
	table("tenants", sample[ledger.Tenant],
		func(k string) ledger.Tenant { return ledger.Tenant{Name: k} },
		func(r ledger.Tenant) string { return r.Name },
		func(d *ledger.Draft) *ledger.View[string, ledger.Tenant] { return &d.Tenants },
		func(r *ledger.Rows) *ledger.Table[string, ledger.Tenant] { return &r.Tenants },
		func(k *ledger.Keys) *[]string { return &k.Tenants }),
	table("api keys", sample[ledger.APIKey],
		func(k pawl.ID) ledger.APIKey { return ledger.APIKey{ID: k} },
		func(r ledger.APIKey) pawl.ID { return r.ID },
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.APIKey] { return &d.APIKeys },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.APIKey] { return &r.APIKeys },
		func(k *ledger.Keys) *[]pawl.ID { return &k.APIKeys }),
	table("wrapping keys", sample[ledger.WrappingKey],
		func(k string) ledger.WrappingKey { return ledger.WrappingKey{Name: k} },
		func(r ledger.WrappingKey) string { return r.Name },
		func(d *ledger.Draft) *ledger.View[string, ledger.WrappingKey] { return &d.WrappingKeys },
		func(r *ledger.Rows) *ledger.Table[string, ledger.WrappingKey] { return &r.WrappingKeys },
		func(k *ledger.Keys) *[]string { return &k.WrappingKeys }),
	table("audit seals", sample[ledger.AuditSeal],
		func(k int64) ledger.AuditSeal { return ledger.AuditSeal{Number: k} },
		func(r ledger.AuditSeal) int64 { return r.Number },
		func(d *ledger.Draft) *ledger.View[int64, ledger.AuditSeal] { return &d.AuditSeals },
		func(r *ledger.Rows) *ledger.Table[int64, ledger.AuditSeal] { return &r.AuditSeals },
		func(k *ledger.Keys) *[]int64 { return &k.AuditSeals }),
	table("replays", sample[ledger.Replay],
		func(k pawl.ID) ledger.Replay { return ledger.Replay{ID: k, DueAt: pawl.Never} },
		func(r ledger.Replay) pawl.ID { return r.ID },
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Replay] { return &d.Replays },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Replay] { return &r.Replays },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Replays }),
	table("operations", sample[ledger.Operation],
		func(k pawl.ID) ledger.Operation {
			return ledger.Operation{ID: k, State: pawl.Pending, DueAt: pawl.Never}
		},
		operationID,
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Operation] { return &d.Operations },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Operation] { return &r.Operations },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Operations }),
	table("events", sample[ledger.Event],
		func(k pawl.ID) ledger.Event { return ledger.Event{ID: k, Direction: ledger.Outbound} }, eventID,
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Event] { return &d.Events },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Event] { return &r.Events },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Events }),
	table("reviews", sample[ledger.Review],
		func(k pawl.ID) ledger.Review { return ledger.Review{ID: k, Reason: pawl.ReviewOrphan} },
		func(r ledger.Review) pawl.ID { return r.ID },
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Review] { return &d.Reviews },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Review] { return &r.Reviews },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Reviews }),
	table("accounts", sample[ledger.Account],
		func(k pawl.ID) ledger.Account { return ledger.Account{ID: k, Charged: -1} },
		func(r ledger.Account) pawl.ID { return r.ID },
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Account] { return &d.Accounts },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Account] { return &r.Accounts },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Accounts }),
	table("budgets", sample[ledger.Budget],
		func(k ledger.BudgetID) ledger.Budget { return ledger.Budget{ID: k} },
		func(r ledger.Budget) ledger.BudgetID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.BudgetID, ledger.Budget] { return &d.Budgets },
		func(r *ledger.Rows) *ledger.Table[ledger.BudgetID, ledger.Budget] { return &r.Budgets },
		func(k *ledger.Keys) *[]ledger.BudgetID { return &k.Budgets }),
	table("endpoints", sample[ledger.Endpoint],
		func(k pawl.ID) ledger.Endpoint { return ledger.Endpoint{ID: k, Kind: ledger.WebhookEndpoint} },
		func(r ledger.Endpoint) pawl.ID { return r.ID },
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Endpoint] { return &d.Endpoints },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Endpoint] { return &r.Endpoints },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Endpoints }),
	table("queues", sampleQueue,
		func(k ledger.QueueID) ledger.Queue {
			return ledger.Queue{ID: k, NextDue: pawl.Never, PausedUntil: pawl.Never}
		},
		func(r ledger.Queue) ledger.QueueID { return r.ID },
		func(d *ledger.Draft) *ledger.View[ledger.QueueID, ledger.Queue] { return &d.Queues },
		func(r *ledger.Rows) *ledger.Table[ledger.QueueID, ledger.Queue] { return &r.Queues },
		func(k *ledger.Keys) *[]ledger.QueueID { return &k.Queues }),
	table("deliveries", sample[ledger.Delivery],
		func(k pawl.ID) ledger.Delivery {
			return ledger.Delivery{ID: k, State: pawl.DeliveryDead, DueAt: pawl.Never}
		},
		deliveryID,
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Delivery] { return &d.Deliveries },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Delivery] { return &r.Deliveries },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Deliveries }),
	table("artifacts", sample[ledger.Artifact],
		func(k pawl.ID) ledger.Artifact { return ledger.Artifact{ID: k, DueAt: pawl.Never} },
		artifactID,
		func(d *ledger.Draft) *ledger.View[pawl.ID, ledger.Artifact] { return &d.Artifacts },
		func(r *ledger.Rows) *ledger.Table[pawl.ID, ledger.Artifact] { return &r.Artifacts },
		func(k *ledger.Keys) *[]pawl.ID { return &k.Artifacts }),
}

func testRoundTrip(t *testing.T, open Open) {
	p := newPair(t, open)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { k.trip(t, p) })
	}
}

func testAbsent(t *testing.T, open Open) {
	p := newPair(t, open)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { k.absent(t, p) })
	}
}

func testLogs(t *testing.T, open Open) {
	p := newPair(t, open)
	var logs ledger.Rows
	for n := range 3 {
		logs.Payloads = append(logs.Payloads, ledger.Payload{
			ID:   ledger.PayloadID{Owner: id(1), Kind: ledger.PayloadKind(n + 1)},
			Body: fmt.Sprintf("body %d \x00\xff é", n),
		})
		h, e, a, u := sample[ledger.History](n), sample[ledger.Entry](n), sample[ledger.Attempt](n), sample[ledger.Audit](n)
		h.Operation, e.Account, a.Delivery, u.Tenant = id(1), id(1), id(1), "t"
		logs.History, logs.Entries = append(logs.History, h), append(logs.Entries, e)
		logs.Attempts, logs.Audits = append(logs.Attempts, a), append(logs.Audits, u)
	}
	p.save(t, rows{logs: logs})
	// What is kept is never changed: a second body under the same id is not.
	p.save(t, rows{logs: ledger.Rows{Payloads: []ledger.Payload{{ID: logs.Payloads[0].ID, Body: "other"}}}})

	// A line of a timeline that is added again is the same with a higher count.
	// One batch may do so more than once.
	counted := logs.History[1]
	counted.Repeats++
	counted.LastAt++
	logs.History[1] = counted
	logs.History[1].Repeats++
	logs.History[1].LastAt++
	p.save(t, rows{logs: ledger.Rows{History: []ledger.History{counted, logs.History[1]}}})

	payloads, err := p.Payloads(t.Context(), logs.Payloads[0].ID, logs.Payloads[1].ID, logs.Payloads[2].ID,
		ledger.PayloadID{Owner: id(2), Kind: ledger.InputPayload})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[ledger.PayloadID]string)
	for _, l := range logs.Payloads {
		want[l.ID] = l.Body
	}
	same(t, "payloads", want, payloads)

	history, err := p.History(t.Context(), id(1))
	same(t, "history", logs.History, history)
	attempts, err2 := p.Attempts(t.Context(), id(1))
	same(t, "attempts", logs.Attempts, attempts)
	entries, err3 := p.Entries(t.Context(), id(1), store.Page{Limit: 10})
	same(t, "entries", reversed(logs.Entries), entries)
	audits, err4 := p.Audits(t.Context(), store.AuditFilter{Tenant: "t"}, store.Page{Limit: 10})
	same(t, "audits", reversed(logs.Audits), audits)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Error(err)
	}
}

// rekeyed is row with the key fields of another, which come first in a row.
func rekeyed[R any](row, other R) R {
	v, o := reflect.ValueOf(&row).Elem(), reflect.ValueOf(other)
	v.Field(0).Set(o.Field(0))
	return row
}

func reversed[R any](all []R) []R {
	out := slices.Clone(all)
	slices.Reverse(out)
	return out
}
