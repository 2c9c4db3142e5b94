package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// ReadOutcome is how a status read ended.
type ReadOutcome uint8

// The outcomes of a read.
const (
	// ReadObserved: the provider answered for the task.
	ReadObserved ReadOutcome = iota + 1
	// ReadNotFound: the provider does not know the task.
	ReadNotFound
	// ReadOtherTask: the answer names another task; it is refused (C7).
	ReadOtherTask
	// ReadUnknownState: the answer has a state word outside the vocabulary.
	ReadUnknownState
	// ReadUnreachable: no usable answer.
	ReadUnreachable
	// ReadUnauthorized: 401 or 403.
	ReadUnauthorized
)

var readOutcomes = [...]string{
	ReadObserved: "observed", ReadNotFound: "not_found", ReadOtherTask: "other_task",
	ReadUnknownState: "unknown_state", ReadUnreachable: "unreachable", ReadUnauthorized: "unauthorized",
}

// String is the outcome's word in logs, metrics and timelines.
func (o ReadOutcome) String() string { return readOutcomes[o] }

// MarshalText writes the outcome's word.
func (o ReadOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// deadlineReads is how often an operation is read at its deadline, and
// deadlineEvery how far apart: up to three reads within 60 s (1-product D4).
// The same holds for the result of a success that came without one.
const (
	deadlineReads = 3
	deadlineEvery = 20 * time.Second
)

// reconcileReads is how often an operation is read on that could not be read at
// its deadline, reconcileFirst and reconcileMost the waits in between.
const (
	reconcileReads = 30
	reconcileFirst = time.Hour
	reconcileMost  = 24 * time.Hour
)

// patientReads in a row may be without an answer before the task is read more
// rarely; slowestReads is how many times the longest interval that may become.
const (
	patientReads = 4
	slowestReads = 16
)

// unknownReads in a row over unknownSpan make a task unknown (7-rules R24).
const (
	unknownReads = 3
	unknownSpan  = 60 * time.Second
)

// ObserveStatus takes the answer of a status read. What was learned counts
// under any lease; failures only under their own (7-rules §4).
type ObserveStatus struct {
	Header
	Up         Upstream
	Operation  pawl.ID
	Fence      int64
	Outcome    ReadOutcome
	Obs        Observation
	RetryAfter time.Duration
	Message    string
}

// Head is the command's header.
func (c ObserveStatus) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c ObserveStatus) Size() int { return len(c.Obs.Result) }

// Keys names the rows the command needs.
func (c ObserveStatus) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide applies the answer, sets the next read and answers with the
// operation.
func (c ObserveStatus) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if c.Outcome == ReadObserved && c.Obs.Task != op.Task {
		c.Outcome = ReadOtherTask
	}
	mine := op.Lease == c.Fence && op.Leased == ActRead
	if !mine && c.Outcome != ReadObserved {
		return done("old_lease", op)
	}
	if mine {
		op.Leased = NoAction
		op.Reads++
		op.LastReadAt = d.Now
	}
	ended := op.State.Terminal()
	reason := c.take(d, &op)
	if mine && ended == op.State.Terminal() {
		reason = c.next(d, &op, reason)
	}
	d.saveDue(op)
	return done(reason, op)
}

// next decides what follows a read that has not ended the operation.
func (c ObserveStatus) next(d *Draft, op *Operation, reason string) string {
	switch ended := op.State.Terminal(); {
	case ended && op.Settled:
		op.DueAt = pawl.Never
		op.DeadlineReads++
		switch {
		case op.wantsRead() && op.DeadlineReads < deadlineReads:
			op.DueAt = d.Now.Add(max(deadlineEvery, min(c.RetryAfter, time.Hour)))
		case op.WantsLinks:
			d.noFreshLinks(c.Up, op, c.Outcome.String())
		}
		return reason
	case ended && d.settleOverdue(c.Up, op):
		return "review"
	case !ended && d.Now >= op.Deadline:
		return c.atDeadline(d, op)
	}
	d.scheduleRead(c.Up, op)
	c.backOff(d, op)
	op.DueAt = max(op.DueAt, d.Now.Add(min(c.RetryAfter, time.Hour)))
	d.boundByDeadline(c.Up, op)
	return reason
}

// backOff waits longer and longer for a task that the provider never answers
// for: each such read may hold one of the upstream's few places for as long as
// a call may take, and others wait for it (O-056).
func (c ObserveStatus) backOff(d *Draft, op *Operation) {
	if c.Outcome != ReadUnreachable {
		op.Unreached = 0
		return
	}
	if op.Unreached++; op.Unreached > patientReads {
		wait := backoff(2*c.Up.ReadMax, slowestReads*c.Up.ReadMax, op.Unreached-patientReads)
		op.DueAt = max(op.DueAt, d.Now.Add(d.jitter(wait)))
	}
}

