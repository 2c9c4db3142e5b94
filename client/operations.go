package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/pawlhq/pawl"
)

const operations = "/v1/operations"

// maxWait is the longest that the server waits with an answer.
const maxWait = 60 * time.Second

// Submit hands in a job. It has one Idempotency-Key over all its tries, so that
// it begins once, however many answers are lost. An [*Unanswered] tells the key:
// the same Submission with it is the same job.
func (c *Client) Submit(ctx context.Context, s Submission) (Operation, error) {
	body, err := s.body()
	if err != nil {
		return Operation{}, err
	}
	return made[Operation](ctx, c, keyed(operations, s.IdempotencyKey, body))
}

// Run submits a job and waits for its end. The error is about the calls alone: it
// is nil for a job that failed, was canceled or expired too. How the job ended is
// the operation's State, and of a failure its Error.
func (c *Client) Run(ctx context.Context, s Submission) (Operation, error) {
	op, err := c.Submit(ctx, s)
	if err != nil || op.State.Terminal() {
		return op, err
	}
	ended, err := c.Wait(ctx, op.ID)
	if err != nil {
		return op, err
	}
	return ended, nil
}

// Operation reads an operation.
func (c *Client) Operation(ctx context.Context, id string) (Operation, error) {
	return made[Operation](ctx, c, get(operations+"/"+segment(id), nil))
}

// Wait reads an operation once it has ended. It asks the server to answer at the
// end, again and again until the context ends; a server that is away for a while
// is asked on. As of [Client.Run] the error says nothing of how it ended: look at
// the operation's State.
func (c *Client) Wait(ctx context.Context, id string) (Operation, error) {
	poll := get(operations+"/"+segment(id), nil)
	poll.wait = maxWait
	pause := c.o.Backoff
	for {
		began := time.Now()
		op, err := made[Operation](ctx, c, poll)
		_, lost := errors.AsType[*Unanswered](err)
		problem, refused := errors.AsType[*Problem](err)
		switch {
		case err == nil && op.State.Terminal():
			return op, nil
		case err != nil && (ctx.Err() != nil || !lost && !(refused && passing(problem.Status))):
			return op, err
		}
		if time.Since(began) > 5*time.Second {
			pause = c.o.Backoff
		}
		// Where too many wait already, the answer comes at once.
		if err := sleep(ctx, pause); err != nil {
			return op, &Unanswered{Method: poll.method, Path: poll.path, Tries: 1, Err: err}
		}
		pause = min(2*pause, c.o.MaxBackoff)
	}
}

// OperationFilter narrows a list of operations; what is empty does not.
type OperationFilter struct {
	State         pawl.State
	Unfinished    bool
	Upstream      string
	TaskID        string
	CorrelationID string
	// MetadataKey and MetadataValue find by one member of the metadata.
	MetadataKey, MetadataValue string
}

// Operations lists operations, newest first.
func (c *Client) Operations(ctx context.Context, f OperationFilter) iter.Seq2[Operation, error] {
	q := params("state", f.State.String(), "upstream", f.Upstream, "task_id", f.TaskID, "correlation_id", f.CorrelationID)
	if f.Unfinished {
		q.Set("unfinished", "true")
	}
	if f.MetadataKey != "" {
		q.Set("metadata."+f.MetadataKey, f.MetadataValue)
	}
	return list[Operation](ctx, c, operations, q)
}

// OperationOfKey finds the operation that this API key submitted under an
// Idempotency-Key; [ErrNotFound] if there is none.
func (c *Client) OperationOfKey(ctx context.Context, key string) (Operation, error) {
	for op, err := range list[Operation](ctx, c, operations, params("idempotency_key", key)) {
		return op, err
	}
	return Operation{}, ErrNotFound
}

// Timeline is everything that happened to an operation, in the order of time.
func (c *Client) Timeline(ctx context.Context, id string) ([]TimelineItem, error) {
	return whole[TimelineItem](ctx, c, operations+"/"+segment(id)+"/timeline")
}

// Cancel asks to cancel an operation. What was never created is canceled in the
// answer, all else when the provider says so: wait for it.
func (c *Client) Cancel(ctx context.Context, id string) (Operation, error) {
	return made[Operation](ctx, c, keyed(operations+"/"+segment(id)+"/cancel", "", struct{}{}))
}

// Reconcile has the upstream read as soon as its limits allow.
func (c *Client) Reconcile(ctx context.Context, id string) (Operation, error) {
	return made[Operation](ctx, c, repeatable(operations+"/"+segment(id)+"/reconcile", struct{}{}))
}

// Retry is what may differ when an operation is tried again.
type Retry struct {
	Deadline     time.Time
	ExpectedCost *Money
	Account      string
	// IdempotencyKey is the new operation's; drawn if empty.
	IdempotencyKey string
}

// Retry tries an operation again that failed, expired or was canceled: a new
// operation, with RetryOf.
func (c *Client) Retry(ctx context.Context, id string, r Retry) (Operation, error) {
	return made[Operation](ctx, c, keyed(operations+"/"+segment(id)+"/retry", r.IdempotencyKey, struct {
		Deadline     *time.Time `json:"deadline,omitempty"`
		ExpectedCost *Money     `json:"expected_cost,omitempty"`
		Account      string     `json:"account,omitempty"`
	}{moment(r.Deadline), r.ExpectedCost, r.Account}))
}

// Decision is an operator's decision about an operation.
type Decision struct {
	// Decision is, of an unconfirmed operation, created, not_created or failed; of
	// a finished one, with From and Note, the state that it is corrected to.
	Decision string `json:"decision"`
	// TaskID is the provider's id, with the decision created.
	TaskID string `json:"task_id,omitempty"`
	// From is the state that a correction leaves.
	From string `json:"from,omitempty"`
	// Charge is what a corrected operation costs.
	Charge *Money `json:"charge,omitempty"`
	// Note says why.
	Note string `json:"note,omitempty"`
}

// Resolve decides what became of an unconfirmed operation, or corrects how a
// finished one ended.
func (c *Client) Resolve(ctx context.Context, id string, d Decision) (Operation, error) {
	return made[Operation](ctx, c, keyed(operations+"/"+segment(id)+"/resolve", "", d))
}

// Release lets out a result that is held back. A second time changes nothing.
func (c *Client) Release(ctx context.Context, id, note string) (Operation, error) {
	return made[Operation](ctx, c, repeatable(operations+"/"+segment(id)+"/release", struct {
		Note string `json:"note,omitempty"`
	}{note}))
}
