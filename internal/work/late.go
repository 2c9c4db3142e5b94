package work

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// late ends operations whose deadline has passed while the creates of their
// upstream are paused: claiming does not touch the queues of those.
func (w *Worker) late(ctx context.Context, now pawl.Time) {
	for name, up := range w.o.Upstreams.Now() {
		closed, err := w.closedUntil(ctx, ledger.SubmitQueue, name)
		w.complain(ctx, "the pause of an upstream could not be read", err)
		if err != nil || closed <= now {
			continue
		}
		ops, err := w.o.Reader.Late(ctx, name, now, sweepMost)
		w.complain(ctx, "operations that wait for a paused upstream could not be listed", err)
		for _, op := range ops {
			w.record(ctx, ledger.EndLate{Header: store.NewHeader(""), Up: up.Policy(), Operation: op.ID})
		}
	}
}
