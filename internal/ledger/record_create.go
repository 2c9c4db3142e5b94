package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// CreateOutcome is how a create attempt ended (1-product B4).
type CreateOutcome uint8

// The outcomes of a create attempt.
const (
	// CreateAccepted: a 2xx with a readable task id.
	CreateAccepted CreateOutcome = iota + 1
	// CreateRefused: final, and ours: 400, 404, 405, 413, 415, 422, 451, 3xx.
	CreateRefused
	// CreateUnauthorized: the credential (401, 403) or, by our own egress rules,
	// the address is refused; the upstream's submits stop.
	CreateUnauthorized
	// CreateWait: 402 or 429; try again later.
	CreateWait
	// CreateNotWritten: nothing was written; safe to try again.
	CreateNotWritten
	// CreateUnknown: the create may exist.
	CreateUnknown
)

var createOutcomes = [...]string{
	CreateAccepted: "accepted", CreateRefused: "refused", CreateUnauthorized: "unauthorized",
	CreateWait: "wait", CreateNotWritten: "not_written", CreateUnknown: "unknown",
}

// String is the outcome's word in logs, metrics and timelines.
func (o CreateOutcome) String() string { return createOutcomes[o] }

// MarshalText writes the outcome's word.
func (o CreateOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// RecordCreate records how a create attempt ended. What an attempt learned is
// always taken; what failed counts only under its own lease (7-rules §4).
type RecordCreate struct {
	Header
	Up        Upstream
	Operation pawl.ID
	Fence     int64
	Outcome   CreateOutcome
	Task      string
	RequestID string
	// RetryAfter is the provider's wish, zero for none.
	RetryAfter   time.Duration
	ErrorCode    pawl.FailureCode
	ErrorWord    string
	ErrorMessage string
	// Status is the HTTP status, zero for none.
	Status int
	// First is what the answer says of the task beside its id, where HasFirst is
	// set.
	First    Observation
	HasFirst bool
}

// Head is the command's header.
func (c RecordCreate) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c RecordCreate) Size() int { return len(c.First.Result) }

// Keys names the rows the command needs.
func (c RecordCreate) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	k.Queues = add(k.Queues, GateID(c.Up.Name))
	if c.Outcome == CreateAccepted {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
}

// Decide takes the task, or decides what a failure means; it answers with the
// operation.
func (c RecordCreate) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	mine := op.Lease == c.Fence && op.Leased == ActSubmit
	if c.Outcome == CreateAccepted {
		return c.accepted(d, op, mine)
	}
	if !mine {
		return done("old_lease", op)
	}
	op.Leased, op.InFlight = NoAction, false
	switch c.Outcome {
	case CreateRefused, CreateWait:
		// It was not our credential that was refused.
		d.recovered(GateID(op.Upstream))
	case CreateNotWritten, CreateUnknown:
		d.probed(op.Upstream)
	}
	d.note(op, History{Kind: "create_failed", Reason: c.Outcome.String(), Detail: c.ErrorMessage, Version: op.Version})
	if op.State != pawl.Pending {
		d.saveDue(op)
		return done("moved_on", op)
	}
	return c.failed(d, op)
}

// accepted takes the task, under whatever lease it was learned. A task that is
// another operation's says nothing of this one, and asking again would not.
func (c RecordCreate) accepted(d *Draft, op Operation, mine bool) Outcome {
	if how := d.attach(c.Up, &op, c.Task, c.RequestID); how != foreignTask {
		if how == attached {
			c.first(d, &op)
		}
		d.recovered(GateID(op.Upstream))
		d.saveDue(op)
		return done("accepted", op)
	}
	if !mine {
		return done("old_lease", op)
	}
	d.note(op, History{Kind: "create_failed", Reason: "task_of_another_operation", Version: op.Version})
	d.unconfirm(c.Up, &op)
	d.saveDue(op)
	return done("task_of_another_operation", op)
}

