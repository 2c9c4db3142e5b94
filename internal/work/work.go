// Package work is the loop that claims due operations and does what is due:
// create the task upstream, read its status, or decide what time alone
// decides. Rows are the truth; what is in memory here is a hint and a count of
// slots.
package work

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Options are what a [Worker] works with.
type Options struct {
	Store  store.Commands
	Reader store.Reader
	Client *egress.Client
	// Upstreams are asked for anew for each turn; after a change, [Worker.Reload].
	Upstreams upstream.InForce
	Callbacks upstream.Callbacks
	Metrics   *telemetry.Metrics
	// Traces says what requests are for; nil says nothing.
	Traces *telemetry.Traces
	Log    *slog.Logger
	// Waiting is how many commands wait for a commit, for the metric; nil
	// measures nothing.
	Waiting func() int
	// ReviewDue is how long there is to decide a review, for the metric; nil is the
	// reasons' own.
	ReviewDue func(pawl.Reason) time.Duration
}

// Bounds of the loop.
const (
	// idle is how long the loop sleeps at most: a safety net under the wake-ups.
	idle = time.Second
	// breath is the least pause after a turn that leased nothing.
	breath = 5 * time.Millisecond
	// readsAtOnce bounds an upstream's reads under way (7-rules R23).
	readsAtOnce = 8
)

// Worker runs the loop. Its methods are safe for concurrent use.
type Worker struct {
	o    Options
	wake chan struct{}
	// turned is when the loop's latest turn began.
	turned atomic.Pointer[time.Time]

	// told are the removed upstreams that the log has been told of; the sweep's.
	told string
	// shown are the upstreams whose pauses are measured; the sweep's too.
	shown upstream.Set

	mu    sync.Mutex
	slots map[slotKey]*slots
}

type slotKey struct {
	kind     ledger.QueueKind
	upstream string
}

// New makes a worker; [Worker.Run] starts it.
func New(o Options) *Worker {
	w := &Worker{o: o, wake: make(chan struct{}, 1), slots: make(map[slotKey]*slots)}
	w.Reload()
	return w
}

// Reload goes over to the upstreams that are in force now: new ones get slots,
// changed limits hold from the next claim on, and of removed ones nothing more
// is claimed. Actions under way keep what they have.
func (w *Worker) Reload() {
	set := w.o.Upstreams.Now()
	kept := make(map[slotKey]*slots, 2*len(set))
	w.mu.Lock()
	for name, up := range set {
		p := up.Policy()
		submits, reads := slotKey{ledger.SubmitQueue, name}, slotKey{ledger.ReadQueue, name}
		busy := w.o.Metrics.InFlight.WithLabelValues
		kept[submits] = w.slots[submits].resized(p.Concurrency, p.CreateSpacing, busy("submit"))
		kept[reads] = w.slots[reads].resized(readsAtOnce, p.ReadSpacing, busy("read"))
	}
	w.slots = kept
	w.mu.Unlock()
	w.Wake()
}

// inForce are the slots of the upstreams in force; they are not changed.
func (w *Worker) inForce() map[slotKey]*slots {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots
}

// UnderWay is how many creates and reads this node has leased or on the wire.
func (w *Worker) UnderWay() (creates, reads int) {
	for key, s := range w.inForce() {
		if key.kind == ledger.SubmitQueue {
			creates += s.taken()
		} else {
			reads += s.taken()
		}
	}
	return creates, reads
}

// Turned is when the latest turn of [Worker.Run] began; an idle loop turns every
// second.
func (w *Worker) Turned() (at time.Time) {
	if turned := w.turned.Load(); turned != nil {
		at = *turned
	}
	return at
}

// Wake tells the loop that something may be due. It never blocks.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run claims and acts until claiming ends; then it waits for what is under
// way. When acting ends as well, calls on the wire are given up; what they
// were doing is found again by their leases.
func (w *Worker) Run(claiming, acting context.Context) {
	var acts sync.WaitGroup
	for claiming.Err() == nil {
		now := time.Now()
		w.turned.Store(&now)
		jobs, err := w.Claim(claiming, now)
		if err != nil && claiming.Err() == nil {
			w.o.Log.Error("due work could not be claimed; trying again", "error", err)
		}
		for _, j := range jobs {
			acts.Go(func() { w.do(acting, j) })
		}
		if len(jobs) == 0 {
			w.sleep(claiming)
		}
	}
	acts.Wait()
}

// do carries a job out once its turn comes.
func (w *Worker) do(ctx context.Context, j Job) {
	timer := time.NewTimer(time.Until(j.Start()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		w.Release(ctx, j)
	case <-timer.C:
		w.Record(ctx, w.attempt(ctx, j, time.Now()))
	}
}

// sleep waits until something is due, something woke us, or a while has
// passed.
func (w *Worker) sleep(ctx context.Context) {
	wait := idle
	for key, s := range w.inForce() {
		if s.free(time.Now()) == 0 {
			continue // the end of one of its actions wakes the loop
		}
		closed, err := w.closedUntil(ctx, key.kind, key.upstream)
		if until := time.Until(closed.Std()); err == nil && until > 0 {
			wait = min(wait, until)
			continue
		}
		next, err := w.o.Reader.Ready(ctx, key.kind, key.upstream, pawl.TimeOf(time.Now().Add(wait)), 1)
		if err == nil && len(next) > 0 {
			wait = min(wait, max(breath, time.Until(next[0].Ready().Std())))
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-w.wake:
	}
}
