package work

import (
	"context"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/upstream"
)

// cancel asks for the task to be stopped. It takes its turn among the reads.
func (w *Worker) cancel(ctx context.Context, up upstream.Upstream, l ledger.Lease) ledger.Command {
	got := up.Cancel(ctx, w.o.Client, l.Operation.Task)
	w.o.Metrics.Cancels.WithLabelValues(up.Name(), cancelLabels[got.Outcome]).Inc()
	return ledger.RecordCancel{
		Header: store.NewHeader(""), Up: up.Policy(), Operation: l.Operation.ID, Fence: l.Fence, Outcome: got.Outcome,
		Obs: got.Read.Observation, Observed: got.Read.Outcome == ledger.ReadObserved, RetryAfter: got.Read.RetryAfter,
		Message: got.Read.Reason,
	}
}

// cancelLabels are the outcomes as the metrics know them.
var cancelLabels = [...]string{
	ledger.CancelTaken: "ok", ledger.CancelRefused: "refused", ledger.CancelUnreachable: "retried", ledger.CancelUnknown: "failed",
}
