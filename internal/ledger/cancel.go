package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// cancelTries is how often a cancel is sent at most for one request, if nobody
// answers it; the waits double from a second to a minute. At the deadline there
// are as many tries as there are reads.
const cancelTries = 10

// Cancel asks that an operation be stopped (1-product D3). What was never
// created ends at once; what may exist is canceled at the provider as soon as
// its task is known, and the provider's word decides what became of it.
type Cancel struct {
	Header
	Once
	Tenant    string
	Operation pawl.ID
	Up        Upstream
}

// Head is the command's header.
func (c Cancel) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c Cancel) Keys(k *Keys) {
	c.needs(k)
	k.Operations = add(k.Operations, c.Operation)
}

// Decide notes the wish or ends the operation, and answers with it. Its reason
// is "finished" where there was nothing left to cancel.
func (c Cancel) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || c.Tenant != "" && op.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	asked := ask(ForCancel, c.Operation.String())
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value = op
		}
		return out
	}
	reason, refusal := c.cancel(d, &op)
	if refusal != nil {
		return *refusal
	}
	d.takeKey(c.Once, asked, op.ID)
	return done(reason, op)
}

func (c Cancel) cancel(d *Draft, op *Operation) (reason string, refusal *Outcome) {
	if op.State.Terminal() {
		return "finished", nil
	}
	if !op.uncreated() && !c.Up.Cancels {
		out := dropped(pawl.Conflicting, "cancel_unsupported", "this upstream cannot cancel a task; the operation goes on to its end")
		if c.Up.Adapter == "" {
			out = dropped(pawl.Conflicting, "upstream_unknown", "the operation's upstream is no longer configured, so that nobody can be asked to cancel it; configure it again")
		}
		return "", &out
	}
	// A wish that is under way, or was granted, is not repeated; one that the
	// provider refused or never answered is.
	if op.CancelRequestedAt.IsSet() && (op.CancelConfirmed || op.CancelDueAt.IsSet() || op.Task == "") {
		return "requested", nil
	}
	if !op.CancelRequestedAt.IsSet() {
		op.CancelRequestedAt = d.Now
	}
	d.note(*op, History{Kind: "cancel_requested", Version: op.Version})
	d.audit(op.Tenant, "operation.cancel", op.ID.Text(pawl.PrefixOperation), "")
	reason = "requested"
	if d.stopUncreated(c.Up, op) {
		reason = "canceled"
	} else {
		d.cancelSoon(c.Up, op)
	}
	d.saveDue(*op)
	return reason, nil
}

// uncreated reports whether nothing of the operation can exist at the provider:
// no create is on the wire and none ended without an answer. So it is with what
// waits for an own worker.
func (op Operation) uncreated() bool {
	return op.WaitingAt.IsSet() || op.State == pawl.Pending && !op.InFlight && !op.MayExist
}

// stopUncreated ends an operation that is to be canceled and was never created.
func (d *Draft) stopUncreated(up Upstream, op *Operation) bool {
	if !op.CancelRequestedAt.IsSet() || !op.uncreated() {
		return false
	}
	d.end(up, op, pawl.Canceled)
	return true
}

// cancelSoon makes the cancel of a task that is known due now. The caller saves
// the operation.
func (d *Draft) cancelSoon(up Upstream, op *Operation) {
	wanted := op.CancelRequestedAt.IsSet() && !op.CancelConfirmed && up.Cancels
	if !wanted || op.Task == "" || op.State.Terminal() {
		return
	}
	op.CancelDueAt, op.Cancels = d.Now, 0
	if op.Leased == NoAction {
		op.DueAt = d.Now
	}
}

// cancelAtDeadline has the provider told to stop what its last read found
// unfinished; then the operation expires (1-product D4).
func (d *Draft) cancelAtDeadline(op *Operation) {
	if !op.CancelRequestedAt.IsSet() {
		op.CancelRequestedAt = d.Now
	}
	op.Expiring, op.CancelDueAt, op.Cancels, op.DueAt = true, d.Now, 0, d.Now
	d.note(*op, History{Kind: "cancel_requested", Reason: "deadline", Version: op.Version})
}

// CancelOutcome is how a cancel that was sent ended.
type CancelOutcome uint8

