package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/vault"
)

// Defaults of [Options].
const (
	DefaultPerEndpoint = 8
	DefaultMost        = 64
	DefaultInFlight    = 256
	DefaultPoll        = time.Second
)

// stuck is the pause while a queue is ready and has slots, and yet gave no job:
// the database's clock is behind ours, or a deleted endpoint's rows are being
// skipped in steps.
const stuck = 100 * time.Millisecond

// Options make an [Outbox]. Store, Reader, Client and Vault are needed; every other
// zero field has a default.
type Options struct {
	Store  store.Commands
	Reader store.Reader
	Client *egress.Client
	// Senders say of generic sources what handlers get; nil stands for none.
	Senders sender.InForce
	// Vault opens the secrets that sign.
	Vault *vault.Vault
	// Metrics are measured into; nil measures into nothing.
	Metrics *telemetry.Metrics
	// Traces says what requests are for; nil says nothing.
	Traces *telemetry.Traces
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
	// PerEndpoint bounds the deliveries of one endpoint that are under way at
	// first: each success lets one more go at a time, up to Most, and each
	// failure halves the bound, down to one, so that dead endpoints hold few of
	// the node's InFlight. Most is PerEndpoint where only that is given.
	PerEndpoint, Most, InFlight int
	// Poll is how long the loop sleeps at most: a safety net below
	// [Outbox.Wake].
	Poll time.Duration
	// Version is Pawl's own, for the User-Agent header; empty is "devel".
	Version string
	// Seed gives each command the seed of its ids; nil draws at random.
	Seed func() [16]byte
}

// Outbox delivers events. Its methods are safe for concurrent use.
type Outbox struct {
	o     Options
	slots *slots
	keys  *keyring
	// wake holds at most one token: something may be due, or a slot is free.
	wake chan struct{}
	// turned is when the loop's latest turn began.
	turned atomic.Pointer[time.Time]
	// stop ends claiming, cut ends what is on the wire, ended says that Run
	// has returned.
	stop, cut, ended  chan struct{}
	stopOnce, cutOnce sync.Once
}

// New makes an outbox; [Outbox.Run] starts it.
func New(o Options) *Outbox {
	if o.PerEndpoint == 0 {
		o.Most = cmp.Or(o.Most, DefaultMost)
	}
	o.PerEndpoint = cmp.Or(o.PerEndpoint, DefaultPerEndpoint)
	o.Most = max(o.Most, o.PerEndpoint)
	o.InFlight = cmp.Or(o.InFlight, DefaultInFlight)
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	o.Version = cmp.Or(o.Version, "devel")
	if o.Senders == nil {
		o.Senders = sender.Set{}
	}
	if o.Metrics == nil {
		o.Metrics = telemetry.NewMetrics(nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Seed == nil {
		o.Seed = func() [16]byte { return store.NewHeader("").Seed }
	}
	return &Outbox{
		o:     o,
		keys:  newKeyring(o.Vault),
		slots: newSlots(o.PerEndpoint, o.Most, o.InFlight, o.Metrics.InFlight.WithLabelValues("delivery")),
		wake:  make(chan struct{}, 1), stop: make(chan struct{}), cut: make(chan struct{}), ended: make(chan struct{}),
	}
}

// UnderWay is how many deliveries this node has leased or on the wire.
func (o *Outbox) UnderWay() int {
	o.slots.mu.Lock()
	defer o.slots.mu.Unlock()
	return o.o.InFlight - o.slots.free
}

// Turned is when the latest turn of [Outbox.Run] began; an idle loop turns once a
// poll.
func (o *Outbox) Turned() (at time.Time) {
	if turned := o.turned.Load(); turned != nil {
		at = *turned
	}
	return at
}

// Wake tells the loop that a delivery may have become due: it is to be called
// after each commit that made one so. It never blocks.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Run claims and delivers until the context ends, which gives up what is on
// the wire and hands its leases back, or until [Outbox.Drain]. It returns the
// context's error, if that is what ended it, when nothing is under way any
// more. It may be called once.
func (o *Outbox) Run(ctx context.Context) error {
	defer close(o.ended)
	wire, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-o.cut:
			cancel()
		case <-wire.Done():
		}
	}()
	var acts sync.WaitGroup
	for wire.Err() == nil && !o.stopping() {
		now := time.Now()
		o.turned.Store(&now)
		jobs, err := o.Claim(wire, now)
		if err != nil && wire.Err() == nil {
			o.o.Log.Error("due deliveries could not be claimed; trying again", "error", err)
		}
		o.start(wire, &acts, jobs)
		if len(jobs) == 0 || err != nil {
			o.sleep(wire, pawl.TimeOf(now), err != nil)
		}
	}
	acts.Wait()
	return ctx.Err()
}

// start begins an attempt for each claimed job, or hands the jobs back if the
// outbox has been told to stop meanwhile.
func (o *Outbox) start(wire context.Context, acts *sync.WaitGroup, jobs []Job) {
	for _, j := range jobs {
		acts.Go(func() {
			if o.stopping() {
				o.Release(wire, j)
				return
			}
			o.Record(wire, o.attempt(wire, j, time.Now()))
		})
	}
}

func (o *Outbox) stopping() bool {
	select {
	case <-o.stop:
		return true
	default:
		return false
	}
}

// sleep waits until a queue becomes ready that was not at claimed, until
// something wakes the loop, or for a while.
func (o *Outbox) sleep(ctx context.Context, claimed pawl.Time, failed bool) {
	wake, wait := o.wake, o.o.Poll
	if failed {
		// Whatever finishes while the store is in trouble must not hurry it.
		wake = nil
	} else if next, ok := o.next(ctx, claimed); ok {
		wait = min(wait, time.Until(next.Std()))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-o.stop:
	case <-wake:
	case <-timer.C:
	}
}

// next is when the next claim may find something, if that is within the poll.
// Queues without a free slot do not count: the end of one of their attempts
// wakes the loop.
func (o *Outbox) next(ctx context.Context, claimed pawl.Time) (pawl.Time, bool) {
	queues, err := o.o.Reader.Ready(ctx, ledger.DeliveryQueue, "", claimed.Add(o.o.Poll), o.look())
	if err != nil {
		return 0, false
	}
	for _, q := range queues {
		switch ready := q.Ready(); {
		case ready > claimed:
			return ready, true
		case !o.slots.full(q.ID.Endpoint):
			return claimed.Add(stuck), true
		}
	}
	return 0, false
}

// look is how many ready queues are looked at: at most InFlight endpoints have
// something under way, so that this always shows enough of the others.
func (o *Outbox) look() int { return 4 * o.o.InFlight }

// lastWord is how long Drain waits, after its context, for the leases of what
// it has cut to be handed back.
const lastWord = time.Second

// Drain stops claiming, hands back what is leased and not yet started, and
// returns when what is on the wire has ended and is recorded. When the context
// ends before that, the rest is given up and handed back, and the context's
// error is returned. Run must have been called.
func (o *Outbox) Drain(ctx context.Context) error {
	o.stopOnce.Do(func() { close(o.stop) })
	select {
	case <-o.ended:
		return nil
	case <-ctx.Done():
	}
	o.cutOnce.Do(func() { close(o.cut) })
	select {
	case <-o.ended:
	case <-time.After(lastWord):
	}
	return ctx.Err()
}

func (o *Outbox) header() ledger.Header { return ledger.Header{Seed: o.o.Seed()} }
