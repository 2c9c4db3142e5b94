package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// hintEvery is the least time between reads of one operation that hints bring
// about (1-product C6); afterHint is the same before jitter.
const (
	hintEvery = 2 * time.Second
	afterHint = hintEvery * 10 / 9
)

// Reasons of hints.
const (
	// reasonReadDue: a read is due because of it.
	reasonReadDue = "read_due"
	// reasonConfirm: a verified event names an end, which a read must confirm.
	reasonConfirm = "confirm"
)

// ReceiveHint takes a callback that proves nothing: it is not signed, or its
// signature does not cover the body. It ends after line 5 of 7-rules §1: a read
// of its operation becomes due, and that is all. Nothing is stored of it, and
// it teaches no task id (R19).
type ReceiveHint struct {
	Header
	Up Upstream
	// Token is the operation whose callback address it came to, zero for none.
	Token pawl.ID
	// Task is what the body names, empty for none.
	Task string
}

// Head is the command's header.
func (c ReceiveHint) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ReceiveHint) Keys(k *Keys) {
	k.Operations = addSet(k.Operations, c.Token)
	if c.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
}

// Decide makes the read due and answers with [Received], whose reason says
// what came of it.
func (c ReceiveHint) Decide(d *Draft) Outcome {
	arrival := ReceiveEvent{Up: c.Up, Token: c.Token, Obs: Observation{Task: c.Task}}
	op, known, refusal := arrival.operation(d)
	if refusal != nil {
		return *refusal
	}
	if c.Task != "" && arrival.contradiction(d, op) != "" {
		return dropped(pawl.Invalid, "task_mismatch", "the body names another task than the address")
	}
	if !known {
		return c.hinted("unknown_task", op)
	}
	if op.State.Terminal() && op.Settled {
		return c.hinted("finished", op)
	}
	reason := d.readSoon(c.Up, &op)
	if reason == reasonReadDue {
		d.note(op, History{Kind: CallbackLine, Verdict: pawl.Hint, Reason: reason, Version: op.Version})
	}
	d.saveDue(op)
	return c.hinted(reason, op)
}

func (c ReceiveHint) hinted(reason string, op Operation) Outcome {
	return done(reason, Received{Verdict: pawl.Hint, Reason: reason, Operation: op.ID, Submission: op.Traceparent})
}

// readSoon makes a read due as a hint asks for it: at most one in hintEvery,
// inside the upstream's read limit, which whoever reads obeys. The caller saves
// the operation.
func (d *Draft) readSoon(up Upstream, op *Operation) (reason string) {
	due := max(d.Now, op.LastReadAt.Add(hintEvery))
	switch {
	case op.Task == "" || !up.Reads:
		return "nothing_to_read"
	case op.Leased == ActRead:
		// The answer under way may be older than the hint: another read follows it.
		op.ReadEvery = min(op.ReadEvery, afterHint)
		return "read_under_way"
	case op.Leased != NoAction || op.DueAt <= due:
		return "read_awaited"
	}
	op.DueAt = due
	return reasonReadDue
}

// mustConfirm reports whether an observation by callback names an end that only
// a read may apply. An operation that has ended with its money settled is read
// no more.
func (up Upstream) mustConfirm(op Operation, o Observation) bool {
	return up.Confirm && up.Reads && o.State.Terminal() && !o.ProgressOnly && !(op.State.Terminal() && op.Settled)
}

// restrained is what a callback may do to an operation that has ended with its
// money settled, which is read no more, where only reads are applied: another
// end asks a person, and no money moves.
func (up Upstream) restrained(op Operation, o Observation) (Upstream, Observation) {
	if !up.Confirm || !op.State.Terminal() || !o.State.Terminal() {
		return up, o
	}
	up.AcceptLateSuccess = false
	if o.State == op.State {
		o.HasCost, o.Cost, o.CostText, o.Result = false, 0, "", ""
	}
	return up, o
}

// confirm makes a verified event that names an end a hint. Its key is left free
// and its body is not stored: a repeat is judged anew.
func (c ReceiveEvent) confirm(d *Draft, e Event, op Operation) Outcome {
	d.readSoon(c.Up, &op)
	line := History{Kind: CallbackLine, Verdict: pawl.Hint, Reason: c.line(reasonConfirm), Version: op.Version}
	stored := pawl.ID{}
	if c.again != nil {
		e.Operation, e.Tenant = op.ID, op.Tenant
		op.Kept |= KeptCallbacks
		c.store(d, e, pawl.Hint, reasonConfirm)
		line.Event, stored = e.ID, e.ID
	}
	d.note(op, line)
	d.saveDue(op)
	e.ID = stored
	return c.answer(e, op, pawl.Hint, reasonConfirm)
}
