package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// arrange puts what hangs on an operation in one order: the contract has one
// for the timeline alone.
func arrange(f *ledger.Facts) {
	sortBy(f.Keys, func(k ledger.IdempotencyKey) any { return k.ID })
	sortBy(f.Tasks, func(k ledger.Task) any { return k.ID })
	sortBy(f.Budgets, func(b ledger.Budget) any { return b.ID })
	sortBy(f.Inbound, func(e ledger.Event) any { return e.ID })
	sortBy(f.EventKeys, func(k ledger.EventKey) any { return k.ID })
	sortBy(f.Outbound, func(e ledger.Event) any { return e.ID })
	sortBy(f.Deliveries, func(d ledger.Delivery) any { return d.ID })
	sortBy(f.Entries, func(e ledger.Entry) any { return e.ID })
	sortBy(f.Reviews, func(r ledger.Review) any { return r.ID })
	sortBy(f.Artifacts, func(a ledger.Artifact) any { return a.ID })
	sortBy(f.Endpoints, func(e ledger.Endpoint) any { return e.ID })
}

// wholeOperation saves operation n with two of everything that hangs on it.
func wholeOperation(t *testing.T, p *pair, n int) ledger.Facts {
	t.Helper()
	f := ledger.Facts{Operation: sample[ledger.Operation](n)}
	f.Operation.ID = id(n)
	f.Correlation = sample[ledger.Correlation](n)
	f.Correlation.ID = ledger.CorrelationID{Tenant: f.Operation.Tenant, Value: f.Operation.CorrelationID}
	for _, budget := range f.Operation.Budgets() {
		if used := f.Operation.Counted(); used != 0 {
			f.Budgets = append(f.Budgets, ledger.Budget{ID: budget, Used: used})
		}
	}
	for i := n * 10; i < n*10+2; i++ {
		k, task, ek := sample[ledger.IdempotencyKey](i), sample[ledger.Task](i), sample[ledger.EventKey](i)
		in, out, d, r := sample[ledger.Event](i), sample[ledger.Event](i), sample[ledger.Delivery](i), sample[ledger.Review](i)
		h, e, a := sample[ledger.History](i), sample[ledger.Entry](i), sample[ledger.Artifact](i)
		for _, operation := range []*pawl.ID{&k.Operation, &task.Operation, &in.Operation, &out.Operation, &d.Operation, &r.Operation, &h.Operation, &e.Operation, &a.Operation} {
			*operation = id(n)
		}
		in.ID, in.Direction, in.Parked = id(i), ledger.Inbound, false
		out.ID, out.Direction, out.Parked = id(i+5), ledger.Outbound, false
		ek.Event, d.Event = in.ID, out.ID
		f.Keys, f.Tasks, f.EventKeys = append(f.Keys, k), append(f.Tasks, task), append(f.EventKeys, ek)
		f.Inbound, f.Outbound = append(f.Inbound, in), append(f.Outbound, out)
		f.Deliveries, f.Reviews = append(f.Deliveries, d), append(f.Reviews, r)
		f.History, f.Entries = append(f.History, h), append(f.Entries, e)
		f.Artifacts = append(f.Artifacts, a)
	}
	p.save(t, rows{logs: ledger.Rows{History: reversed(f.History), Entries: f.Entries}, put: func(d *ledger.Draft) {
		d.Operations.Put(f.Operation.ID, f.Operation)
		d.Correlations.Put(f.Correlation.ID, f.Correlation)
		for i := range 2 {
			d.IdempotencyKeys.Put(f.Keys[i].ID, f.Keys[i])
			d.Tasks.Put(f.Tasks[i].ID, f.Tasks[i])
			d.EventKeys.Put(f.EventKeys[i].ID, f.EventKeys[i])
			d.Artifacts.Put(f.Artifacts[i].ID, f.Artifacts[i])
			d.Events.Put(f.Inbound[i].ID, f.Inbound[i])
			d.Events.Put(f.Outbound[i].ID, f.Outbound[i])
			d.Deliveries.Put(f.Deliveries[i].ID, f.Deliveries[i])
			d.Reviews.Put(f.Reviews[i].ID, f.Reviews[i])
		}
	}})
	arrange(&f)
	return f
}

