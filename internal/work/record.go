package work

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Record stores what an action came to. While the store fails it goes on trying
// until the context ends, for a minute at most; then the lease runs out, and
// somebody else goes on.
func (w *Worker) Record(ctx context.Context, d Done) {
	out, _ := w.record(ctx, d.command)
	w.paused(d.lease, out)
}

// Release hands a job back that was not begun, and gives its slot back.
func (w *Worker) Release(ctx context.Context, j Job) {
	w.finish(j)
	w.record(ctx, release(j.lease))
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

// paused tells of an upstream that refuses our credential.
func (w *Worker) paused(l ledger.Lease, out ledger.Outcome) {
	if out.Reason == "upstream_paused" {
		w.o.Log.Error("an upstream refuses our credential (401 or 403): its submits are paused; mend its key",
			"upstream", l.Operation.Upstream, "tenant", l.Operation.Tenant)
	}
}
