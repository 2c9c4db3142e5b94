// Package replay is the loop that works through replays of many: it leases one
// that is due, reads the next rows that it is about, and has a bounded step
// decided. The step moves the replay on in the transaction that does its work, so
// that neither a crash nor a second node does anything twice.
package replay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Options are what a [Runner] works with; all are needed but Metrics and Log.
type Options struct {
	Store     store.Commands
	Reader    store.Reader
	Upstreams upstream.InForce
	Senders   sender.InForce
	// Metrics are measured into; nil measures into nothing.
	Metrics *telemetry.Metrics
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
}

// The bounds of the loop.
const (
	// stepMost is how many rows one step does at most, lookMost how many it counts
	// together.
	stepMost, lookMost = 100, 500
	// sift is among how many rows those of a step are looked for.
	sift = 5_000
	// countTime is how long one step goes on counting.
	countTime = 200 * time.Millisecond
	// leaseTime is how long a step may take before another node goes on with it.
	leaseTime = 30 * time.Second
	// together is how many replays get their turn before the due ones are looked up
	// again.
	together = 16
	// idle is how long the loop sleeps at most: a safety net under the wake-ups.
	idle = 5 * time.Second
	// trouble is the pause after a step that failed.
	trouble = 5 * time.Second
)

// Runner works through replays. Its methods are safe for concurrent use.
type Runner struct {
	o Options
	// wake holds at most one token: a replay may be due.
	wake chan struct{}
}

