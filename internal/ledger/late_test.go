package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// A pause stops creates, not the clock: what was never created expires at its
// deadline and its money is free again; what may have been is for a person.
func TestDeadlineUnderAPause(t *testing.T) {
	up := upstream()
	w := stage(t)
	running := w.running(up, "running", 10)
	sent := w.submit(up, "sent", 10)
	expect(t, "on the wire", len(leases(w.leaseOf(tenant, 1))), 1)
	waits := w.submit(up, "waits", 10)
	stopped := w.submit(up, "stopped", 10)
	w.do(PauseUpstream{Upstream: "s"})
	end := func(op Operation) string { return w.do(EndLate{Up: up, Operation: op.ID}).Reason }

	w.now = waits.Deadline - 1
	expect(t, "before its deadline", end(waits), "not_late")
	w.now = waits.Deadline
	expect(t, "never created", end(waits), "expired")
	expect(t, "again", end(waits), "not_late")
	expect(t, "nobody heard of the create", end(sent), "unconfirmed")
	expect(t, "at the provider", end(running), "not_late")
	expect(t, "of another upstream", w.do(EndLate{Up: Upstream{Name: "other"}, Operation: stopped.ID}).Reason, "not_late")
	expectState(t, "never created", w.ops[waits.ID], pawl.Expired)
	expect(t, "its money", w.ops[waits.ID].Settled, true)
	expectState(t, "on the wire", w.ops[sent.ID], pawl.Unconfirmed)
	expectState(t, "at the provider", w.ops[running.ID], pawl.Running)
	w.sound()
}

// A create that is on the wire at its deadline is heard first.
func TestCreateOnTheWireAtItsDeadline(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.submit(up, "a", 10)
	w.now = op.Deadline.Add(-time.Second)
	l := leases(w.leaseOf(tenant, 1))[0]
	w.do(PauseUpstream{Upstream: "s"})
	w.now = op.Deadline
	expect(t, "leased", w.do(EndLate{Up: up, Operation: op.ID}).Reason, "not_late")
	w.answer(up, l, CreateAccepted, "task")
	expectState(t, "created", w.ops[op.ID], pawl.Running)
	w.sound()
}
