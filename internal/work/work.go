// Package work is the loop that claims due operations and does what is due:
// create the task upstream, read its status, or decide what time alone
// decides. Rows are the truth; what is in memory here is a hint and a count of
// slots.
package work

import (
	"context"
	"log/slog"
	"sync"
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
	Store     *store.Committer
	Reader    store.Reader
	Client    *egress.Client
	Upstreams upstream.Set
	Callbacks upstream.Callbacks
	Metrics   *telemetry.Metrics
	Log       *slog.Logger
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
	o     Options
	wake  chan struct{}
	slots map[slotKey]*slots
	acts  sync.WaitGroup
}

type slotKey struct {
	kind     ledger.QueueKind
	upstream string
}

// New makes a worker; [Worker.Run] starts it.
func New(o Options) *Worker {
	w := &Worker{o: o, wake: make(chan struct{}, 1), slots: make(map[slotKey]*slots)}
	for name, up := range o.Upstreams {
		p := up.Policy()
		w.slots[slotKey{ledger.SubmitQueue, name}] = newSlots(p.Concurrency, 0)
		w.slots[slotKey{ledger.ReadQueue, name}] = newSlots(readsAtOnce, p.ReadsPerSecond)
	}
	return w
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
	for claiming.Err() == nil {
		claimed := w.turn(claiming, acting)
		if claimed == 0 {
			w.sleep(claiming)
		}
	}
	w.acts.Wait()
}

// turn gives every ready queue its share once and reports how much was leased.
func (w *Worker) turn(claiming, acting context.Context) int {
	var claims sync.WaitGroup
	var total counter
	for key, s := range w.slots {
		claims.Go(func() { total.add(w.claim(claiming, acting, key, s)) })
	}
	claims.Wait()
	return total.n
}

// claim shares an upstream's free slots among its queues that are ready, those
// longest ready first: each is a tenant's.
func (w *Worker) claim(claiming, acting context.Context, key slotKey, s *slots) int {
	free := s.free()
	if free == 0 {
		return 0
	}
	queues, err := w.o.Reader.Ready(claiming, key.kind, key.upstream, pawl.TimeOf(time.Now()), free)
	if err != nil {
		if claiming.Err() == nil {
			w.o.Log.Error("due work could not be looked up", "error", err)
		}
		return 0
	}
	var claims sync.WaitGroup
	var total counter
	for i, q := range queues {
		n := s.take(share(free, len(queues), i))
		if n > 0 {
			claims.Go(func() { total.add(w.lease(acting, s, q.ID, n)) })
		}
	}
	claims.Wait()
	return total.n
}

// share splits n slots among so many queues; the first ones get what is left
// over.
func share(n, queues, i int) int {
	if i < n%queues {
		return n/queues + 1
	}
	return n / queues
}

// lease claims up to n due rows of a queue, for which n slots are taken, and
// starts an action for each; unused slots are given back.
func (w *Worker) lease(acting context.Context, s *slots, queue ledger.QueueID, n int) int {
	up := w.o.Upstreams[queue.Upstream]
	out, err := w.o.Store.Do(acting, ledger.LeaseWork{Header: store.NewHeader(""), Queue: queue, Limit: n, Up: up.Policy()})
	if err != nil || out.Err != nil {
		s.give(n)
		w.o.Log.Error("due work could not be leased", "upstream", queue.Upstream, "error", err)
		return 0
	}
	leases := out.Value.([]ledger.Lease)
	s.give(n - len(leases))
	for _, l := range leases {
		w.acts.Go(func() {
			c := w.act(acting, s, up, l)
			// The wire is free; what is left is ours.
			s.give(1)
			w.Wake()
			out, _ := w.record(acting, c)
			w.confirmed(l, out)
			w.paused(l, out)
		})
	}
	return len(leases)
}

// sleep waits until something is due, something woke us, or a while has
// passed.
func (w *Worker) sleep(ctx context.Context) {
	wait := idle
	for key, s := range w.slots {
		if s.free() == 0 {
			continue // the end of one of its actions wakes the loop
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

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add(n int) {
	c.mu.Lock()
	c.n += n
	c.mu.Unlock()
}
