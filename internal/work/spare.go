package work

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// linesMost bounds the lines that the oldest is looked for in.
const linesMost = 10_000

// oldestWaiting is since when the oldest operation waits that no own worker has,
// in Unix seconds; 0 if there is none.
func (w *Worker) oldestWaiting(ctx context.Context) float64 {
	lines, err := w.o.Reader.WorkLines(ctx, linesMost)
	w.complain(ctx, "what waits for own workers could not be listed", err)
	var oldest pawl.Time
	for _, l := range lines {
		if oldest == 0 || l.Since < oldest {
			oldest = l.Since
		}
	}
	return float64(oldest) / 1e6
}

// spare lets the lease of an own worker last for as long as a new one would: while
// the node was away nobody could hear the worker (as 7-rules R26 has it of reads).
func (w *Worker) spare(ctx context.Context, op ledger.Operation) error {
	up, ok := w.o.Upstreams.Now()[op.Upstream]
	if !ok {
		return nil
	}
	_, err := w.o.Store.Do(ctx, ledger.SpareWork{Header: store.NewHeader(""), Operation: op.ID, Up: up.Policy()})
	return err
}
