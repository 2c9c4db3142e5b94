package storetest

import (
	"slices"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// operation is the n-th operation of an upstream "up" and a tenant, pending
// and due at a moment.
func operation(n int, tenant string, due pawl.Time) ledger.Operation {
	return ledger.Operation{
		ID: id(n), Tenant: tenant, Upstream: "up", State: pawl.Pending, Version: 1, UpstreamVersion: -1, Progress: -1,
		Money: ledger.Unmetered, Queue: ledger.SubmitQueue, CreatedAt: at(n), UpdatedAt: at(n), DueAt: due,
	}
}

// delivery is the n-th delivery, of event n, to an endpoint.
func delivery(n int, endpoint pawl.ID, due pawl.Time) ledger.Delivery {
	return ledger.Delivery{
		ID: id(n), Event: id(n), Endpoint: endpoint, Tenant: "t", State: pawl.DeliveryPending,
		CreatedAt: at(n), FirstDueAt: due, DueAt: due,
	}
}

func putOperations(t *testing.T, p *pair, all ...ledger.Operation) {
	t.Helper()
	p.put(t, func(d *ledger.Draft) {
		for _, o := range all {
			d.Operations.Put(o.ID, o)
		}
	})
}

func putDeliveries(t *testing.T, p *pair, all ...ledger.Delivery) {
	t.Helper()
	p.put(t, func(d *ledger.Draft) {
		for _, row := range all {
			d.Events.Put(row.Event, ledger.Event{ID: row.Event, Direction: ledger.Outbound, Tenant: row.Tenant, Operation: row.Operation, At: row.CreatedAt})
			d.Deliveries.Put(row.ID, row)
		}
	})
}

// present are the keys of a table's present rows, in the order of loading.
func present[K, R comparable](table *ledger.Table[K, R]) (keys []K) {
	for k := range table.All() {
		keys = append(keys, k)
	}
	return keys
}

// testFollow loads one key and finds everything that it leads to.
func testFollow(t *testing.T, open Open) {
	p := newPair(t, open)
	key, task := ledger.IdempotencyKeyID{Tenant: "t", Value: "k"}, ledger.TaskID{Upstream: "up", Task: "x"}
	webhook, callback := id(21), id(22)
	op := operation(1, "t", at(1))
	op.Account, op.Callback = id(11), callback
	submit, read := ledger.WorkQueueID(ledger.SubmitQueue, "up", "t"), ledger.WorkQueueID(ledger.ReadQueue, "up", "t")
	p.put(t, func(d *ledger.Draft) {
		d.IdempotencyKeys.Put(key, ledger.IdempotencyKey{ID: key, For: "operation", Operation: op.ID})
		d.Tasks.Put(task, ledger.Task{ID: task, Operation: op.ID})
		d.Operations.Put(op.ID, op)
		d.Accounts.Put(id(11), ledger.Account{ID: id(11), Tenant: "t", Currency: "USD"})
		d.Accounts.Put(id(12), ledger.Account{ID: id(12), Tenant: "t", Currency: "EUR"})
		d.Tenants.Put("t", ledger.Tenant{Name: "t", Account: id(12)})
		d.Endpoints.Put(webhook, ledger.Endpoint{ID: webhook, Tenant: "t", Kind: ledger.WebhookEndpoint})
		d.Endpoints.Put(callback, ledger.Endpoint{ID: callback, Tenant: "t", Kind: ledger.CallbackEndpoint})
		for _, q := range []ledger.QueueID{submit, ledger.DeliveryQueueID(webhook)} {
			d.Queues.Put(q, ledger.Queue{ID: q, NextDue: at(1)})
		}
	})
	for name, keys := range map[string]ledger.Keys{
		"by idempotency key": {IdempotencyKeys: []ledger.IdempotencyKeyID{key}},
		"by task":            {Tasks: []ledger.TaskID{task}},
		"by operation":       {Operations: []pawl.ID{op.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			got := load(t, p, keys)
			same(t, "operations", []pawl.ID{op.ID}, present(&got.Operations))
			same(t, "accounts", []pawl.ID{id(11)}, present(&got.Accounts))
			if !got.HasEndpointSet("t") {
				t.Error("the endpoint set is not recorded as loaded")
			}
			for _, e := range []pawl.ID{webhook, callback} {
				if _, ok := got.Endpoints.Get(e); !ok {
					t.Errorf("endpoint %v is not loaded", e)
				}
			}
			for q, want := range map[ledger.QueueID]bool{
				submit: true, read: false, ledger.DeliveryQueueID(webhook): true, ledger.DeliveryQueueID(callback): false,
			} {
				if _, ok := got.Queues.Get(q); ok != want || !got.Queues.Has(q) {
					t.Errorf("queue %+v: present %v, recorded %v", q, ok, got.Queues.Has(q))
				}
			}
		})
	}
	t.Run("by tenant", func(t *testing.T) {
		got := load(t, p, ledger.Keys{Tenants: []string{"t"}})
		same(t, "accounts", []pawl.ID{id(12)}, present(&got.Accounts))
	})
	t.Run("a row held already is left as it is", func(t *testing.T) {
		var held ledger.Rows
		held.Operations.Loaded(op.ID, ledger.Operation{ID: op.ID, Model: "held"}, true)
		if err := p.Load(t.Context(), &ledger.Keys{Operations: []pawl.ID{op.ID}}, &held); err != nil {
			t.Fatal(err)
		}
		if got, _ := held.Operations.Get(op.ID); got.Model != "held" {
			t.Error("it was loaded anew")
		}
	})
}

func testDueWork(t *testing.T, open Open) {
	p := newPair(t, open)
	queue := ledger.WorkQueueID(ledger.SubmitQueue, "up", "t")
	other, reading, elsewhere := operation(8, "other", at(1)), operation(9, "t", at(1)), operation(10, "t", at(1))
	reading.Queue, elsewhere.Upstream = ledger.ReadQueue, "down"
	putOperations(t, p, operation(4, "t", at(2)), operation(1, "t", at(9)), operation(3, "t", at(2)), operation(2, "t", at(5)),
		operation(5, "t", pawl.Never), operation(6, "t", at(1<<20)), other, reading, elsewhere)
	for limit, want := range map[int][]pawl.ID{
		1: numbered(3, 4), 2: numbered(3, 4, 2), 3: numbered(3, 4, 2, 1), 4: numbered(3, 4, 2, 1, 6), 9: numbered(3, 4, 2, 1, 6),
	} {
		window := ledger.Window{Queue: queue, Limit: limit}
		inTx(t, p, ledger.Keys{DueWork: []ledger.Window{window}}, func(got *ledger.Rows) {
			same(t, "due work", want, present(&got.Operations))
			wider := window
			wider.Limit++
			if !got.HasDueWork(window) || got.HasDueWork(wider) != (limit == 9) {
				t.Errorf("limit %d: the window is recorded as %v, a wider one as %v", limit, got.HasDueWork(window), got.HasDueWork(wider))
			}
		})
	}
	for _, limits := range [][]int{{1, 3}, {3, 1}} {
		both := ledger.Keys{DueWork: []ledger.Window{{Queue: queue, Limit: limits[0]}, {Queue: queue, Limit: limits[1]}}}
		inTx(t, p, both, func(got *ledger.Rows) {
			same(t, "two windows of one queue", numbered(3, 4, 2, 1), present(&got.Operations))
			if !got.HasDueWork(ledger.Window{Queue: queue, Limit: 3}) {
				t.Errorf("limits %v: the wider of two windows is not recorded", limits)
			}
		})
	}
}

func testDueDeliveries(t *testing.T, open Open) {
	p := newPair(t, open)
	queue := ledger.DeliveryQueueID(id(100))
	leased := delivery(2, id(100), at(5))
	leased.Leased, leased.State = true, pawl.DeliveryDelivering
	putDeliveries(t, p, delivery(4, id(100), at(2)), delivery(1, id(100), at(9)), delivery(3, id(100), at(2)), leased,
		delivery(5, id(100), pawl.Never), delivery(6, id(100), at(1<<20)), delivery(8, id(101), at(1)))
	for limit, want := range map[int][]pawl.ID{
		1: numbered(3, 4), 2: numbered(3, 4, 2), 3: numbered(3, 4, 2, 1), 4: numbered(3, 4, 2, 1, 6), 9: numbered(3, 4, 2, 1, 6),
	} {
		window := ledger.Window{Queue: queue, Limit: limit}
		inTx(t, p, ledger.Keys{DueDeliveries: []ledger.Window{window}}, func(got *ledger.Rows) {
			same(t, "due deliveries", want, present(&got.Deliveries))
			wider := window
			wider.Limit++
			if !got.HasDueDeliveries(window) || got.HasDueDeliveries(wider) != (limit == 9) {
				t.Errorf("limit %d: the window is recorded as %v, a wider one as %v", limit, got.HasDueDeliveries(window), got.HasDueDeliveries(wider))
			}
		})
	}
	for _, limits := range [][]int{{1, 3}, {3, 1}} {
		both := ledger.Keys{DueDeliveries: []ledger.Window{{Queue: queue, Limit: limits[0]}, {Queue: queue, Limit: limits[1]}}}
		inTx(t, p, both, func(got *ledger.Rows) {
			if !got.HasDueDeliveries(ledger.Window{Queue: queue, Limit: 3}) {
				t.Errorf("limits %v: the wider of two windows is not recorded", limits)
			}
		})
	}
}

func testEndpointSets(t *testing.T, open Open) {
	p := newPair(t, open)
	p.put(t, func(d *ledger.Draft) {
		for n, e := range []ledger.Endpoint{
			{Tenant: "t", Kind: ledger.WebhookEndpoint},
			{Tenant: "t", Kind: ledger.CallbackEndpoint},
			{Tenant: "other", Kind: ledger.WebhookEndpoint},
			{Tenant: "t", Kind: ledger.WebhookEndpoint, Disabled: true},
		} {
			e.ID = id(n)
			d.Endpoints.Put(e.ID, e)
		}
	})
	inTx(t, p, ledger.Keys{EndpointSets: []string{"t", "nobody"}}, func(got *ledger.Rows) {
		set := present(&got.Endpoints)
		slices.SortFunc(set, pawl.ID.Compare)
		same(t, "the set", numbered(0, 3), set)
		if !got.HasEndpointSet("t") || !got.HasEndpointSet("nobody") || got.HasEndpointSet("other") {
			t.Error("the sets are not recorded as they were loaded")
		}
		for _, n := range []int{0, 3} {
			if !got.Queues.Has(ledger.DeliveryQueueID(id(n))) {
				t.Errorf("the queue of endpoint %d did not follow", n)
			}
		}
	})
}

func testParked(t *testing.T, open Open) {
	p := newPair(t, open)
	task := ledger.TaskID{Upstream: "up", Task: "x"}
	unknown := ledger.TaskID{Upstream: "up", Task: "y"}
	p.put(t, func(d *ledger.Draft) {
		d.Tasks.Put(task, ledger.Task{ID: task})
		for n, e := range []ledger.Event{
			{Source: "up", Task: "x", Parked: true, At: at(2)},
			{Source: "up", Task: "x", Parked: true, At: at(1)},
			{Source: "up", Task: "x", At: at(1)},
			{Source: "up", Task: "z", Parked: true, At: at(1)},
			{Source: "down", Task: "x", Parked: true, At: at(1)},
		} {
			e.ID, e.Direction = id(n), ledger.Inbound
			d.Events.Put(e.ID, e)
		}
	})
	for name, keys := range map[string]ledger.Keys{
		"asked for":               {Parked: []ledger.TaskID{task, unknown}},
		"of a task that is asked": {Tasks: []ledger.TaskID{task}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := len(keys.Parked) > 1
			inTx(t, p, keys, func(got *ledger.Rows) {
				set := present(&got.Events)
				slices.SortFunc(set, pawl.ID.Compare)
				same(t, "parked", numbered(0, 1), set)
				if !got.HasParked(task) || got.HasParked(unknown) != asked {
					t.Errorf("recorded: %v, of the unknown task %v", got.HasParked(task), got.HasParked(unknown))
				}
			})
		})
	}
}

