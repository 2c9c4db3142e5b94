// Package work is the loop that claims due operations and does what is due:
// create the task upstream, read its status, or decide what time alone
// decides. Rows are the truth; what is in memory here is a hint and a count of
// slots.
package work

import (
	"context"
	"crypto/rand"
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
	// crowded is the pause while every queue that is ready has no slot left.
	crowded = 100 * time.Millisecond
	// readyQueues is how many ready queues are looked at in one turn.
	readyQueues = 64
	// readsAtOnce bounds an upstream's reads under way (7-rules R23).
	readsAtOnce = 8
	// turn is how many rows one queue may get at once while others wait.
	turn = 16
	// setAside is how long the queue of an unknown upstream is left alone.
	setAside = time.Minute
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
	return w.claim(claiming, acting, ledger.SubmitQueue) + w.claim(claiming, acting, ledger.ReadQueue)
}

func (w *Worker) claim(claiming, acting context.Context, kind ledger.QueueKind) int {
	queues, err := w.o.Reader.Ready(claiming, kind, pawl.TimeOf(time.Now()), readyQueues)
	if err != nil {
		if claiming.Err() == nil {
			w.o.Log.Error("due work could not be looked up", "error", err)
		}
		return 0
	}
	var claims sync.WaitGroup
	var total counter
	for _, q := range queues {
		s, ok := w.slots[slotKey{kind, q.ID.Upstream}]
		if !ok {
			w.setAside(acting, q.ID)
			continue
		}
		n := s.take(turn)
		if n == 0 {
			continue
		}
		claims.Go(func() { total.add(w.lease(acting, s, q.ID, n)) })
	}
	claims.Wait()
	return total.n
}

// lease claims up to n due rows of a queue, for which n slots are taken, and
// starts an action for each; unused slots are given back.
func (w *Worker) lease(acting context.Context, s *slots, queue ledger.QueueID, n int) int {
	up := w.o.Upstreams[queue.Upstream]
	out, err := w.o.Store.Do(acting, ledger.LeaseWork{Header: header(), Queue: queue, Limit: n, Up: up.Policy()})
	if err != nil || out.Err != nil {
		s.give(n)
		w.o.Log.Error("due work could not be leased", "upstream", queue.Upstream, "error", err)
		return 0
	}
	leases := out.Value.([]ledger.Lease)
	s.give(n - len(leases))
	for _, l := range leases {
		w.acts.Go(func() {
			defer w.Wake()
			defer s.give(1)
			w.act(acting, s, up, l)
		})
	}
	return len(leases)
}

// setAside pauses the queue of an upstream that is no longer configured, so
// that its rows wait without hiding others.
func (w *Worker) setAside(ctx context.Context, queue ledger.QueueID) {
	w.o.Log.Warn("an upstream that is not configured has work waiting", "upstream", queue.Upstream)
	until := pawl.TimeOf(time.Now().Add(setAside))
	w.record(ctx, ledger.PauseQueue{Header: header(), Queue: queue, Until: until, Reason: "upstream_not_configured"})
}

// sleep waits until something is due, something woke us, or a while has
// passed.
func (w *Worker) sleep(ctx context.Context) {
	wait := idle
	for _, kind := range [...]ledger.QueueKind{ledger.SubmitQueue, ledger.ReadQueue} {
		next, err := w.o.Reader.NextReady(ctx, kind)
		switch until := time.Until(next.Std()); {
		case err != nil || next == pawl.Never:
		case until <= 0:
			wait = min(wait, crowded)
		default:
			wait = min(wait, until)
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

func header() ledger.Header {
	var h ledger.Header
	_, _ = rand.Read(h.Seed[:])
	return h
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