// New makes a runner; [Runner.Run] starts it.
func New(o Options) *Runner {
	if o.Metrics == nil {
		o.Metrics = telemetry.NewMetrics(nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{o: o, wake: make(chan struct{}, 1)}
}

// Wake tells the loop that a replay may be due. It never blocks.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run works until the context ends; the step under way is finished or handed back.
func (r *Runner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		worked, err := r.Turn(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			r.o.Log.Error("replays could not go on; trying again", "error", err)
		}
		if !worked || err != nil {
			r.sleep(ctx, err != nil)
		}
	}
}

// Turn gives each replay that is due at now one step, and says whether there was
// one.
func (r *Runner) Turn(ctx context.Context, now time.Time) (worked bool, err error) {
	due, err := r.o.Reader.DueReplays(ctx, pawl.TimeOf(now), together)
	if err != nil {
		return false, err
	}
	for _, job := range due {
		out, err := r.o.Store.Do(ctx, ledger.LeaseReplay{Header: store.NewHeader(""), ID: job.ID, For: leaseTime})
		if err != nil {
			return worked, err
		}
		leased, ok := out.Value.(ledger.Replay)
		if !ok {
			continue
		}
		worked = true
		if err := r.step(ctx, leased); err != nil {
			r.free(ctx, leased)
			return worked, err
		}
	}
	return worked, nil
}

// step does the next part of a replay that is leased.
func (r *Runner) step(ctx context.Context, job ledger.Replay) error {
	switch {
	case !job.Counted:
		return r.count(ctx, job)
	case job.Kind == ledger.ReplayEvents:
		return r.judge(ctx, job)
	default:
		return r.send(ctx, job)
	}
}

// most is how many rows a step may do: about as many as its rate allows a second.
func most(job ledger.Replay) int { return int(max(1, min(job.Rate, stepMost))) }

// count looks at rows for as long as one step may, and records how many there are.
func (r *Runner) count(ctx context.Context, job ledger.Replay) error {
	rest := ledger.RestReplay{Header: store.NewHeader(""), ID: job.ID, Fence: job.Lease, After: job.After}
	for began := time.Now(); time.Since(began) < countTime && !rest.End; {
		var n, looked int
		page := r.page(rest.After, lookMost)
		if job.Kind == ledger.ReplayEvents {
			events, err := r.events(ctx, job, &page)
			if err != nil {
				return err
			}
			looked = len(events)
			for _, e := range events {
				rest.After = e.ID
				if meant(job, e) {
					n++
				}
			}
		} else {
			rows, err := r.deliveries(ctx, job, &page)
			if err != nil {
				return err
			}
			n, looked = len(rows), len(rows)
			for _, row := range rows {
				rest.After = row.ID
			}
		}
		rest.Counted += int64(n)
		stop := page.Stop(looked)
		if !stop.IsZero() {
			rest.After = stop
		}
		rest.End = looked < lookMost && stop.IsZero()
	}
	return r.do(ctx, rest)
}

// page is what follows on a row; among so many rows that a step stays short.
func (r *Runner) page(after pawl.ID, limit int) store.Page {
	return store.Page{After: after, Limit: limit, Oldest: true, Look: &store.Look{Most: sift}}
}

// deliveries are the next ones that a replay is about.
func (r *Runner) deliveries(ctx context.Context, job ledger.Replay, p *store.Page) ([]ledger.Delivery, error) {
	f := job.Filter
	return r.o.Reader.Deliveries(ctx, store.DeliveryFilter{
		Tenant: job.Tenant, State: f.State, Endpoint: f.Endpoint, Event: f.Event, Operation: f.Operation, From: f.From, Until: f.Until,
	}, *p)
}

// events are the next ones that a replay looks at; see meant.
func (r *Runner) events(ctx context.Context, job ledger.Replay, p *store.Page) ([]ledger.Event, error) {
	f := job.Filter
	return r.o.Reader.Events(ctx, store.EventFilter{
		Tenant: job.Tenant, Direction: ledger.Inbound, Source: f.Source, Verdict: f.Verdict, Type: f.Type, Task: f.Task, From: f.From, Until: f.Until,
	}, *p)
}

// meant reports whether an event is to be judged anew: one that has used its key
// up is left alone, unless its verdict is asked for.
func meant(job ledger.Replay, e ledger.Event) bool { return job.Filter.Verdict != 0 || e.Open() }

// send has the next deliveries sent again.
func (r *Runner) send(ctx context.Context, job ledger.Replay) error {
	limit := most(job)
	page := r.page(job.After, limit)
	rows, err := r.deliveries(ctx, job, &page)
	if err != nil {
		return err
	}
	stop := page.Stop(len(rows))
	if len(rows) == 0 && !stop.IsZero() {
		return r.do(ctx, ledger.RestReplay{Header: store.NewHeader(""), ID: job.ID, Fence: job.Lease, After: stop})
	}
	step := ledger.StepReplay{Header: store.NewHeader(""), ID: job.ID, Fence: job.Lease, End: len(rows) < limit && stop.IsZero()}
	for _, row := range rows {
		want := ledger.ReplayRow{Delivery: row.ID, Endpoint: row.Endpoint, Review: row.Review}
		if row.Inbound {
			want.Event = row.Event
		}
		step.Rows = append(step.Rows, want)
	}
	r.o.Metrics.Replayed.WithLabelValues("deliveries").Add(float64(len(rows)))
	return r.do(ctx, step)
}

// judge has the next events judged anew, one after the other, as they came.
func (r *Runner) judge(ctx context.Context, job ledger.Replay) error {
	limit := most(job)
	page := r.page(job.After, lookMost)
	events, err := r.events(ctx, job, &page)
	if err != nil {
		return err
	}
	stop := page.Stop(len(events))
	rest := ledger.RestReplay{ID: job.ID, Fence: job.Lease, After: job.After, End: len(events) < lookMost && stop.IsZero()}
	for began := time.Now(); len(events) > 0; events = events[1:] {
		if rest.Worked == limit || time.Since(began) > leaseTime/3 || ctx.Err() != nil {
			rest.End = false
			break
		}
		e := events[0]
		if meant(job, e) {
			if err := r.judgeOne(ctx, job, e); err != nil {
				return err
			}
			rest.Worked++
		}
		rest.After = e.ID
	}
	if len(events) == 0 && !stop.IsZero() {
		rest.After = stop
	}
	rest.Header = store.NewHeader("")
	r.o.Metrics.Replayed.WithLabelValues("events").Add(float64(rest.Worked))
	return r.do(ctx, rest)
}

func (r *Runner) judgeOne(ctx context.Context, job ledger.Replay, e ledger.Event) error {
	cmd := ledger.ReplayEvent{Replay: job.ID, Fence: job.Lease}
	cmd.ID, cmd.Tenant, cmd.Whose = e.ID, job.Tenant, e.Tenant
	reread, ok := r.reader(e.Source)
	if !ok {
		cmd.Unread = "source_unknown"
	} else {
		id := ledger.PayloadID{Owner: e.ID, Kind: ledger.BodyPayload}
		payloads, err := r.o.Reader.Payloads(ctx, id)
		if err != nil {
			return err
		}
		body, kept := payloads[id]
		if cmd.ReceiveEvent = reread(e, []byte(body)); !kept {
			cmd.Unread = "body_gone"
		}
	}
	cmd.Header, cmd.Token = store.NewHeader(""), e.Operation
	err := r.do(ctx, cmd)
	if fault := (*pawl.Error)(nil); errors.As(err, &fault) && fault.Kind == pawl.Internal {
		// One event that is a fault of ours must not hold up all others.
		cmd.Unread = "internal"
		err = r.do(ctx, cmd)
	}
	return err
}

// reader is how a source's stored events are read today.
func (r *Runner) reader(source string) (func(ledger.Event, []byte) ledger.ReceiveEvent, bool) {
	if s, ok := r.o.Senders.Now()[source]; ok {
		return s.Reread, true
	}
	up, ok := r.o.Upstreams.Now()[source]
	return up.Reread, ok
}

// do has a command decided even if the context has ended: what is begun is worth
// one try.
func (r *Runner) do(ctx context.Context, c ledger.Command) error {
	out, err := r.o.Store.Do(context.WithoutCancel(ctx), c)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return err
}

// free hands a replay back after a step that failed. If that fails too, the lease
// runs out.
func (r *Runner) free(ctx context.Context, job ledger.Replay) {
	if err := r.do(ctx, ledger.FreeReplay{Header: store.NewHeader(""), ID: job.ID, Fence: job.Lease}); err != nil && !errors.Is(err, store.ErrClosed) {
		r.o.Log.Warn("a replay could not be handed back; its lease will run out", "replay", job.ID.Text(pawl.PrefixReplay), "error", err)
	}
}

// FreeLeases ends the leases that a former life of this node held. It is for a
// ledger that one node at a time can open: the file lock proves the former one dead.
func (r *Runner) FreeLeases(ctx context.Context) error {
	for {
		due, err := r.o.Reader.DueReplays(ctx, pawl.Never-1, lookMost)
		if err != nil {
			return err
		}
		freed := false
		for _, job := range due {
			if !job.Leased {
				continue
			}
			if err := r.do(ctx, ledger.FreeReplay{Header: store.NewHeader(""), ID: job.ID, Fence: job.Lease}); err != nil {
				return err
			}
			freed = true
		}
		if !freed {
			return nil
		}
	}
}

// sleep waits until a replay is due, until something wakes the loop, or for a while.
func (r *Runner) sleep(ctx context.Context, failed bool) {
	wait, wake := idle, r.wake
	if failed {
		// What waits while the store is in trouble must not hurry it.
		wait, wake = trouble, nil
	} else if next, err := r.o.Reader.DueReplays(ctx, pawl.TimeOf(time.Now().Add(idle)), 1); err == nil && len(next) > 0 {
		wait = max(time.Millisecond, time.Until(next[0].DueAt.Std()))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}
