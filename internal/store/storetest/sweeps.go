package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func putQueues(t *testing.T, p *pair, all ...ledger.Queue) {
	t.Helper()
	p.put(t, func(d *ledger.Draft) {
		for _, q := range all {
			d.Queues.Put(q.ID, q)
		}
	})
}

func readQueue(tenant string) ledger.QueueID {
	return ledger.WorkQueueID(ledger.ReadQueue, "up", tenant)
}

func testReady(t *testing.T, open Open) {
	p := newPair(t, open)
	putQueues(t, p,
		ledger.Queue{ID: readQueue("late"), NextDue: at(3)},
		ledger.Queue{ID: readQueue("early"), NextDue: at(1)},
		ledger.Queue{ID: readQueue("paused"), NextDue: at(1), PausedUntil: at(2)},
		ledger.Queue{ID: readQueue("by hand"), NextDue: at(1), PausedUntil: pawl.Never},
		ledger.Queue{ID: readQueue("empty"), NextDue: pawl.Never},
		ledger.Queue{ID: readQueue("future"), NextDue: at(9), PausedUntil: at(1)},
		ledger.Queue{ID: ledger.WorkQueueID(ledger.SubmitQueue, "up", "submit"), NextDue: at(0)},
		ledger.Queue{ID: ledger.WorkQueueID(ledger.ReadQueue, "other", "elsewhere"), NextDue: at(0)},
		ledger.Queue{ID: ledger.DeliveryQueueID(id(1)), NextDue: at(5)},
	)
	for _, tc := range []struct {
		kind     ledger.QueueKind
		upstream string
		by       pawl.Time
		limit    int
		want     []string
	}{
		{ledger.ReadQueue, "up", at(3), 9, []string{"early", "paused", "late"}},
		{ledger.ReadQueue, "up", at(3), 2, []string{"early", "paused"}},
		{ledger.ReadQueue, "up", at(2), 9, []string{"early", "paused"}},
		{ledger.ReadQueue, "up", at(2) - 1, 9, []string{"early"}},
		{ledger.ReadQueue, "up", at(0), 9, nil},
		{ledger.ReadQueue, "other", at(3), 9, []string{"elsewhere"}},
		{ledger.ReadQueue, "none", at(3), 9, nil},
		{ledger.SubmitQueue, "up", at(3), 9, []string{"submit"}},
		{ledger.DeliveryQueue, "", at(5), 9, []string{""}},
		{ledger.DeliveryQueue, "", at(4), 9, nil},
	} {
		what := fmt.Sprintf("ready of kind %d of %q by %v", tc.kind, tc.upstream, tc.by)
		var got []string
		for _, q := range ask(t, p, what, func(ctx context.Context, d store.Driver) ([]ledger.Queue, error) {
			return d.Ready(ctx, tc.kind, tc.upstream, tc.by, tc.limit)
		}) {
			got = append(got, q.ID.Tenant)
		}
		same(t, what, tc.want, got)
	}
}

func testLeased(t *testing.T, open Open) {
	p := newPair(t, open)
	var ops []ledger.Operation
	var dels []ledger.Delivery
	for n := range 7 {
		o, d := operation(n, "t", at(n)), delivery(n, id(100), at(n))
		if n%2 == 0 {
			o.Leased, d.Leased = ledger.ActRead, true
		}
		ops, dels = append(ops, o), append(dels, d)
	}
	// A replay of what was delivered is leased while it stays delivered; what
	// waits in the state of a lease that was handed back is not leased.
	dels[2].State, dels[1].State = pawl.DeliveryDelivered, pawl.DeliveryDelivering
	putOperations(t, p, ops...)
	putDeliveries(t, p, dels...)
	for _, tc := range []struct {
		page store.Page
		want []pawl.ID
	}{
		{store.Page{Limit: 9}, numbered(0, 2, 4, 6)},
		{store.Page{Limit: 2}, numbered(0, 2)},
		{store.Page{Limit: 2, After: id(2)}, numbered(4, 6)},
		{store.Page{Limit: 2, After: id(3)}, numbered(4, 6)},
		{store.Page{Limit: 2, After: id(6)}, nil},
	} {
		same(t, "leased operations", tc.want, ids(ask(t, p, "leased operations", func(ctx context.Context, d store.Driver) ([]ledger.Operation, error) {
			return d.LeasedOperations(ctx, tc.page)
		}), operationID))
		same(t, "leased deliveries", tc.want, ids(ask(t, p, "leased deliveries", func(ctx context.Context, d store.Driver) ([]ledger.Delivery, error) {
			return d.LeasedDeliveries(ctx, tc.page)
		}), deliveryID))
	}
}