func testOperationFacts(t *testing.T, open Open) {
	p := newPair(t, open)
	third, first, second := wholeOperation(t, p, 3), wholeOperation(t, p, 1), wholeOperation(t, p, 2)
	fourth := wantedOperation(t, p, 4)
	for _, tc := range []struct {
		page store.Page
		want []ledger.Facts
	}{
		{store.Page{Limit: 9}, []ledger.Facts{first, second, third, fourth}},
		{store.Page{Limit: 2}, []ledger.Facts{first, second}},
		{store.Page{Limit: 2, After: id(2)}, []ledger.Facts{third, fourth}},
		{store.Page{Limit: 2, After: id(4)}, nil},
	} {
		same(t, "operation facts", tc.want, ask(t, p, "operation facts", func(ctx context.Context, d store.Driver) ([]ledger.Facts, error) {
			all, err := d.OperationFacts(ctx, tc.page)
			for i := range all {
				arrange(&all[i])
			}
			return all, err
		}))
	}
}

// wantedOperation saves operation n, on which nothing hangs, with the endpoints
// that may want its events among some that do not.
func wantedOperation(t *testing.T, p *pair, n int) ledger.Facts {
	t.Helper()
	f := ledger.Facts{Operation: operation(n, "t", pawl.Never)}
	f.Operation.Callback = id(103)
	for i, e := range []ledger.Endpoint{
		{Tenant: "t", Kind: ledger.WebhookEndpoint},
		{Tenant: "t", Kind: ledger.WebhookEndpoint, DeletedAt: at(1)},
		{Tenant: "u", Kind: ledger.WebhookEndpoint},
		{Tenant: "t", Kind: ledger.CallbackEndpoint, DeletedAt: at(1)},
		{Tenant: "t", Kind: ledger.CallbackEndpoint},
		{Tenant: "t", Kind: ledger.WebhookEndpoint, Disabled: true},
	} {
		e.ID = id(100 + i)
		p.put(t, func(d *ledger.Draft) { d.Endpoints.Put(e.ID, e) })
		// A deleted endpoint is owed nothing, but for the callback's, whose
		// operation may have ended before.
		if i == 0 || i == 3 || i == 5 {
			f.Endpoints = append(f.Endpoints, e)
		}
	}
	putOperations(t, p, f.Operation)
	return f
}

func testAccountFacts(t *testing.T, open Open) {
	p := newPair(t, open)
	account := ledger.Account{ID: id(1), Tenant: "t", Currency: "USD", Credited: 70, Charged: 4, Reserved: 13}
	empty := ledger.Account{ID: id(2), Tenant: "t", Currency: "EUR"}
	var logs ledger.Rows
	for n, e := range []ledger.Entry{
		{From: ledger.Funding, To: ledger.Available, Amount: 100},
		{From: ledger.Available, To: ledger.Funding, Amount: 30},
		{From: ledger.Available, To: ledger.Reserving, Amount: 20},
		{From: ledger.Reserving, To: ledger.Spent, Amount: 5},
		{From: ledger.Reserving, To: ledger.Available, Amount: 2},
		{From: ledger.Spent, To: ledger.Available, Amount: 1},
	} {
		e.ID, e.Account, e.Tenant = id(n), account.ID, "t"
		logs.Entries = append(logs.Entries, e)
	}
	p.save(t, rows{logs: logs, put: func(d *ledger.Draft) {
		d.Accounts.Put(account.ID, account)
		d.Accounts.Put(empty.ID, empty)
		for n, m := range []ledger.MoneyState{ledger.Held, ledger.Held, ledger.Ended, ledger.Unmetered, ledger.Held} {
			o := operation(n, "t", pawl.Never)
			o.Money, o.Account, o.Reserved = m, account.ID, pawl.Amount(6+n)
			if n == 4 {
				o.Account = id(99)
			}
			// Money is held until it is settled, whatever the state.
			if n == 1 {
				o.State = pawl.Succeeded
			}
			d.Operations.Put(o.ID, o)
		}
	}})
	// Funded 100−30, spent 5−1, reserved 20−5−2, held 6+7.
	want := []ledger.AccountFacts{
		{Account: account, Funded: 70, Spent: 4, Reserved: 13, Held: 13},
		{Account: empty},
	}
	got := ask(t, p, "account facts", func(ctx context.Context, d store.Driver) ([]ledger.AccountFacts, error) {
		all, err := d.AccountFacts(ctx)
		sortBy(all, func(f ledger.AccountFacts) any { return f.Account.ID })
		return all, err
	})
	same(t, "account facts", want, got)
}

