package work

import (
	"context"
	"errors"

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

// spare lets the leases of own workers last for as long as new ones would: while
// the node was away nobody could hear the workers (as 7-rules R26 has it of reads).
func (w *Worker) spare(ctx context.Context, ops []ledger.Operation) error {
	var commands []ledger.Command
	for _, op := range ops {
		if up, ok := w.o.Upstreams.Now()[op.Upstream]; ok && op.Leased == ledger.ActWork {
			commands = append(commands, ledger.SpareWork{Header: store.NewHeader(""), Operation: op.ID, Up: up.Policy()})
		}
	}
	var errs []error
	for _, r := range w.o.Store.DoAll(ctx, commands...) {
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...)
}