func testParkedSweep(t *testing.T, open Open) {
	p := newPair(t, open)
	p.put(t, func(d *ledger.Draft) {
		for n, e := range []ledger.Event{
			{Parked: true, At: at(3)}, {Parked: true, At: at(1)}, {Parked: true, At: at(5)},
			{Parked: true, At: at(1), Review: id(7)}, {At: at(1)},
		} {
			e.ID, e.Direction, e.Source, e.Task = id(n), ledger.Inbound, "up", fmt.Sprint(n)
			d.Events.Put(e.ID, e)
		}
	})
	for _, tc := range []struct {
		before pawl.Time
		limit  int
		want   []pawl.ID
	}{{at(5), 9, numbered(1, 0)}, {at(5) + 1, 9, numbered(1, 0, 2)}, {at(9), 1, numbered(1)}, {at(1), 9, nil}} {
		same(t, "parked", tc.want, ids(ask(t, p, "parked", func(ctx context.Context, d store.Driver) ([]ledger.Event, error) {
			return d.Parked(ctx, tc.before, tc.limit)
		}), eventID))
	}
}

func testMisqueued(t *testing.T, open Open) {
	p := newPair(t, open)
	// Queues that are right: as early as their rows, earlier, empty.
	putOperations(t, p, operation(1, "exact", at(1)), operation(2, "exact", at(2)), operation(3, "earlier", at(5)), operation(4, "ended", pawl.Never),
		operation(5, "late", at(5)), operation(6, "never", at(5)))
	putDeliveries(t, p, delivery(1, id(101), at(1)), delivery(2, id(102), at(1)))
	queue := func(tenant string, next pawl.Time) ledger.Queue {
		return ledger.Queue{ID: ledger.WorkQueueID(ledger.SubmitQueue, "up", tenant), NextDue: next}
	}
	deliveryQueue := func(n int, next pawl.Time) ledger.Queue {
		return ledger.Queue{ID: ledger.DeliveryQueueID(id(n)), NextDue: next}
	}
	putQueues(t, p, queue("exact", at(1)), queue("earlier", at(1)), queue("ended", pawl.Never), queue("none", pawl.Never),
		deliveryQueue(101, at(1)),
		// The rows of this one lie in the other queue of their upstream.
		ledger.Queue{ID: ledger.WorkQueueID(ledger.ReadQueue, "up", "exact"), NextDue: pawl.Never})
	misqueued := func(limit int) []ledger.Queue {
		t.Helper()
		all := ask(t, p, "misqueued", func(ctx context.Context, d store.Driver) ([]ledger.Queue, error) {
			all, err := d.Misqueued(ctx, limit)
			sortBy(all, func(q ledger.Queue) any { return q.ID })
			return all, err
		})
		return all
	}
	if all := misqueued(9); len(all) != 0 {
		t.Errorf("queues that are right were found: %v", all)
	}
	wrong := []ledger.Queue{queue("late", at(6)), queue("never", pawl.Never), deliveryQueue(102, at(2))}
	putQueues(t, p, wrong...)
	sortBy(wrong, func(q ledger.Queue) any { return q.ID })
	same(t, "misqueued", wrong, misqueued(9))
	if few, err := p.Misqueued(t.Context(), 2); err != nil || len(few) != 2 {
		t.Errorf("at most 2 gave %d, %v", len(few), err)
	}
}

func testWaitedFor(t *testing.T, open Open) {
	p := newPair(t, open)
	names := func() []string {
		t.Helper()
		return ask(t, p, "waited for", func(ctx context.Context, d store.Driver) ([]string, error) { return d.WaitedFor(ctx) })
	}
	if got := names(); len(got) != 0 {
		t.Errorf("an empty ledger waits for %v", got)
	}
	var ops []ledger.Operation
	for n, upstream := range []string{"b", "a", "b", "ended", "c", "a"} {
		o := operation(n, fmt.Sprint("t", n), at(n))
		o.Upstream = upstream
		if upstream == "ended" {
			o.DueAt = pawl.Never
		}
		ops = append(ops, o)
	}
	putOperations(t, p, ops...)
	same(t, "waited for", []string{"a", "b", "c"}, names())
}