func testBudgetFacts(t *testing.T, open Open) {
	p := newPair(t, open)
	mine, other := id(1), id(2)
	bill := func(n int, money ledger.MoneyState, change func(*ledger.Operation)) ledger.Operation {
		o := operation(n, "t", pawl.Never)
		o.APIKey, o.Upstream, o.Currency, o.Money = mine, "up", "USD", money
		o.Reserved, o.Charged = 10, pawl.Amount(n)
		change(&o)
		return o
	}
	key := func(o *ledger.Operation) { o.KeyBudget = true }
	day := func(d int64) func(*ledger.Operation) {
		return func(o *ledger.Operation) { o.SpendDay = d }
	}
	putOperations(t, p,
		bill(1, ledger.Held, key), bill(2, ledger.Ended, key), // 10 + 2
		bill(3, ledger.Held, func(o *ledger.Operation) { o.KeyBudget, o.APIKey = true, other }),
		bill(4, ledger.Held, func(o *ledger.Operation) { o.KeyBudget, o.Currency = true, "EUR" }),
		bill(5, ledger.Ended, func(o *ledger.Operation) { o.KeyBudget, o.SpendDay = true, 7 }), // 5 of the key, 5 of day 7
		bill(6, ledger.Held, day(7)), bill(7, ledger.Ended, day(8)), // 10 and 7
		bill(8, ledger.Held, func(*ledger.Operation) {}),
	)
	want := []ledger.BudgetFacts{
		{Budget: ledger.Budget{ID: ledger.KeyBudgetID(mine, "EUR"), Used: 96}, Counted: 10},
		{Budget: ledger.Budget{ID: ledger.KeyBudgetID(mine, "USD"), Used: 99}, Counted: 17},
		{Budget: ledger.Budget{ID: ledger.KeyBudgetID(other, "USD"), Used: 95}, Counted: 10},
		{Budget: ledger.Budget{ID: ledger.UpstreamBudgetID("empty", "USD", 7), Used: 98}},
		{Budget: ledger.Budget{ID: ledger.UpstreamBudgetID("up", "USD", 7), Used: 97}, Counted: 15},
		{Budget: ledger.Budget{ID: ledger.UpstreamBudgetID("up", "USD", 8)}, Counted: 7},
	}
	var keys ledger.Keys
	for _, f := range want {
		keys.Budgets = append(keys.Budgets, f.Budget.ID)
	}
	p.save(t, rows{keys: keys, put: func(d *ledger.Draft) {
		for _, f := range want {
			d.Budgets.Put(f.Budget.ID, f.Budget)
		}
	}})
	same(t, "budget facts", want, ask(t, p, "budget facts", func(ctx context.Context, d store.Driver) ([]ledger.BudgetFacts, error) {
		return d.BudgetFacts(ctx)
	}))
}

func testEndpointFacts(t *testing.T, open Open) {
	p := newPair(t, open)
	var want []ledger.EndpointFacts
	n := 0
	for i, tc := range []struct {
		sequences                             []int64
		numbered, highest, distinct, firstGap int64
	}{
		{nil, 0, 0, 0, 0},
		{[]int64{0, 0}, 0, 0, 0, 0},
		{[]int64{2, 1, 3, 0}, 3, 3, 3, 0},
		{[]int64{1, 2, 4, 6}, 4, 6, 4, 3},
		{[]int64{2}, 1, 2, 1, 1},
		{[]int64{1, 1, 2}, 3, 2, 2, 0},
		{[]int64{1, 1, 3}, 3, 3, 2, 2},
	} {
		e := ledger.Endpoint{ID: id(100 + i), Tenant: "t", Kind: ledger.WebhookEndpoint}
		q := ledger.Queue{ID: ledger.DeliveryQueueID(e.ID), NextDue: at(i), Sequence: tc.highest}
		if i == 0 {
			e.DeletedAt, q = at(1), ledger.Queue{}
		}
		p.put(t, func(d *ledger.Draft) {
			d.Endpoints.Put(e.ID, e)
			if i > 0 {
				d.Queues.Put(q.ID, q)
			}
		})
		for _, s := range tc.sequences {
			row := delivery(n, e.ID, pawl.Never)
			row.Sequence = s
			putDeliveries(t, p, row)
			n++
		}
		want = append(want, ledger.EndpointFacts{
			Endpoint: e, Queue: q, Numbered: tc.numbered, Highest: tc.highest, Distinct: tc.distinct, FirstGap: tc.firstGap,
		})
	}
	got := ask(t, p, "endpoint facts", func(ctx context.Context, d store.Driver) ([]ledger.EndpointFacts, error) {
		all, err := d.EndpointFacts(ctx)
		sortBy(all, func(f ledger.EndpointFacts) any { return f.Endpoint.ID })
		return all, err
	})
	same(t, "endpoint facts", want, got)
}

