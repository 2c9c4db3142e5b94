package simulate

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/intake"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/work"
)

// noLimit is the context of steps: nothing in a run is given up by real time.
var noLimit = context.Background()

// oneTry is the context of a record that the node would go on trying: its end
// makes the step come back after one try, and the node's commands do the rest.
var oneTry = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// node is one running program. Everything in it but its clock is gone when it
// dies.
type node struct {
	world *world
	name  string
	// life counts its lives: what was to happen in a former one does not.
	life int
	up   bool
	// skew is how far its clock is ahead of true time.
	skew time.Duration
	// frozen is until when it stands still.
	frozen pawl.Time
	// draining: it claims nothing and hands back what it has not begun.
	draining bool

	batcher *store.Batcher
	worker  *work.Worker
	outbox  *outbox.Outbox
	hooks   *intake.Handler
	fibers  []*fiber
	// waiting are commands on their way to a commit.
	waiting    []*order
	committing bool

	working, sending loop
}

// start begins a life.
func (n *node) start() {
	w := n.world
	n.life++
	n.up, n.draining, n.frozen = true, false, 0
	n.fibers, n.waiting, n.committing = nil, nil, false
	n.batcher = store.NewBatcher(&database{w.driver, n}, store.Options{})
	policy, err := egress.NewPolicy()
	if err != nil {
		panic(err)
	}
	client := egress.NewClient(policy, egress.Options{Wire: wire{n}})
	metrics := telemetry.NewMetrics(nil)
	n.worker = work.New(work.Options{
		Store: n, Reader: w.driver, Client: client, Upstreams: w.set, Callbacks: w.callbacks, Metrics: metrics, Log: silent,
	})
	n.outbox = outbox.New(outbox.Options{
		Store: n, Reader: w.driver, Client: client, Vault: w.vault, Metrics: metrics, Log: silent,
		PerEndpoint: w.IntN(4) + 1, Most: 8, InFlight: w.IntN(30) + 4, Seed: w.seed,
	})
	n.hooks = intake.New(intake.Options{
		Store: n, Upstreams: w.set, Callbacks: w.callbacks, Metrics: metrics, Log: silent, Now: n.clock,
	})
	n.working = loop{claim: n.claimWork, kinds: []ledger.QueueKind{ledger.SubmitQueue, ledger.ReadQueue}}
	n.sending = loop{claim: n.claimDeliveries, kinds: []ledger.QueueKind{ledger.DeliveryQueue}}
	w.trace("%s starts", n.name)
	if len(w.nodes) == 1 && n.life > 1 {
		// A ledger that one node at a time can open: the former life is dead.
		n.spawn("free leases", func() {
			w.running.tries = endless
			_ = n.worker.FreeLeases(noLimit)
			_ = n.outbox.FreeLeases(noLimit)
			n.begin()
		})
		return
	}
	n.begin()
}

// begin lets the loops run.
func (n *node) begin() {
	n.wake(&n.working, n.world.now.Add(n.world.lag()))
	n.wake(&n.sending, n.world.now.Add(n.world.lag()))
}

// clock is the node's own.
func (n *node) clock() time.Time { return n.world.now.Add(n.skew).Std() }

// crash ends the node's life at once; it is started again later.
func (n *node) crash() {
	if !n.up {
		return
	}
	n.world.trace("%s dies", n.name)
	n.die()
	n.world.after(n.world.between(50*time.Millisecond, 90*time.Second), n.restart)
}

func (n *node) restart() {
	if !n.up {
		n.start()
	}
}

func (n *node) die() {
	n.up = false
	n.life++
	for _, f := range n.fibers {
		f.kill()
	}
	n.fibers, n.waiting = nil, nil
}

// after has something happen in this life of the node, once it stands still no
// more.
func (n *node) after(d time.Duration, do func()) {
	life := n.life
	var happen func()
	happen = func() {
		switch {
		case n.life != life:
		case n.frozen > n.world.now:
			n.world.after(n.frozen.Sub(n.world.now)+n.world.lag(), happen)
		default:
			do()
		}
	}
	n.world.after(d, happen)
}

// spawn starts a piece of the program on the node, now.
func (n *node) spawn(name string, body func()) {
	f := n.world.fiber(n.name+" "+name, body)
	alive := n.fibers[:0]
	for _, other := range n.fibers {
		if !other.over {
			alive = append(alive, other)
		}
	}
	n.fibers = append(alive, f)
	f.resume()
}

// sleep makes the running fiber wait.
func (n *node) sleep(d time.Duration) {
	n.after(d, n.world.running.resume)
	n.world.wait()
}

// sweep looks for what no queue finds.
func (n *node) sweep() {
	wrong, err := n.world.driver.Misqueued(noLimit, 1)
	if err == nil && len(wrong) > 0 {
		n.world.violate("no queue is due later than its earliest row", "queue %+v", wrong[0])
	}
	n.spawn("sweep", func() {
		n.world.running.tries = endless
		n.worker.SweepAt(noLimit, n.clock())
	})
}
