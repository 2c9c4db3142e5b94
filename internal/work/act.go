package work

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Done is an action that has ended and is to be recorded.
type Done struct {
	lease   ledger.Lease
	command ledger.Command
}

// Act does what a job is for, at now, and gives its slot back. It returns when
// the upstream's timeout is over at the latest. A job that comes too late to
// end within its lease is not begun: what comes back hands the lease back.
func (w *Worker) Act(ctx context.Context, j Job, now time.Time) Done {
	// The wire is free; what is left is ours.
	defer w.finish(j)
	if j.overdue(now) {
		return Done{j.lease, release(j.lease)}
	}
	return Done{j.lease, w.act(ctx, j.up, j.lease)}
}

// attempt is [Worker.Act] in the running node, where a panic is an action that
// nobody knows the outcome of: it counts as such, and harms nothing else (O-107).
func (w *Worker) attempt(ctx context.Context, j Job, now time.Time) (done Done) {
	defer telemetry.Contain(w.o.Log, "action on "+j.lease.Operation.ID.Text(pawl.PrefixOperation), func() {
		done = Done{j.lease, unknown(j.up.Policy(), j.lease)}
	})
	return w.Act(ctx, j, now)
}

// unknown records an action of which nothing is known.
func unknown(up ledger.Upstream, l ledger.Lease) ledger.Command {
	const message = "the action failed by a fault of ours"
	switch head, op := store.NewHeader(""), l.Operation.ID; l.Action {
	case ledger.ActSubmit:
		return ledger.RecordCreate{Header: head, Up: up, Operation: op, Fence: l.Fence, Outcome: ledger.CreateUnknown, ErrorMessage: message}
	case ledger.ActLookup:
		return ledger.RecordLookup{Header: head, Up: up, Operation: op, Fence: l.Fence, Message: message}
	case ledger.ActRead:
		return ledger.ObserveStatus{Header: head, Up: up, Operation: op, Fence: l.Fence, Outcome: ledger.ReadUnreachable, Message: message}
	case ledger.ActCancel:
		return ledger.RecordCancel{Header: head, Up: up, Operation: op, Fence: l.Fence, Outcome: ledger.CancelUnknown, Message: message}
	default:
		return release(l)
	}
}

// finish gives the slot back and lets the loop use it.
func (w *Worker) finish(j Job) {
	j.slots.give(1)
	w.Wake()
}

func release(l ledger.Lease) ledger.ReleaseLease {
	return ledger.ReleaseLease{Header: store.NewHeader(""), Operation: l.Operation.ID, Fence: l.Fence}
}

// act makes the call and gives the command that records how it went.
func (w *Worker) act(ctx context.Context, up upstream.Upstream, l ledger.Lease) ledger.Command {
	up = up.Hiding(w.o.Callbacks.Token(up.Name(), l.Operation.ID))
	if w.o.Traces != nil {
		ctx = w.o.Traces.On(ctx, errand(up.Name(), l))
	}
	switch l.Action {
	case ledger.ActSubmit:
		return w.submit(ctx, up, l)
	case ledger.ActLookup:
		return w.lookup(ctx, up, l)
	case ledger.ActRead:
		return w.read(ctx, up, l)
	case ledger.ActCancel:
		return w.cancel(ctx, up, l)
	default:
		return ledger.Advance{Header: store.NewHeader(""), Up: up.Policy(), Operation: l.Operation.ID, Fence: l.Fence}
	}
}

// errand says what an action is for. What is done once for a submission belongs
// to its trace; of reads there may be hundreds (TR-06).
func errand(upstream string, l ledger.Lease) telemetry.Errand {
	op := l.Operation
	e := telemetry.Errand{Submission: op.Traceparent, Seed: op.ID[:], Upstream: upstream, Operation: op.ID.Text(pawl.PrefixOperation)}
	switch l.Action {
	case ledger.ActSubmit:
		e.Act, e.Within, e.Resend = "create", true, int(op.FormerCreates+op.Creates)-1
	case ledger.ActCancel:
		e.Act, e.Within = "cancel", true
	case ledger.ActLookup:
		e.Act, e.Seed = "lookup", nil
	case ledger.ActRead:
		e.Act, e.Seed = "read", nil
	}
	return e
}