func testLooseFacts(t *testing.T, open Open) {
	p := newPair(t, open)
	loose := func() ledger.LooseFacts {
		t.Helper()
		return ask(t, p, "loose facts", func(ctx context.Context, d store.Driver) (ledger.LooseFacts, error) {
			l, err := d.LooseFacts(ctx)
			sortBy(l.EventsMiscounted, func(e ledger.Event) any { return e.ID })
			sortBy(l.EventsWithoutKey, func(e ledger.Event) any { return e.ID })
			sortBy(l.ParkedWithOperation, func(e ledger.Event) any { return e.ID })
			sortBy(l.TasksWithoutOperation, func(k ledger.Task) any { return k.ID })
			sortBy(l.DeliveriesWithoutEvent, func(d ledger.Delivery) any { return d.ID })
			sortBy(l.EntriesWithoutAccount, func(e ledger.Entry) any { return e.ID })
			sortBy(l.KeysWithoutOperation, func(k ledger.IdempotencyKey) any { return k.ID })
			return l, err
		})
	}
	inbound := func(n int, verdict pawl.Verdict) ledger.Event {
		return ledger.Event{ID: id(n), Direction: ledger.Inbound, Source: "up", Task: "x", ExternalID: "e", Verdict: verdict, At: at(n)}
	}
	eventKey := ledger.EventKeyID{Source: "up", Task: "x", Event: "e"}
	known, orphaned := ledger.TaskID{Upstream: "up", Task: "x"}, ledger.TaskID{Upstream: "up", Task: "y"}
	key, credit := ledger.IdempotencyKeyID{Tenant: "t", Value: "k"}, ledger.IdempotencyKeyID{Tenant: "t", Value: "c"}
	generic := func(n int, state pawl.InboxState) ledger.Event {
		e := inbound(n, pawl.Applied)
		e.Source, e.Task, e.ExternalID, e.Inbox = "gen", "", fmt.Sprint("g", n), state
		return e
	}
	parked := inbound(2, pawl.Orphan)
	parked.Task, parked.ExternalID, parked.Parked = "y", "p", true
	parkedKey := ledger.EventKeyID{Source: "up", Task: "y", Event: "p"}
	p.save(t, rows{logs: ledger.Rows{Entries: []ledger.Entry{{ID: id(1), Account: id(1), From: ledger.Funding, To: ledger.Available, Amount: 1}}}, put: func(d *ledger.Draft) {
		d.Operations.Put(id(1), operation(1, "t", pawl.Never))
		d.Accounts.Put(id(1), ledger.Account{ID: id(1), Tenant: "t"})
		d.Tasks.Put(known, ledger.Task{ID: known, Operation: id(1)})
		d.Tasks.Put(orphaned, ledger.Task{ID: orphaned})
		d.IdempotencyKeys.Put(key, ledger.IdempotencyKey{ID: key, For: "operation", Operation: id(1)})
		// A credit's key stands for a journal entry.
		d.IdempotencyKeys.Put(credit, ledger.IdempotencyKey{ID: credit, For: "credit", Operation: id(77)})
		d.Events.Put(id(1), inbound(1, pawl.Applied))
		d.EventKeys.Put(eventKey, ledger.EventKey{ID: eventKey, Event: id(1)})
		d.Events.Put(parked.ID, parked)
		d.EventKeys.Put(parkedKey, ledger.EventKey{ID: parkedKey, Event: parked.ID})
		d.Events.Put(id(3), inbound(3, pawl.Rejected))
		d.Events.Put(id(4), ledger.Event{ID: id(4), Direction: ledger.Outbound, Operation: id(1), At: at(4)})
		row := delivery(4, id(100), pawl.Never)
		d.Deliveries.Put(row.ID, row)
		counted := generic(5, pawl.InboxReview)
		counted.Waiting, counted.Troubled, counted.Handled = 3, 2, 3
		putWithKey(d, counted)
		for n, row := range handled(counted.ID) {
			row.ID = id(50 + n)
			d.Deliveries.Put(row.ID, row)
		}
		discarded := generic(6, pawl.InboxDone)
		discarded.Verdict = pawl.UnknownType
		discarded.Rejudged = ledger.Rejudgment{At: at(6), Verdict: pawl.UnknownType, Reason: "discarded"}
		d.Events.Put(discarded.ID, discarded)
	}})
	same(t, "a sound ledger", ledger.LooseFacts{}, loose())

	keyless, attached := inbound(11, pawl.Stale), inbound(12, pawl.Orphan)
	keyless.ExternalID = "lost"
	attached.ExternalID, attached.Parked = "a", true
	attachedKey := ledger.EventKeyID{Source: "up", Task: "x", Event: "a"}
	task := ledger.Task{ID: ledger.TaskID{Upstream: "up", Task: "gone"}, Operation: id(99)}
	eventless := delivery(13, id(100), pawl.Never)
	entry := ledger.Entry{ID: id(14), Account: id(99), From: ledger.Funding, To: ledger.Available, Amount: 1}
	dangling := ledger.IdempotencyKey{ID: ledger.IdempotencyKeyID{Tenant: "t", Value: "gone"}, For: "operation", Operation: id(99)}
	miscounted, misplaced := generic(15, pawl.InboxWaiting), generic(16, pawl.InboxDone)
	miscounted.Waiting = 1
	p.save(t, rows{logs: ledger.Rows{Entries: []ledger.Entry{entry}}, put: func(d *ledger.Draft) {
		putWithKey(d, miscounted)
		putWithKey(d, misplaced)
		d.Events.Put(keyless.ID, keyless)
		d.Events.Put(attached.ID, attached)
		d.EventKeys.Put(attachedKey, ledger.EventKey{ID: attachedKey, Event: attached.ID})
		d.Tasks.Put(task.ID, task)
		d.Deliveries.Put(eventless.ID, eventless)
		d.IdempotencyKeys.Put(dangling.ID, dangling)
	}})
	same(t, "what hangs loose", ledger.LooseFacts{
		EventsMiscounted:       []ledger.Event{miscounted, misplaced},
		EventsWithoutKey:       []ledger.Event{keyless},
		ParkedWithOperation:    []ledger.Event{attached},
		TasksWithoutOperation:  []ledger.Task{task},
		DeliveriesWithoutEvent: []ledger.Delivery{eventless},
		EntriesWithoutAccount:  []ledger.Entry{entry},
		KeysWithoutOperation:   []ledger.IdempotencyKey{dangling},
	}, loose())
}