// The outcomes of a cancel.
const (
	// CancelTaken: the provider will stop the task, or has.
	CancelTaken CancelOutcome = iota + 1
	// CancelRefused: it will not, or does not know the task; a read tells.
	CancelRefused
	// CancelUnknown: it may have been taken; it is sent again.
	CancelUnknown
	// CancelUnreachable: nobody can have seen it; it is sent again.
	CancelUnreachable
)

var cancelOutcomes = [...]string{
	CancelTaken: "taken", CancelRefused: "refused", CancelUnknown: "unknown", CancelUnreachable: "unreachable",
}

// String is the outcome's word in logs, metrics and timelines.
func (o CancelOutcome) String() string { return cancelOutcomes[o] }

// MarshalText writes the outcome's word.
func (o CancelOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// RecordCancel records how a cancel ended. That it was taken counts under any
// lease; a failure only under its own (7-rules §4).
type RecordCancel struct {
	Header
	Up        Upstream
	Operation pawl.ID
	Fence     int64
	Outcome   CancelOutcome
	// Obs is what the answer said of the task, where Observed is set.
	Obs        Observation
	Observed   bool
	RetryAfter time.Duration
	Message    string
}

// Head is the command's header.
func (c RecordCancel) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c RecordCancel) Size() int { return len(c.Obs.Result) }

// Keys names the rows the command needs.
func (c RecordCancel) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide takes what was learned, decides what follows, and answers with the
// operation.
func (c RecordCancel) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	mine := op.Lease == c.Fence && op.Leased == ActCancel
	if !mine && c.Outcome != CancelTaken {
		return done("old_lease", op)
	}
	if mine {
		op.Leased = NoAction
	}
	reason := c.taken(d, &op)
	if mine && !op.State.Terminal() {
		reason = c.next(d, &op)
	}
	d.saveDue(op)
	return done(reason, op)
}

// taken notes that the provider took the cancel, and what it said of the task.
func (c RecordCancel) taken(d *Draft, op *Operation) string {
	if c.Outcome != CancelTaken {
		d.note(*op, History{Kind: "cancel", Reason: c.Outcome.String(), Detail: c.Message, Version: op.Version})
		return c.Outcome.String()
	}
	if !op.CancelConfirmed {
		op.CancelConfirmed, op.CancelDueAt = true, 0
		d.note(*op, History{Kind: "cancel", Reason: c.Outcome.String(), Version: op.Version})
	}
	// At the deadline it is our clock that ends what the provider stops for us.
	if c.Observed && c.Obs.Task == op.Task && !(op.Expiring && c.Obs.State == pawl.Canceled) {
		before := op.Version
		j := d.observe(c.Up, op, c.Obs, pawl.ID{})
		if op.Version != before || j.verdict == pawl.Applied {
			d.note(*op, History{Kind: "read", Verdict: j.verdict, Reason: j.reason, Version: op.Version})
		}
	}
	return c.Outcome.String()
}

// next decides what follows for an operation that has not ended yet.
func (c RecordCancel) next(d *Draft, op *Operation) string {
	switch {
	case c.Outcome == CancelTaken && op.Expiring:
		d.end(c.Up, op, pawl.Expired)
		return "expired"
	case c.Outcome == CancelTaken:
		// Reads tell what the provider made of it.
		op.ReadEvery = c.Up.ReadFirst
		d.scheduleRead(c.Up, op)
	case c.Outcome == CancelRefused:
		// It may have ended meanwhile, or be unknown: a read tells.
		op.CancelDueAt = 0
		d.scheduleRead(c.Up, op)
		if c.Up.Reads {
			op.DueAt = d.Now
		}
	case op.Cancels < cancelTries && !op.Expiring:
		wait := d.jitter(backoff(time.Second, time.Minute, op.Cancels))
		op.CancelDueAt = d.Now.Add(max(wait, min(c.RetryAfter, time.Hour)))
		d.scheduleRead(c.Up, op)
	case op.Cancels < deadlineReads && op.Expiring:
		op.CancelDueAt = d.Now.Add(deadlineEvery)
		op.DueAt = op.CancelDueAt
	default:
		op.CancelDueAt = 0
		d.note(*op, History{Kind: "cancel", Reason: "given_up", Version: op.Version})
		if op.Expiring {
			d.end(c.Up, op, pawl.Expired)
			return "expired"
		}
		d.scheduleRead(c.Up, op)
		return "given_up"
	}
	return c.Outcome.String()
}