// testOpenReviews: those of an operation that has any follow from its row.
func testOpenReviews(t *testing.T, open Open) {
	p := newPair(t, open)
	asked, quiet := operation(1, "t", at(1)), operation(2, "t", at(1))
	asked.Reviews = 1<<pawl.ReviewConflict | 1<<pawl.ReviewCurrency
	p.put(t, func(d *ledger.Draft) {
		d.Operations.Put(asked.ID, asked)
		d.Operations.Put(quiet.ID, quiet)
		for n, r := range []ledger.Review{
			{Operation: asked.ID, Reason: pawl.ReviewConflict},
			{Operation: asked.ID, Reason: pawl.ReviewCurrency},
			{Operation: asked.ID, Reason: pawl.ReviewNoResult, ClosedAt: at(3)},
			{Operation: quiet.ID, Reason: pawl.ReviewNoResult},
			{Reason: pawl.ReviewOrphan},
		} {
			r.ID = id(10 + n)
			d.Reviews.Put(r.ID, r)
		}
	})
	inTx(t, p, ledger.Keys{Operations: []pawl.ID{asked.ID, quiet.ID}}, func(got *ledger.Rows) {
		set := present(&got.Reviews)
		slices.SortFunc(set, pawl.ID.Compare)
		same(t, "open reviews", numbered(10, 11), set)
		if !got.HasOpenReviews(asked.ID) || got.HasOpenReviews(quiet.ID) {
			t.Error("what was loaded is not recorded so")
		}
	})
	inTx(t, p, ledger.Keys{OpenReviews: []pawl.ID{quiet.ID}}, func(got *ledger.Rows) {
		same(t, "asked for", numbered(13), present(&got.Reviews))
	})
}

// inTx loads in a transaction and, the second time, outside of one.
func inTx(t *testing.T, p *pair, keys ledger.Keys, check func(*ledger.Rows)) {
	t.Helper()
	err := p.Update(t.Context(), id(1<<20+p.batches), func(tx store.Tx) error {
		var copied ledger.Keys
		copied.Merge(keys)
		var got ledger.Rows
		if err := tx.Load(&copied, &got); err != nil {
			return err
		}
		check(&got)
		return nil
	})
	p.batches++
	if err != nil {
		t.Fatal(err)
	}
	var copied ledger.Keys
	copied.Merge(keys)
	check(load(t, p, copied))
}
