// Package desk hands operations to the platform team's own workers, who ask for
// work and may wait for it: one look at the ledger for all who wait, in fair turns
// of tenants and upstreams, the oldest first. What is in memory here is a hint:
// the lease itself is a decision of the ledger.
package desk

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Bounds of a [Desk].
const (
	// every is how often it looks while anyone waits: another node may have
	// brought something, and what failed may be tried again.
	every = 200 * time.Millisecond
	// patience is how long one look, and one lease, may take.
	patience = 10 * time.Second
	// most is how many may wait unless [Options.Most] says otherwise.
	most = 1000
	// linesMost is how many lines one look takes in.
	linesMost = 10_000
)

// Options are what a [Desk] works with. Those without a default given are
// required.
type Options struct {
	Store  store.Commands
	Reader store.Reader
	// Upstreams are asked for anew for each look.
	Upstreams upstream.InForce
	// Most bounds those who wait; 1000 if zero.
	Most int
	// Metrics takes figures; nil keeps none.
	Metrics *telemetry.Metrics
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
}

// Ask is what a worker asks for.
type Ask struct {
	// Tenant restricts whose operations it gets; empty for an admin key.
	Tenant string
	// Capabilities are the models that it can do, as MODEL or UPSTREAM/MODEL;
	// none stands for all.
	Capabilities []string
	// Limit is how many operations it takes at most.
	Limit int
	// Actor is the text id of its API key.
	Actor string
}

// Desk knows who waits for work. Its methods are safe for concurrent use.
type Desk struct {
	o    Options
	wake chan struct{}
	// ended is closed when nobody gets anything any more.
	ended chan struct{}

	mu     sync.Mutex
	places []*place
	closed bool
	// taken are the operations that a place has been offered and not yet leased.
	taken map[pawl.ID]bool
	turns turns
}

// place is one worker that waits, in the order of coming.
type place struct {
	ask Ask
	// once says that it leaves after one look.
	once bool
	// offered says that an offer is under way to it.
	offered bool
	offers  chan offer
}

// offer is what one look found for a place.
type offer struct {
	work []ledger.WorkOffer
	err  error
}

// New makes a desk; [Desk.Run] looks for it.
func New(o Options) *Desk {
	if o.Most <= 0 {
		o.Most = most
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{o: o, wake: make(chan struct{}, 1), ended: make(chan struct{}), taken: make(map[pawl.ID]bool), turns: newTurns()}
}

// errFull refuses a worker where too many wait.
var errFull = &pawl.Error{Kind: pawl.Unavailable, Reason: "unavailable", Message: "too many workers wait for work already; ask again"}

// Lease leases operations for a worker, and waits for some where there are none:
// no longer than wait, and not after the context has ended or the node stops.
// None is no error. Where too many wait already it is an error of the kind
// [pawl.Unavailable].
func (d *Desk) Lease(ctx context.Context, a Ask, wait time.Duration) ([]ledger.WorkLease, error) {
	p := &place{ask: a, once: wait <= 0, offers: make(chan offer, 1)}
	if refusal, ok := d.join(p); !ok {
		return nil, refusal
	}
	defer d.leave(p)
	if p.once {
		wait = patience
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case o := <-p.offers:
			if o.err != nil || len(o.work) == 0 {
				d.free(p, o.work)
				return nil, o.err
			}
			leases, err := d.take(ctx, a, o.work)
			d.free(p, o.work)
			if err != nil || len(leases) > 0 {
				return leases, err
			}
		case <-timer.C:
			return nil, nil
		case <-d.ended:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// join takes a place; false where there is none, with the reason if that is not
// that the node stops.
func (d *Desk) join(p *place) (refusal error, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, false
	case len(d.places) >= d.o.Most:
		return errFull, false
	}
	d.places = append(d.places, p)
	d.waiters()
	d.Wake()
	return nil, true
}

// leave gives the place back, and with it what was offered and not looked at.
func (d *Desk) leave(p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.places {
		if other == p {
			d.places = append(d.places[:i], d.places[i+1:]...)
			break
		}
	}
	d.waiters()
	select {
	case o := <-p.offers:
		d.untake(o.work)
	default:
	}
}

func (d *Desk) waiters() {
	if d.o.Metrics != nil {
		d.o.Metrics.Worker.Waiters.Set(float64(len(d.places)))
	}
}

// free lets others have what was offered and not leased, and the place be
// offered something else.
func (d *Desk) free(p *place, work []ledger.WorkOffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.offered = false
	d.untake(work)
}

func (d *Desk) untake(work []ledger.WorkOffer) {
	for _, o := range work {
		delete(d.taken, o.Operation)
	}
	if len(work) > 0 {
		d.Wake()
	}
}

// take leases what was offered. A worker that has gone meanwhile never hears of
// it: what it got goes back at once.
func (d *Desk) take(ctx context.Context, a Ask, work []ledger.WorkOffer) ([]ledger.WorkLease, error) {
	// A lease that was taken must be known, so it is not given up half-way.
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	out, err := d.o.Store.Do(storing, ledger.LeaseForWorker{Header: store.NewHeader(a.Actor), Tenant: a.Tenant, Offers: work, Limit: a.Limit})
	if err == nil && out.Err != nil {
		err = out.Err
	}
	leases, _ := out.Value.([]ledger.WorkLease)
	if err != nil || ctx.Err() == nil {
		return leases, err
	}
	for _, l := range leases {
		if _, err := d.o.Store.Do(storing, ledger.ReturnWork{Header: store.NewHeader(""), Lease: l.ID}); err != nil {
			d.o.Log.Error("a lease whose worker is gone could not be taken back; it will run out", "error", err)
		}
	}
	return nil, ctx.Err()
}

// Wake makes the desk look at once. It never blocks.
func (d *Desk) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Close ends every wait, present and future.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.ended)
	}
}

// Waiters is how many wait now.
func (d *Desk) Waiters() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.places)
}

// Run looks for work while anyone waits. It returns when the context ends.
func (d *Desk) Run(ctx context.Context) {
	for {
		var tick <-chan time.Time
		if d.Waiters() > 0 {
			tick = time.After(every)
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-tick:
		}
		d.look(ctx, time.Now())
	}
}
