package work

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// late ends operations whose deadline has passed while the creates of their
// upstream are paused: claiming does not touch the queues of those. No index finds
// them, so that all that wait there are read, as long as there is a pause.
func (w *Worker) late(ctx context.Context, now pawl.Time) {
	for name, up := range w.o.Upstreams.Now() {
		closed, err := w.closedUntil(ctx, ledger.SubmitQueue, name)
		w.complain(ctx, "the pause of an upstream could not be read", err)
		if err != nil || closed <= now {
			continue
		}
		waiting := store.OperationFilter{State: pawl.Pending, Upstream: name}
		for p := (store.Page{Limit: sweepMost}); ; {
			ops, err := w.o.Reader.Operations(ctx, waiting, p)
			w.complain(ctx, "operations that wait for a paused upstream could not be listed", err)
			for _, op := range ops {
				if p.After = op.ID; op.Deadline <= now {
					w.record(ctx, ledger.EndLate{Header: store.NewHeader(""), Up: up.Policy(), Operation: op.ID})
				}
			}
			if err != nil || len(ops) < sweepMost {
				break
			}
		}
	}
}