func putWithKey(d *ledger.Draft, e ledger.Event) {
	key := ledger.EventKeyID{Source: e.Source, Task: e.Task, Event: e.ExternalID}
	d.Events.Put(e.ID, e)
	d.EventKeys.Put(key, ledger.EventKey{ID: key, Event: e.ID})
}

// handled are deliveries of a generic event: three that wait, two in trouble,
// three that are over, and one that counts for nothing (7-rules R21).
func handled(event pawl.ID) []ledger.Delivery {
	row := func(state pawl.DeliveryState) ledger.Delivery {
		return ledger.Delivery{Event: event, Endpoint: id(100), Tenant: "t", Inbound: true, State: state, DueAt: pawl.Never, Reason: "r"}
	}
	awaited, overdue, reported, discarded := row(pawl.DeliveryDelivered), row(pawl.DeliveryDelivered), row(pawl.DeliveryDelivering), row(pawl.DeliveryDead)
	awaited.CompleteBy, awaited.Overdue = at(1), 1
	overdue.CompleteBy, overdue.Overdue = at(1), 2
	reported.CompleteBy, reported.Overdue, reported.CompletedAt = at(1), 2, at(2)
	discarded.Discarded = true
	return []ledger.Delivery{
		row(pawl.DeliveryPending), row(pawl.DeliveryDelivering), awaited, row(pawl.DeliveryDead), overdue,
		row(pawl.DeliveryDelivered), reported, discarded, row(pawl.DeliverySkipped),
	}
}