func (c ObserveStatus) take(d *Draft, op *Operation) string {
	h := History{Kind: "read", Reason: c.Outcome.String(), Detail: c.Message}
	switch c.Outcome {
	case ReadObserved:
		op.NotFound = 0
		d.recovered(WorkQueueID(ReadQueue, op.Upstream, op.Tenant))
		d.closeOpen(op, pawl.ReviewTaskUnknown, DecidedBySystem)
		before := op.Version
		j := d.observe(c.Up, op, c.Obs, pawl.ID{})
		h.Verdict, h.Reason = j.verdict, j.reason
		if op.Version == before && j.verdict != pawl.Applied {
			return j.reason
		}
	case ReadOtherTask:
		h.Verdict, h.Reason = pawl.Rejected, "task_mismatch"
	case ReadUnknownState:
		h.Verdict = pawl.UnknownState
		if op.UpstreamState != c.Obs.Word {
			op.UpstreamState = c.Obs.Word
			d.openReview(op, pawl.ReviewUnknownState, pawl.ID{}, c.Up.Owner, "state word "+c.Obs.Word)
		}
	case ReadNotFound:
		c.notFound(d, op)
	case ReadUnauthorized:
		d.pause(WorkQueueID(ReadQueue, op.Upstream, op.Tenant), pausedUnauthorized)
	}
	h.Version = op.Version
	d.noteRead(op, h)
	return h.Reason
}

func (c ObserveStatus) notFound(d *Draft, op *Operation) {
	if op.NotFound == 0 {
		op.NotFoundAt = d.Now
	}
	op.NotFound++
	if op.NotFound >= unknownReads && d.Now.Sub(op.NotFoundAt) >= unknownSpan {
		d.openReview(op, pawl.ReviewTaskUnknown, pawl.ID{}, c.Up.Owner, "")
	}
}

// atDeadline decides an operation whose deadline has passed: a good read that
// says unfinished expires it, anything else is tried again up to three times,
// then a person decides (1-product D4). Until then it is read on, ever more
// rarely and for about four weeks, so that an upstream which comes back may
// answer the question (1-product E2).
func (c ObserveStatus) atDeadline(d *Draft, op *Operation) string {
	op.DeadlineReads++
	if c.Outcome == ReadObserved && c.Obs.State != 0 && !c.Obs.State.Terminal() {
		if c.Up.Cancels && !op.CancelConfirmed && !op.Expiring {
			d.cancelAtDeadline(op)
			return "canceling"
		}
		d.end(c.Up, op, pawl.Expired)
		return "expired"
	}
	if op.DeadlineReads < deadlineReads {
		op.DueAt = d.Now.Add(deadlineEvery)
		return "deadline_read_failed"
	}
	op.DueAt = pawl.Never
	if n := op.DeadlineReads - deadlineReads; n < reconcileReads {
		op.DueAt = d.Now.Add(d.jitter(backoff(reconcileFirst, reconcileMost, n+1)))
	}
	d.openReview(op, pawl.ReviewDeadlineUnread, pawl.ID{}, c.Up.Owner, c.Outcome.String())
	return "review"
}

// ReadNow makes a read of the operation due now, as an operator asks for it.
type ReadNow struct {
	Header
	Tenant    string
	Operation pawl.ID
	Up        Upstream
}

// Head is the command's header.
func (c ReadNow) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ReadNow) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide makes the read due; only an operation with a task can be read.
func (c ReadNow) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || c.Tenant != "" && op.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if op.Task == "" || !c.Up.Reads {
		return dropped(pawl.Conflicting, "nothing_to_read", "no task is known for this operation yet, or its upstream cannot be read")
	}
	if op.State.Terminal() && op.Settled && !op.wantsRead() {
		return done("finished", op)
	}
	if op.Leased != NoAction || op.DueAt <= d.Now {
		return done("due", op)
	}
	d.readNow(&op)
	d.note(op, History{Kind: "read_requested", Version: op.Version})
	d.audit(op.Tenant, "operation.read", op.ID.Text(pawl.PrefixOperation), "")
	d.saveDue(op)
	return done("due", op)
}

// readNow makes a read due that is asked for: its own line of the timeline tells
// what it came to.
func (d *Draft) readNow(op *Operation) {
	op.ReadLine = ReadLine{}
	op.DeadlineReads, op.NotFound = 0, 0
	if op.Leased == NoAction {
		op.DueAt = d.Now
	}
}
