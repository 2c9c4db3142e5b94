package work

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Bounds of the sweep.
const (
	sweepEvery = 15 * time.Second
	sweepMost  = 500
)

// Sweep looks, now and then, for what no queue finds: parked events whose
// grace time is over, and queues that would be due too late. It also sets the
// metrics that show the whole ledger. It returns when the context ends.
func (w *Worker) Sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		w.sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Worker) sweep(ctx context.Context) {
	w.orphans(ctx)
	queues, err := w.o.Reader.Misqueued(ctx, sweepMost)
	w.complain(ctx, "queues could not be checked", err)
	for _, q := range queues {
		w.o.Log.Error("a queue was due too late and is repaired", "upstream", q.ID.Upstream)
		w.record(ctx, ledger.RepairQueue{Header: store.NewHeader(""), Queue: q.ID})
	}
	w.gauges(ctx)
}

// orphans opens reviews for events that have been parked for too long.
func (w *Worker) orphans(ctx context.Context) {
	now := pawl.TimeOf(time.Now())
	events, err := w.o.Reader.Parked(ctx, now, sweepMost)
	w.complain(ctx, "parked events could not be listed", err)
	for _, e := range events {
		up, ok := w.o.Upstreams[e.Source]
		p := up.Policy()
		if ok && now.Sub(e.At) < p.OrphanGrace {
			continue
		}
		w.record(ctx, ledger.OrphanOverdue{Header: store.NewHeader(""), Event: e.ID, Owner: p.Owner})
	}
}

func (w *Worker) gauges(ctx context.Context) {
	stats, err := w.o.Reader.Stats(ctx)
	if err != nil {
		w.complain(ctx, "figures could not be read", err)
		return
	}
	m := w.o.Metrics
	m.OldestUnfinished.Set(float64(stats.OldestUnfinished) / 1e6)
	for s := pawl.Pending; s <= pawl.Running; s++ {
		m.Operations.WithLabelValues(s.String()).Set(float64(stats.Unfinished[s]))
	}
	for r := pawl.ReviewUnconfirmed; r <= pawl.ReviewBodyDiffers; r++ {
		m.Reviews.WithLabelValues(r.String()).Set(float64(stats.OpenReviews[r]))
	}
	m.DeliveriesDead.Set(float64(stats.DeliveriesDead))
	m.QueueDepth.WithLabelValues("delivery").Set(float64(stats.DeliveriesWaiting))
	m.QueueDepth.WithLabelValues("commit").Set(float64(w.o.Store.Waiting()))
}

func (w *Worker) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		w.o.Log.Error(what, "error", err)
	}
}

// FreeLeases ends the leases that a former life of this node held. It is for a
// ledger that one node at a time can open: the file lock proves the former one
// dead.
func (w *Worker) FreeLeases(ctx context.Context) error {
	var after pawl.ID
	for {
		ops, err := w.o.Reader.LeasedOperations(ctx, store.Page{After: after, Limit: sweepMost})
		if err != nil || len(ops) == 0 {
			return err
		}
		for _, op := range ops {
			if _, err := w.o.Store.Do(ctx, ledger.LoseLease{Header: store.NewHeader(""), Operation: op.ID, Fence: op.Lease}); err != nil {
				return err
			}
			after = op.ID
		}
	}
}
