package simulate

import (
	"maps"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// verify holds the ledger, at rest, against its invariants and against the
// books of those outside.
func (w *world) verify() {
	w.check()
	wrong, err := w.driver.Misqueued(noLimit, 1)
	if err != nil {
		panic(err)
	}
	if len(wrong) > 0 {
		w.violate("no queue is due later than its earliest row", "queue %+v", wrong[0])
	}
	ops, err := w.driver.Operations(noLimit, store.OperationFilter{}, wide)
	if err != nil {
		panic(err)
	}
	held := make(map[pawl.ID]bool)
	for _, op := range ops {
		held[op.ID] = true
		w.verifyOperation(op)
	}
	for id := range w.books.operations {
		if !held[id] {
			w.violate("what was answered with a 2xx is there", "operation %s is not", id.Suffix())
		}
	}
	w.verifyEvents()
	w.verifyMoney()
	w.verifyDeliveries()
}

// verifyOperation holds an operation against its provider's books.
func (w *world) verifyOperation(op ledger.Operation) {
	p := w.providerOf(op.Upstream)
	b := p.orderOf(op.ID.Suffix())
	if !op.State.Terminal() && op.Reviews == 0 {
		w.violate("an operation ends, or a person is asked", "%s at %s is %s, due %s", op.ID.Suffix(), p.name, op.State, op.DueAt)
	}
	if op.State.Terminal() && !op.Settled && op.Reviews == 0 {
		w.violate("money is settled, or a person is asked", "%s at %s", op.ID.Suffix(), p.name)
	}
	if op.Task == "" {
		w.verifyUncreated(op, b)
		return
	}
	t := p.tasks[op.Task]
	switch {
	case t == nil:
		w.violate("a task of the ledger is one of its provider", "%s has %q", op.ID.Suffix(), op.Task)
		return
	case t.op != op.ID.Suffix():
		w.violate("a task belongs to the operation that it was made for", "%s has %s of %s", op.ID.Suffix(), op.Task, t.op)
		return
	}
	w.verifyEnd(op, t)
}

// verifyUncreated is about an operation without a task.
func (w *world) verifyUncreated(op ledger.Operation, b *orderBook) {
	if len(b.tasks) == 0 {
		return
	}
	byHand := slices.Contains(w.books.decided[op.ID], pawl.DecideFailed) || op.ByHand
	if op.State != pawl.Unconfirmed && !byHand {
		w.violate("a create that may exist is not forgotten", "%s has task %s at %s and is %s", op.ID.Suffix(), b.tasks[0].id, b.tasks[0].provider.name, op.State)
	}
}

// verifyEnd holds an end, and what it cost, against the task's.
func (w *world) verifyEnd(op ledger.Operation, t *task) {
	// What a person has decided need not be what the provider says.
	for _, d := range w.books.decided[op.ID] {
		if d == pawl.DecideFailed || d == pawl.DecideExpired || d == pawl.DecideCharge || d == pawl.DecideRelease {
			return
		}
	}
	if op.ByHand || !op.State.Terminal() {
		return
	}
	// A second end of the provider's counts where a person, or the upstream's
	// policy for late ones, has accepted it.
	accepted := slices.Contains(w.books.decided[op.ID], pawl.DecideAccept) || t.provider.up.Policy().AcceptLateSuccess
	theirs := op.State == t.final || t.told[op.State] && accepted
	ours := op.State == pawl.Expired && op.FinishedAt >= op.Deadline
	if !theirs && !ours {
		w.violate("an end is the provider's, or our deadline", "%s is %s, and task %s ended as %s", op.ID.Suffix(), op.State, t.id, t.final)
	}
	if op.State == t.final {
		w.verifyCost(op, t)
	}
}

// verifyCost: what is charged is what the provider said last, never more than
// was reserved.
func (w *world) verifyCost(op ledger.Operation, t *task) {
	if op.Money != ledger.Ended {
		return
	}
	costs := op.State == pawl.Succeeded || op.State == pawl.Canceled
	if t.currency != currency && costs {
		w.violate("a cost in another currency is a person's to decide", "%s is charged %s", op.ID.Suffix(), op.Charged)
		return
	}
	low, high := min(t.cost, t.raised, op.Reserved), min(max(t.cost, t.raised), op.Reserved)
	switch {
	case !costs:
		low, high = 0, 0
	case !t.provider.voice.priced() && op.State == pawl.Succeeded:
		low, high = op.Reserved, op.Reserved
	case !t.provider.voice.priced():
		low, high = 0, 0
	}
	if len(t.told) > 0 && high > 0 {
		low = 0
	}
	if op.Charged < low || op.Charged > high {
		w.violate("what is charged is the provider's final cost, at most the reservation", "%s: %s of %s reserved, the provider's is %s, then %s",
			op.ID.Suffix(), op.Charged, op.Reserved, t.cost, t.raised)
	}
}

// verifyEvents: what a provider was told was taken is there.
func (w *world) verifyEvents() {
	all, err := w.driver.Events(noLimit, store.EventFilter{Direction: ledger.Inbound}, wide)
	if err != nil {
		panic(err)
	}
	there := make(map[string]bool, len(all))
	for _, e := range all {
		there[e.ID.Text(pawl.PrefixEvent)] = true
	}
	for id := range w.books.outbound {
		if _, ok := w.rows(ledger.Keys{Events: []pawl.ID{id}}).Events.Get(id); !ok {
			w.violate("what was answered with a 2xx is there", "own event %s is not", id.Suffix())
		}
	}
	for id := range w.books.events {
		if !there[id] {
			w.violate("what was answered with a 2xx is there", "event %s is not", id)
		}
	}
}

// verifyMoney: each credit is booked once.
func (w *world) verifyMoney() {
	for _, t := range w.tenants {
		// Credits that nobody was answered for may be booked or not.
		low, high := t.opening, t.opening
		for key, c := range w.books.credits {
			if c.tenant != t || w.books.refused[key] {
				continue
			}
			least, most := pawl.Amount(0), pawl.Amount(1)
			if w.books.credited[key] {
				least = 1
			}
			if w.expired(c.since) { // The key was free again.
				most = pawl.Amount(c.tries)
			}
			low += min(least*c.amount, most*c.amount)
			high += max(least*c.amount, most*c.amount)
		}
		row, _ := w.rows(ledger.Keys{Accounts: []pawl.ID{t.account}}).Accounts.Get(t.account)
		if row.Credited < low || row.Credited > high {
			w.violate("a credit is booked once", "%s has %s, and %s to %s was asked for", t.name, row.Credited, low, high)
		}
	}
}

// verifyDeliveries holds the deliveries against the receivers' books.
func (w *world) verifyDeliveries() {
	all, err := w.driver.Deliveries(noLimit, store.DeliveryFilter{}, wide)
	if err != nil {
		panic(err)
	}
	endpoints := make(map[pawl.ID]ledger.Endpoint)
	for _, row := range all {
		ep, known := endpoints[row.Endpoint]
		if !known {
			ep, _ = w.rows(ledger.Keys{Endpoints: []pawl.ID{row.Endpoint}}).Endpoints.Get(row.Endpoint)
			endpoints[row.Endpoint] = ep
		}
		w.verifyDelivery(row, ep)
	}
	for _, t := range w.tenants {
		for _, ep := range t.endpoints {
			if _, there := w.rows(ledger.Keys{Endpoints: []pawl.ID{ep.row.ID}}).Endpoints.Get(ep.row.ID); ep.made && !there {
				w.violate("what was answered with a 2xx is there", "endpoint %s is not", ep.row.ID.Suffix())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.receivers)) {
		w.verifyOrder(w.receivers[name])
	}
}

func (w *world) verifyDelivery(row ledger.Delivery, ep ledger.Endpoint) {
	if (row.State == pawl.DeliveryPending || row.State == pawl.DeliveryDelivering) && !ep.Disabled {
		w.violate("at rest every event is delivered, dead or skipped", "delivery %s is %s, due %s", row.ID.Suffix(), row.State, row.DueAt)
	}
	r := w.receiverAt(ep.URL)
	if r == nil {
		return
	}
	g := r.bySequence(row.Sequence)
	switch {
	case row.State == pawl.DeliveryDelivered && (g == nil || !g.accepted):
		w.violate("what counts as delivered was accepted", "delivery %s of sequence %d at %s", row.ID.Suffix(), row.Sequence, r.name)
	case g != nil && row.Attempts == 0 && row.State == pawl.DeliveryDead:
		w.violate("a dead letter was tried", "delivery %s", row.ID.Suffix())
	}
}

// verifyOrder: in the order of an endpoint's stream, no version of an operation
// comes after a higher one.
func (w *world) verifyOrder(r *receiver) {
	numbers := slices.Sorted(maps.Keys(r.numbers))
	last := make(map[string]int64)
	for _, n := range numbers {
		g := r.got[r.numbers[n]]
		if g.version == 0 || g.operation == "" {
			continue
		}
		if g.version < last[g.operation] {
			w.violate("no version comes after a higher one", "%s: sequence %d has version %d of %s after %d", r.name, n, g.version, g.operation, last[g.operation])
		}
		last[g.operation] = max(last[g.operation], g.version)
	}
}
