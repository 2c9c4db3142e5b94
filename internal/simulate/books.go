package simulate

import (
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
	case ledger.RecordLookup:
		if c.Task != "" {
			w.learned(c.Up.Name, c.Task, c.Operation)
		}
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
			b.decided[h.Operation] = append(b.decided[h.Operation], h.Detail)
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