// first observes what the answer says of the task, as every observation is. A
// word that is no end is older than whatever a callback has told meanwhile; a
// success that does not bring its result is read at once.
func (c RecordCreate) first(d *Draft, op *Operation) {
	known := op.UpstreamState != "" || op.State.Terminal()
	if !c.HasFirst || c.First.Task != op.Task || known && !c.First.State.Terminal() {
		return
	}
	if c.First.State == pawl.Succeeded && c.First.Result == "" && c.Up.Reads && !op.State.Terminal() {
		// Such an answer seldom holds what a success is for, or its cost.
		if op.UpstreamState == c.First.Word {
			return
		}
		op.UpstreamState = c.First.Word
		d.note(*op, History{Kind: "create_answer", Reason: "read_due", Version: op.Version})
		d.readNow(op)
		return
	}
	before, due := op.Version, op.DueAt
	j := d.observe(c.Up, op, c.First, pawl.ID{})
	if !op.State.Terminal() {
		// The first read counts from the acceptance (7-rules R23).
		op.DueAt = due
	}
	if op.Version != before || j.verdict == pawl.Applied {
		d.note(*op, History{Kind: "create_answer", Verdict: j.verdict, Reason: j.reason, Version: op.Version})
	}
}

func (c RecordCreate) failed(d *Draft, op Operation) Outcome {
	switch c.Outcome {
	case CreateRefused:
		if op.MayExist {
			return c.unknown(d, op, "refused_after_unknown")
		}
		d.fail(c.Up, &op, c.ErrorCode, c.ErrorWord, c.ErrorMessage)
		d.saveDue(op)
		return done("refused", op)
	case CreateUnauthorized:
		op.Creates--
		op.DueAt = d.Now
		d.closeGate(op.Upstream)
		d.stopUncreated(c.Up, &op)
		d.saveDue(op)
		return done("upstream_paused", op)
	case CreateUnknown:
		op.MayExist = true
		return c.unknown(d, op, "unknown")
	default:
		return c.again(d, op)
	}
}

// unknown: an idempotent create is repeated inside its window; any other
// leaves the operation unconfirmed, never sent again blindly (1-product B2).
func (c RecordCreate) unknown(d *Draft, op Operation, reason string) Outcome {
	if repeatable(op, c.Up, d.Now) && op.Creates < c.Up.SubmitAttempts && op.State == pawl.Pending {
		return c.again(d, op)
	}
	d.unconfirm(c.Up, &op)
	d.saveDue(op)
	return done(reason, op)
}

func (c RecordCreate) again(d *Draft, op Operation) Outcome {
	wait := max(d.jitter(backoff(time.Second, time.Minute, op.Creates)), min(c.RetryAfter, 24*time.Hour))
	op.DueAt = min(d.Now.Add(wait), op.Deadline)
	reason := "again"
	switch {
	case d.stopUncreated(c.Up, &op):
		reason = "canceled"
	case op.Creates >= c.Up.SubmitAttempts && op.MayExist:
		d.unconfirm(c.Up, &op)
		reason = "unconfirmed"
	case op.Creates >= c.Up.SubmitAttempts:
		c.exhausted(d, &op)
		reason = "failed"
	}
	d.saveDue(op)
	return done(reason, op)
}

// exhausted ends an operation after its last create, at once and with what that
// one was told (1-product B4, D5).
func (c RecordCreate) exhausted(d *Draft, op *Operation) {
	code, message := c.ErrorCode, c.ErrorMessage
	if code == "" {
		code = pawl.FailUnavailable
	}
	if message == "" {
		message = unreachable
		if c.Outcome == CreateWait {
			message = "the upstream asked to wait each time"
		}
	}
	d.fail(c.Up, op, code, c.ErrorWord, message)
}

// unreachable tells of an operation that could not be created.
const unreachable = "the upstream could not be reached"

// unconfirm marks that a create may have reached the provider. It stays so
// until an observation, a lookup or a person tells (1-product B2).
func (d *Draft) unconfirm(up Upstream, op *Operation) {
	op.Leased, op.InFlight, op.MayExist = NoAction, false, true
	if op.State != pawl.Pending {
		return
	}
	op.State = pawl.Unconfirmed
	op.ReadEvery = up.ReadFirst
	d.scheduleLookup(up, op)
	d.emit(op, pawl.TypeUnconfirmed)
}

// fail ends an operation that was never created; the reservation is released.
func (d *Draft) fail(up Upstream, op *Operation, code pawl.FailureCode, word, message string) {
	op.ErrorCode, op.ErrorWord, op.ErrorMessage = code, word, message
	d.end(up, op, pawl.Failed)
}

// end moves to a terminal state without an observation: state, money and the
// event in one decision.
func (d *Draft) end(up Upstream, op *Operation, state pawl.State) {
	op.State, op.FinishedAt = state, d.Now
	d.settleTerminal(op, Observation{})
	d.rest(up, op)
	d.emit(op, pawl.TypeOf(state))
	d.finished(op)
}
