package ledger

import (
	"crypto/sha256"
	"time"

	"github.com/pawlhq/pawl"
)

// WorkLine is the timeline's line of what became of an own worker's lease.
const WorkLine = "work"

// The reasons of such lines that the check of the ledger looks for, and the
// worker's words for how it ended.
const (
	workCompleted = "completed"
	workFailed    = "failed"
)

// CompleteWork is an own worker's word that the work is done, or that it stopped
// as it was asked to. It counts like a provider's: the same rules decide state
// and money.
type CompleteWork struct {
	Header
	Tenant string
	Lease  WorkLeaseID
	Up     Upstream
	// Result is the raw JSON of the result; empty for none.
	Result string
	// Cost is what it cost where HasCost is set, CostText as the worker wrote it.
	// Without, a success costs its price (1-product F2).
	Cost     pawl.Amount
	HasCost  bool
	CostText string
	Currency string
	// Canceled says that the worker stopped because it was asked to.
	Canceled bool
}

// Head is the command's header.
func (c CompleteWork) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c CompleteWork) Size() int { return len(c.Result) }

// Keys names the rows the command needs.
func (c CompleteWork) Keys(k *Keys) { k.Operations = add(k.Operations, c.Lease.Operation) }

// Decide ends the operation and answers with it; its reason is "repeated" where
// this lease has said the same before.
func (c CompleteWork) Decide(d *Draft) Outcome {
	op, refusal := d.leasedOnce(c.Tenant, c.Lease)
	if refusal != nil {
		return *refusal
	}
	if op.leaseID() == c.Lease && op.WorkDone && op.WorkReport == c.digest() {
		return done("repeated", op)
	}
	if op, refusal = d.atWork(c.Tenant, c.Lease); refusal != nil {
		return *refusal
	}
	if c.Canceled && !op.CancelRequestedAt.IsSet() {
		return dropped(pawl.Conflicting, "cancel_not_requested", "nobody has asked for this operation to be canceled; report a failure if it cannot be done")
	}
	op.WorkDone, op.WorkReport, op.WaitingAt = true, c.digest(), 0
	d.note(op, History{Kind: WorkLine, Reason: workCompleted, Detail: c.Lease.String(), Version: op.Version})
	o := Observation{
		Word: workCompleted, State: pawl.Succeeded, Progress: -1, Result: c.Result,
		Cost: c.Cost, HasCost: c.HasCost, CostText: c.CostText, Currency: c.Currency,
	}
	if c.Canceled {
		o.State, o.Word, o.Result = pawl.Canceled, "canceled", ""
	}
	if c.Canceled && op.Expiring {
		// Our clock ended it; the worker has only stopped for us.
		d.end(c.Up, &op, pawl.Expired)
	} else {
		d.observe(c.Up, &op, o, pawl.ID{})
	}
	d.saveDue(op)
	return done(op.State.String(), op)
}

// digest tells what this says from what another report under the same lease says.
func (c CompleteWork) digest() Digest {
	return sha256.Sum256([]byte(encode([]any{c.Result, c.HasCost, c.Cost, c.Currency, c.Canceled})))
}

// FailWork is an own worker's word that the work has failed. What may be tried
// again goes to another worker after a while, for as long as there are attempts
// and time left.
type FailWork struct {
	Header
	Tenant string
	Lease  WorkLeaseID
	Up     Upstream
	// Code is one of the nine (1-product D5).
	Code      pawl.FailureCode
	Message   string
	Retryable bool
}

// Head is the command's header.
func (c FailWork) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c FailWork) Keys(k *Keys) { k.Operations = add(k.Operations, c.Lease.Operation) }

// Decide ends the operation or lets it be leased again, and answers with it; its
// reason is "repeated" where this lease has said the same before, or has failed and
// another has followed.
func (c FailWork) Decide(d *Draft) Outcome {
	op, refusal := d.leasedOnce(c.Tenant, c.Lease)
	if refusal != nil {
		return *refusal
	}
	if op.WorkFailed&c.Lease.bit() != 0 && (op.leaseID() != c.Lease || op.WorkReport == c.digest()) {
		return done("repeated", op)
	}
	if op, refusal = d.atWork(c.Tenant, c.Lease); refusal != nil {
		return *refusal
	}
	op.WorkFailed |= c.Lease.bit()
	op.WorkReport, op.WaitingAt = c.digest(), 0
	d.note(op, History{Kind: WorkLine, Reason: workFailed, Detail: c.Lease.String() + " " + string(c.Code) + " " + c.Message, Version: op.Version})
	reason := c.failed(d, &op)
	d.saveDue(op)
	return done(reason, op)
}

func (c FailWork) digest() Digest {
	return sha256.Sum256([]byte(encode([]any{c.Code, c.Message, c.Retryable})))
}

// failed is what a failure means. One that follows a wish to cancel confirms it,
// and one that follows the deadline's confirms that.
func (c FailWork) failed(d *Draft, op *Operation) string {
	switch {
	case op.CancelRequestedAt.IsSet() && !op.Expiring:
		d.end(c.Up, op, pawl.Canceled)
	case op.Expiring, c.Retryable && d.Now >= op.Deadline:
		d.end(c.Up, op, pawl.Expired)
	case c.Retryable && op.Creates < c.Up.SubmitAttempts:
		wait := d.jitter(backoff(time.Second, time.Minute, op.Creates))
		op.offer(d.Now.Add(wait))
		return "again"
	default:
		d.observe(c.Up, op, Observation{Word: workFailed, State: pawl.Failed, Progress: -1, ErrorCode: c.Code, ErrorMessage: c.Message}, pawl.ID{})
	}
	return op.State.String()
}
