package ledger

import (
	"strconv"

	"github.com/pawlhq/pawl"
)

// ResolveOperation is an operator's decision about an unconfirmed operation
// (7-rules R8), or the correction of one that has ended (R9).
type ResolveOperation struct {
	Header
	Once
	Tenant    string
	Operation pawl.ID
	Up        Upstream
	Decision  string
	Task      string
	Note      string
	// From is the end that a correction leaves, zero for a decision about an
	// unconfirmed operation: whoever decides has seen what is decided.
	From pawl.State
	// Charge is what a corrected operation costs, where HasCharge is set.
	Charge    pawl.Amount
	HasCharge bool
}

// Head is the command's header.
func (c ResolveOperation) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ResolveOperation) Keys(k *Keys) {
	c.needs(k)
	k.Operations = add(k.Operations, c.Operation)
	if c.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
}

// Decide carries the decision out and answers with the operation.
func (c ResolveOperation) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || c.Tenant != "" && op.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if !c.known() {
		return dropped(pawl.Invalid, "unknown_decision", `an unconfirmed operation is decided with "created", "not_created" or "failed", a finished one corrected with "succeeded", "failed", "canceled" or "expired"`)
	}
	asked := ask(ForResolve, c.Operation.String(), c.Decision, c.Task, c.Note, c.From.String(), c.Charge.String(), strconv.FormatBool(c.HasCharge))
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value = op
		}
		return out
	}
	decide := c.decide
	if op.State.Terminal() {
		decide = c.correct
	}
	if refusal := decide(d, &op); refusal != nil {
		return *refusal
	}
	d.saveDue(op)
	d.takeKey(c.Once, asked, op.ID)
	return done(c.Decision, op)
}

// known reports whether there is such a decision at all, of whatever operation.
func (c ResolveOperation) known() bool {
	state, ok := pawl.ParseState(c.Decision)
	return ok && state.Terminal() || c.Decision == pawl.DecideCreated || c.Decision == pawl.DecideNotCreated
}

// decide is the decision about an unconfirmed operation.
func (c ResolveOperation) decide(d *Draft, op *Operation) *Outcome {
	if op.State != pawl.Unconfirmed || c.From != 0 {
		out := dropped(pawl.Conflicting, "not_unconfirmed", "only an operation that is unconfirmed or has ended is decided so; this one is "+op.State.String())
		return &out
	}
	d.closeOpen(op, pawl.ReviewUnconfirmed, c.Decision)
	switch c.Decision {
	case pawl.DecideCreated:
		if c.Task == "" {
			out := dropped(pawl.Invalid, "task_id_missing", `"created" needs the "task_id" that the provider gave`)
			return &out
		}
		renewDeadline(op, d.Now)
		if d.attach(c.Up, op, c.Task, "") != attached {
			out := dropped(pawl.Conflicting, "task_of_another_operation", "that task belongs to another operation")
			return &out
		}
	case pawl.DecideNotCreated:
		op.State, op.MayExist, op.InFlight = pawl.Pending, false, false
		op.FormerCreates += op.Creates
		op.Creates, op.FirstCreateAt, op.DueAt = 0, 0, d.Now
		renewDeadline(op, d.Now)
		d.emit(op, pawl.TypeCorrected)
		d.stopUncreated(c.Up, op)
	case pawl.DecideFailed:
		d.fail(c.Up, op, pawl.FailUpstream, "", "given up by an operator")
	default:
		out := dropped(pawl.Invalid, "unknown_decision", `the decision about an unconfirmed operation must be "created", "not_created" or "failed"`)
		return &out
	}
	d.note(*op, History{Kind: ResolvedLine, Reason: c.Decision, Detail: c.Note, Version: op.Version})
	d.audit(op.Tenant, "operation.resolve", op.ID.Text(pawl.PrefixOperation), c.Decision)
	return nil
}

// renewDeadline gives an operation that a person lets go on as long as it had
// at first, if its deadline has passed meanwhile.
func renewDeadline(op *Operation, now pawl.Time) {
	if op.Deadline.IsSet() && op.Deadline <= now {
		op.Deadline = now.Add(op.Deadline.Sub(op.CreatedAt))
	}
}
