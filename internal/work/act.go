package work

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/upstream"
)

// act does what a lease is for and gives the command that records how it went.
func (w *Worker) act(ctx context.Context, s *slots, up upstream.Upstream, l ledger.Lease) ledger.Command {
	switch l.Action {
	case ledger.ActSubmit:
		return w.submit(ctx, up, l)
	case ledger.ActRead, ledger.ActLookup:
		if s.pace(ctx) != nil {
			return ledger.ReleaseLease{Header: store.NewHeader(""), Operation: l.Operation.ID, Fence: l.Fence}
		}
		if l.Action == ledger.ActLookup {
			return w.lookup(ctx, up, l)
		}
		return w.read(ctx, up, l)
	default:
		return ledger.Advance{Header: store.NewHeader(""), Up: up.Policy(), Operation: l.Operation.ID, Fence: l.Fence}
	}
}

// submit creates the task. The claim is durable by now, so whatever happens
// here, a restart knows that a create may have been on the wire.
func (w *Worker) submit(ctx context.Context, up upstream.Upstream, l ledger.Lease) ledger.Command {
	op := l.Operation
	id := ledger.PayloadID{Owner: op.ID, Kind: ledger.InputPayload}
	payloads, err := w.o.Reader.Payloads(ctx, id)
	if err != nil {
		w.o.Log.Error("an input could not be read", "operation", op.ID.Text(pawl.PrefixOperation), "error", err)
		return ledger.ReleaseLease{Header: store.NewHeader(""), Operation: op.ID, Fence: l.Fence}
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

// confirmed measures how long a read took to be the first to see the end.
func (w *Worker) confirmed(l ledger.Lease, out ledger.Outcome) {
	op, ok := out.Value.(ledger.Operation)
	if ok && l.Action == ledger.ActRead && op.State.Terminal() && !l.Operation.State.Terminal() {
		w.o.Metrics.Confirmed.Observe(op.FinishedAt.Sub(op.CreatedAt).Seconds())
	}
}

// paused tells of an upstream that refuses our credential.
func (w *Worker) paused(l ledger.Lease, out ledger.Outcome) {
	if out.Reason == "upstream_paused" {
		w.o.Log.Error("an upstream refuses our credential (401 or 403): its submits are paused; mend its key",
			"upstream", l.Operation.Upstream, "tenant", l.Operation.Tenant)
	}
}

// record keeps trying for as long as the node acts: what an attempt learned
// must not be lost to a busy store.
func (w *Worker) record(ctx context.Context, c ledger.Command) (ledger.Outcome, bool) {
	// A call that was given up at the end of a drain is still recorded.
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		out, err := w.o.Store.Do(storing, c)
		if err == nil {
			return out, true
		}
		if ctx.Err() != nil || storing.Err() != nil {
			w.o.Log.Error("an outcome could not be recorded; the lease will run out", "error", err)
			return out, false
		}
		select {
		case <-storing.Done():
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
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