// submit creates the task. The claim is durable by now, so whatever happens
// here, a restart knows that a create may have been on the wire.
func (w *Worker) submit(ctx context.Context, up upstream.Upstream, l ledger.Lease) ledger.Command {
	op := l.Operation
	id := ledger.PayloadID{Owner: op.ID, Kind: ledger.InputPayload}
	payloads, err := w.o.Reader.Payloads(ctx, id)
	if err != nil {
		w.o.Log.Error("an input could not be read", "operation", op.ID.Text(pawl.PrefixOperation), "error", err)
		return release(l)
	}
	policy := up.Policy()
	request := upstream.CreateRequest{
		ClientRef: op.ID.Text(pawl.PrefixOperation), Model: op.Model, Input: []byte(payloads[id]),
		IdempotencyKey: "pawl-" + op.ID.Suffix(),
	}
	if policy.Callbacks {
		request.CallbackURL = w.o.Callbacks.URL(up.Name(), op.ID)
	}
	got := up.Create(ctx, w.o.Client, request)
	w.o.Metrics.Submits.WithLabelValues(up.Name(), createLabels[got.Outcome]).Inc()
	return ledger.RecordCreate{
		Header: store.NewHeader(""), Up: policy, Operation: op.ID, Fence: l.Fence, Outcome: got.Outcome,
		Task: got.Task, RequestID: got.RequestID, RetryAfter: got.RetryAfter, ErrorCode: got.Failure,
		ErrorWord: got.Word, ErrorMessage: firstOf(got.Message, got.Reason), Status: got.Status,
		First: got.First, HasFirst: got.HasFirst,
	}
}

// read asks for the task's status.
func (w *Worker) read(ctx context.Context, up upstream.Upstream, l ledger.Lease) ledger.Command {
	got := up.Read(ctx, w.o.Client, l.Operation.Task)
	w.o.Metrics.Reads.WithLabelValues(up.Name(), readLabels[got.Outcome]).Inc()
	return ledger.ObserveStatus{
		Header: store.NewHeader(""), Up: up.Policy(), Operation: l.Operation.ID, Fence: l.Fence, Outcome: got.Outcome,
		Obs: got.Observation, RetryAfter: got.RetryAfter, Message: got.Reason,
	}
}

// lookup asks for the task of an unconfirmed create by our own reference; it
// creates nothing.
func (w *Worker) lookup(ctx context.Context, up upstream.Upstream, l ledger.Lease) ledger.Command {
	got := up.Lookup(ctx, w.o.Client, l.Operation.ID.Text(pawl.PrefixOperation))
	w.o.Metrics.Reads.WithLabelValues(up.Name(), readLabels[got.Outcome]).Inc()
	c := ledger.RecordLookup{Header: store.NewHeader(""), Up: up.Policy(), Operation: l.Operation.ID, Fence: l.Fence, Message: got.Reason}
	if got.Outcome == ledger.ReadObserved {
		c.Task = got.Observation.Task
	}
	return c
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// The outcomes as the metrics know them.
var (
	createLabels = [...]string{
		ledger.CreateAccepted: "ok", ledger.CreateRefused: "refused", ledger.CreateUnauthorized: "refused",
		ledger.CreateWait: "rate_limited", ledger.CreateNotWritten: "retried", ledger.CreateUnknown: "unconfirmed",
	}
	readLabels = [...]string{
		ledger.ReadObserved: "ok", ledger.ReadNotFound: "refused", ledger.ReadOtherTask: "refused",
		ledger.ReadUnknownState: "refused", ledger.ReadUnauthorized: "refused", ledger.ReadUnreachable: "failed",
	}
)