func testStats(t *testing.T, open Open) {
	p := newPair(t, open)
	stats := func() store.Stats {
		t.Helper()
		return ask(t, p, "stats", func(ctx context.Context, d store.Driver) (store.Stats, error) { return d.Stats(ctx) })
	}
	same(t, "stats of nothing", store.Stats{
		Unfinished: map[pawl.State]int64{}, Work: map[ledger.QueueKind]int64{}, WorkDue: map[ledger.QueueKind]pawl.Time{}, OpenReviews: map[pawl.Reason]int64{},
		DeliveryDue: pawl.Never, ArtifactDue: pawl.Never,
	}, stats())

	var ops []ledger.Operation
	for n, state := range []pawl.State{pawl.Succeeded, pawl.Running, pawl.Pending, pawl.Unconfirmed, pawl.Running, pawl.Failed, pawl.Canceled, pawl.Expired} {
		o := operation(n, "t", pawl.Never)
		o.State = state
		// One that has ended and still holds money is not unfinished.
		if state == pawl.Failed {
			o.Money = ledger.Held
		}
		// What is to be done counts whenever it is due, and whatever the state.
		switch state {
		case pawl.Pending:
			o.DueAt, o.Queue = at(5), ledger.SubmitQueue
		case pawl.Running, pawl.Succeeded:
			o.DueAt, o.Queue = at(1000+n), ledger.ReadQueue
		}
		ops = append(ops, o)
	}
	putOperations(t, p, ops...)
	var dels []ledger.Delivery
	for n, state := range []pawl.DeliveryState{pawl.DeliveryPending, pawl.DeliveryDelivering, pawl.DeliveryDead, pawl.DeliverySkipped, pawl.DeliveryDelivered, pawl.DeliveryPending} {
		d := delivery(n, id(100), pawl.Never)
		// A delivery can wait with nothing due, and a delivered one be replayed.
		if state == pawl.DeliveryDelivered || n == 0 || n == 5 {
			d.DueAt = at(70 - n)
		}
		d.State = state
		dels = append(dels, d)
	}
	putDeliveries(t, p, dels...)
	p.put(t, func(d *ledger.Draft) {
		for n := range 4 {
			d.Endpoints.Put(id(200+n), ledger.Endpoint{ID: id(200 + n), Tenant: "t", Disabled: n > 0, DeletedAt: []pawl.Time{0, 0, 0, at(9)}[n]})
		}
		d.Sources.Put("up", ledger.Source{Name: "up", Parked: 2})
		for n := range 4 {
			d.Reviews.Put(id(n), ledger.Review{ID: id(n), Reason: pawl.Reason(1 + n/2), OpenedAt: at(n), ClosedAt: []pawl.Time{0, 0, 0, at(9)}[n]})
			d.Events.Put(id(50+n), ledger.Event{ID: id(50 + n), Direction: ledger.Inbound, Source: "up", Task: fmt.Sprint(n), Parked: n < 2, At: at(n)})
		}
	})
	same(t, "stats", store.Stats{
		OldestUnfinished:  at(1),
		Unfinished:        map[pawl.State]int64{pawl.Pending: 1, pawl.Unconfirmed: 1, pawl.Running: 2},
		Work:              map[ledger.QueueKind]int64{ledger.SubmitQueue: 1, ledger.ReadQueue: 3},
		OpenReviews:       map[pawl.Reason]int64{1: 2, 2: 1},
		DeliveriesWaiting: 3, DeliveriesDead: 1, Parked: 2, Disabled: 2,
		WorkDue:     map[ledger.QueueKind]pawl.Time{ledger.SubmitQueue: at(5), ledger.ReadQueue: at(1000)},
		DeliveryDue: at(65), ArtifactDue: pawl.Never,
	}, stats())
}

// sortBy puts rows in the order of their keys' text, where the contract leaves
// the order open.
func sortBy[R any](all []R, key func(R) any) {
	slices.SortFunc(all, func(a, b R) int {
		return slices.Compare([]byte(fmt.Sprint(key(a))), []byte(fmt.Sprint(key(b))))
	})
}
