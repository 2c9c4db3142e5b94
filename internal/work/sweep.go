package work

import (
	"context"
	"slices"
	"strings"
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
// grace time is over, operations whose deadline passes under a pause, and queues
// that would be due too late. It also sets the
// metrics that show the whole ledger. It returns when the context ends.
func (w *Worker) Sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		w.SweepAt(ctx, time.Now())
		w.gauges(ctx)
		w.removed(ctx)
		w.closed(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// SweepAt is one round of [Worker.Sweep] at now, without the metrics.
func (w *Worker) SweepAt(ctx context.Context, now time.Time) {
	w.orphans(ctx, pawl.TimeOf(now))
	w.late(ctx, pawl.TimeOf(now))
	queues, err := w.o.Reader.Misqueued(ctx, sweepMost)
	w.complain(ctx, "queues could not be checked", err)
	for _, q := range queues {
		w.o.Log.Error("a queue was due too late and is repaired", "upstream", q.ID.Upstream)
		w.record(ctx, ledger.RepairQueue{Header: store.NewHeader(""), Queue: q.ID})
	}
}

// orphans opens reviews for events that have been parked for too long.
func (w *Worker) orphans(ctx context.Context, now pawl.Time) {
	events, err := w.o.Reader.Parked(ctx, now, sweepMost)
	w.complain(ctx, "parked events could not be listed", err)
	for _, e := range events {
		up, ok := w.o.Upstreams.Now()[e.Source]
		p := up.Policy()
		if ok && now.Sub(e.At) < p.OrphanGrace {
			continue
		}
		w.record(ctx, ledger.OrphanOverdue{Header: store.NewHeader(""), Event: e.ID, Grace: p.OrphanGrace, Owner: p.Owner})
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
		m.ReviewsOverdue.WithLabelValues(r.String()).Set(float64(w.overdueReviews(ctx, r, stats.OpenReviews[r])))
	}
	m.Worker.OldestWaiting.Set(w.oldestWaiting(ctx))
	m.DeliveriesDead.Set(float64(stats.DeliveriesDead))
	m.EndpointsDisabled.Set(float64(stats.Disabled))
	w.queue("submit", stats.Work[ledger.SubmitQueue], stats.WorkDue[ledger.SubmitQueue])
	w.queue("read", stats.Work[ledger.ReadQueue], stats.WorkDue[ledger.ReadQueue])
	w.queue("delivery", stats.DeliveriesWaiting, stats.DeliveryDue)
	w.queue("capture", stats.ArtifactsWaiting, stats.ArtifactDue)
	m.FirstLinkEnd.Set(float64(stats.FirstLinkEnd) / 1e6)
	if w.o.Waiting != nil {
		m.QueueDepth.WithLabelValues("commit").Set(float64(w.o.Waiting()))
	}
}

// queue tells how much waits in a queue, and since when the first of it could be
// done: what is leased, or is for later, is due in the future.
func (w *Worker) queue(name string, depth int64, due pawl.Time) {
	if due > pawl.TimeOf(time.Now()) {
		due = 0
	}
	w.o.Metrics.QueueDepth.WithLabelValues(name).Set(float64(depth))
	w.o.Metrics.OldestDue.WithLabelValues(name).Set(float64(due) / 1e6)
}

// overdueReviews counts the open reviews of a reason that should have been decided
// by now, the first 500 of them.
func (w *Worker) overdueReviews(ctx context.Context, reason pawl.Reason, open int64) (n int) {
	if open == 0 {
		return 0
	}
	within := reason.Guide().Within
	if w.o.ReviewDue != nil {
		within = w.o.ReviewDue(reason)
	}
	rows, err := w.o.Reader.Reviews(ctx, store.ReviewFilter{Open: true, Reason: reason}, store.Page{Limit: sweepMost, Oldest: true})
	w.complain(ctx, "reviews could not be listed", err)
	now := pawl.TimeOf(time.Now())
	for _, r := range rows {
		if r.OpenedAt.Add(within) < now {
			n++
		}
	}
	return n
}

// removed tells of upstreams that operations wait for and that are not
// configured any more, once for each time that they are others.
func (w *Worker) removed(ctx context.Context) {
	names, err := w.o.Reader.WaitedFor(ctx)
	if err != nil {
		w.complain(ctx, "upstreams could not be listed", err)
		return
	}
	known := w.o.Upstreams.Now()
	names = slices.DeleteFunc(names, func(name string) bool { _, ok := known[name]; return ok })
	w.o.Metrics.Removed.Set(float64(len(names)))
	told := strings.Join(names, ", ")
	if told != "" && told != w.told {
		w.o.Log.Error("operations wait for upstreams that are not configured any more; configure them again to go on", "upstreams", told)
	}
	w.told = told
}

// closed shows which upstreams create nothing for anybody: by hand, or since they
// refuse our credential, until a create shows that they take it again.
func (w *Worker) closed(ctx context.Context) {
	var keys ledger.Keys
	known := w.o.Upstreams.Now()
	for name := range known {
		keys.Queues = append(keys.Queues, ledger.GateID(name))
	}
	rows := new(ledger.Rows)
	if err := w.o.Reader.Load(ctx, &keys, rows); err != nil {
		w.complain(ctx, "pauses could not be read", err)
		return
	}
	for name := range w.shown {
		if _, ok := known[name]; !ok {
			w.o.Metrics.Paused.DeleteLabelValues(name)
		}
	}
	w.shown = known
	now := pawl.TimeOf(time.Now())
	for name := range known {
		is := 0.0
		if gate, ok := rows.Queues.Get(ledger.GateID(name)); ok && (gate.PausedUntil > now || gate.Failures > 0) {
			is = 1
		}
		w.o.Metrics.Paused.WithLabelValues(name).Set(is)
	}
}

func (w *Worker) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		w.o.Log.Error(what, "error", err)
	}
}

// FreeLeases ends the leases that a former life of this node held. It is for a
// ledger that one node at a time can open: the file lock proves the former one
// dead. Own workers live on: their leases stay, and they get time to be heard.
func (w *Worker) FreeLeases(ctx context.Context) error {
	var after pawl.ID
	for {
		ops, err := w.o.Reader.LeasedOperations(ctx, store.Page{After: after, Limit: sweepMost})
		if err != nil || len(ops) == 0 {
			return err
		}
		if err := w.spare(ctx, ops); err != nil {
			return err
		}
		for _, op := range ops {
			after = op.ID
			if op.Leased == ledger.ActWork {
				continue
			}
			if _, err := w.o.Store.Do(ctx, ledger.LoseLease{Header: store.NewHeader(""), Operation: op.ID, Fence: op.Lease}); err != nil {
				return err
			}
		}
	}
}
