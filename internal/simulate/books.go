package simulate

import (
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// books are what those outside know by themselves, apart from the ledger.
type books struct {
	// operations and events are what somebody was told of by a 2xx.
	operations map[pawl.ID]bool
	events     map[string]bool
	outbound   map[pawl.ID]bool
	// credits are asked for under a key; credited and refused say that it was
	// answered so.
	credits           map[string]*creditBook
	credited, refused map[string]bool
	// claimed is when a create was last leased for an operation.
	claimed map[pawl.ID]pawl.Time
	// decided are what people decided about operations.
	decided map[pawl.ID][]string
}

// creditBook is a credit that was asked for under one key, so often.
type creditBook struct {
	tenant *tenant
	amount pawl.Amount
	since  pawl.Time
	tries  int
}

func newBooks() books {
	return books{
		operations: map[pawl.ID]bool{}, events: map[string]bool{}, outbound: map[pawl.ID]bool{}, credits: map[string]*creditBook{}, credited: map[string]bool{}, refused: map[string]bool{},
		claimed: map[pawl.ID]pawl.Time{}, decided: map[pawl.ID][]string{},
	}
}

// promiseOperation notes that an application was told of an operation.
func (b *books) promiseOperation(id pawl.ID) { b.operations[id] = true }

// promiseEvent notes that a provider was told that its event was taken.
func (b *books) promiseEvent(v verdictAnswer) {
	if v.EventID != "" {
		b.events[v.EventID] = true
	}
}

// promiseOutbound notes that a tenant was told of its own event.
func (b *books) promiseOutbound(id pawl.ID) { b.outbound[id] = true }

// notCreated counts how often a person has said that an operation was never
// created.
func (b *books) notCreated(suffix string) (n int) {
	id, err := pawl.ParseSuffix(suffix)
	if err != nil {
		return 0
	}
	for _, d := range b.decided[id] {
		if d == pawl.DecideNotCreated {
			n++
		}
	}
	return n
}

// decided is told what a command came to that took effect.
func (w *world) decided(n *node, c ledger.Command, r store.Result) {
	if r.Err != nil {
		return
	}
	w.commands++
	out := r.Outcome
	if out.Reason == "panic" || out.Reason == "miss" {
		w.violate("no command fails by a fault of its own", "%T: %s %+v", c, out.Reason, out.Value)
	}
	w.trace("%s: %T: %s", n.name, c, out.Reason)
	if out.Err != nil {
		return
	}
	switch c := c.(type) {
	case ledger.RecordCreate:
		if c.Outcome == ledger.CreateAccepted {
			w.learned(c.Up.Name, c.Task, c.Operation)
		}
		w.fenced(c.Fence, out, c.Outcome != ledger.CreateAccepted)
	case ledger.ObserveStatus:
		w.observed(c, out.Reason)
		w.fenced(c.Fence, out, c.Outcome != ledger.ReadObserved)
	case ledger.RecordCancel:
		w.fenced(c.Fence, out, c.Outcome != ledger.CancelTaken)
	case ledger.RecordAttempt:
		w.attempted(c)
		w.fenced(c.Fence, out, c.Status/100 != 2)
	case ledger.RecordLookup:
		if c.Task != "" {
			w.learned(c.Up.Name, c.Task, c.Operation)
		}
		w.fenced(c.Fence, out, c.Task == "")
	}
}

// write notes what a transaction has written down about claims and decisions.
func (b *books) write(rows *ledger.Rows, now pawl.Time) {
	for _, h := range rows.History {
		switch h.Kind {
		case ledger.CreateLine:
			b.claimed[h.Operation] = now
		case ledger.ResolvedLine:
			b.decided[h.Operation] = append(b.decided[h.Operation], h.Reason)
		case "review":
			decision, _, _ := strings.Cut(h.Detail, ": ") // The note follows.
			b.decided[h.Operation] = append(b.decided[h.Operation], decision)
		}
	}
}

// learned holds a task id that a node was told, under whatever lease, against
// the ledger: from now on it is some operation's.
func (w *world) learned(upstream, name string, operation pawl.ID) {
	id := ledger.TaskID{Upstream: upstream, Task: name}
	row, _ := w.rows(ledger.Keys{Tasks: []ledger.TaskID{id}}).Tasks.Get(id)
	op, _ := w.operation(operation)
	if row.Operation.IsZero() && op.Task == "" {
		w.violate("a task id that was learned is never lost", "task %s of operation %s, which is %s", name, operation.Suffix(), op.State)
	}
}

// fenced: what failed under an old lease changes nothing (7-rules §4).
func (w *world) fenced(fence int64, out ledger.Outcome, failed bool) {
	lease := fence
	switch row := out.Value.(type) {
	case ledger.Operation:
		lease = row.Lease
	case ledger.Delivery:
		lease = row.Lease
	}
	if failed && lease != fence && out.Reason != "old_lease" {
		w.violate("a failure counts under its own lease alone", "lease %d of %d came to %s", fence, lease, out.Reason)
	}
}

// observed holds an end that a read has shown, under whatever lease, against
// the ledger; and what our clock ends against the read that it needs.
func (w *world) observed(c ledger.ObserveStatus, reason string) {
	op, _ := w.operation(c.Operation)
	unfinished := c.Outcome == ledger.ReadObserved && c.Obs.State != 0 && !c.Obs.State.Terminal()
	if (reason == "expired" || reason == "canceling") && !unfinished {
		w.violate("nothing expires unread", "operation %s after a read that ended as %s", op.ID.Suffix(), c.Outcome)
	}
	ended := c.Outcome == ledger.ReadObserved && c.Obs.Task == op.Task && c.Obs.State.Terminal()
	if ended && !op.State.Terminal() {
		w.violate("an end that was read is never lost", "operation %s is %s, and its task %s", op.ID.Suffix(), op.State, c.Obs.State)
	}
}

// attempted holds a 2xx of a receiver, under whatever lease, against the ledger.
func (w *world) attempted(c ledger.RecordAttempt) {
	row, _ := w.rows(ledger.Keys{Deliveries: []pawl.ID{c.Delivery}}).Deliveries.Get(c.Delivery)
	if c.Status/100 == 2 && row.State != pawl.DeliveryDelivered {
		w.violate("what a receiver has accepted is delivered", "delivery %s is %s after a %d", row.ID.Suffix(), row.State, c.Status)
	}
}
