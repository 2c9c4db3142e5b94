package capture

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

// Options are what a [Capturer] works with. All but Full are required.
type Options struct {
	Store  store.Commands
	Reader store.Reader
	Client *egress.Client
	// Upstreams say whether a fresh link can be read.
	Upstreams upstream.InForce
	Files     *Files
	// Spool is the folder of what is being fetched; it is made if it is missing.
	Spool string
	// MaxSize is the largest file in bytes.
	MaxSize int64
	// Concurrency bounds the fetches at once, PerHost those from one host.
	Concurrency, PerHost int
	// Full reports whether the disk is too full to fetch anything; nil never says
	// so.
	Full    func() bool
	Metrics *telemetry.Metrics
	// Traces says what requests are for; nil says nothing.
	Traces *telemetry.Traces
	Log    *slog.Logger
	// Agent is what requests are sent as, such as "Pawl/1.0".
	Agent string
}

// Bounds of the loop and of one fetch.
const (
	// idle is how long the loop sleeps at most: a safety net under the wake-ups.
	idle = time.Second
	// leaseFor is how long a lease lasts; a fetch renews it at a third of that.
	leaseFor = time.Minute
	// stalled is how long a server may send nothing before it is given up.
	stalled = 30 * time.Second
	// slowest is how many bytes per second a fetch must bring on average over
	// slowFor: one that only keeps its slot is stopped, and tried again later.
	slowest = 1 << 10
	slowFor = time.Minute
	// longest is how long one fetch may take in all.
	longest = 12 * time.Hour
	// tidyEvery is how often spool files that nobody needs are removed.
	tidyEvery = time.Hour
)

// Capturer runs the loop. Its methods are safe for concurrent use.
type Capturer struct {
	o     Options
	wake  chan struct{}
	spool spool
	// stall is how long a server may send nothing.
	stall time.Duration
	// window is how long a fetch may be slower than slowest.
	window time.Duration
	slots  *slots
}

// New makes a capturer and its spool folder; [Capturer.Run] starts it.
func New(o Options) (*Capturer, error) {
	s, err := openSpool(o.Spool)
	if err != nil {
		return nil, err
	}
	return &Capturer{o: o, wake: make(chan struct{}, 1), spool: s, stall: stalled, window: slowFor, slots: newSlots(o.Concurrency, o.PerHost)}, nil
}

// Wake tells the loop that something may be due. It never blocks.
func (c *Capturer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// FreeLeases ends the leases of a former life of the ledger, whose holder is
// known to be dead: what it had fetched is gone on from.
func (c *Capturer) FreeLeases(ctx context.Context) error {
	for p := (store.Page{Limit: 200}); ; {
		leased, err := c.o.Reader.LeasedArtifacts(ctx, p)
		if err != nil || len(leased) == 0 {
			return err
		}
		commands := make([]ledger.Command, len(leased))
		for i, a := range leased {
			commands[i] = ledger.RenewArtifact{Header: store.NewHeader(""), Artifact: a.ID, Fence: a.Lease, Lost: true}
			p.After = a.ID
		}
		for _, r := range c.o.Store.DoAll(ctx, commands...) {
			if r.Err != nil {
				return r.Err
			}
		}
	}
}

// Run claims and fetches until claiming ends; then it waits for what is under
// way. When acting ends as well, fetches are given up; what they have is in the
// spool, and the next life goes on from there.
func (c *Capturer) Run(claiming, acting context.Context) {
	var fetches sync.WaitGroup
	tidied := time.Time{}
	for claiming.Err() == nil {
		if time.Since(tidied) >= tidyEvery {
			c.tidy(claiming)
			tidied = time.Now()
		}
		jobs, err := c.Claim(claiming, time.Now())
		if err != nil && claiming.Err() == nil {
			c.o.Log.Error("due captures could not be claimed; trying again", "error", err)
		}
		for _, j := range jobs {
			fetches.Go(func() { c.Do(acting, j) })
		}
		if len(jobs) == 0 {
			c.sleep(claiming)
		}
	}
	fetches.Wait()
}

func (c *Capturer) sleep(ctx context.Context) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-c.wake:
	}
}

// tidy removes spool files of artifacts that are no longer to be captured.
func (c *Capturer) tidy(ctx context.Context) {
	err := c.spool.tidy(func(ids []pawl.ID) (map[pawl.ID]bool, error) {
		rows := new(ledger.Rows)
		if err := c.o.Reader.Load(ctx, &ledger.Keys{Artifacts: ids}, rows); err != nil {
			return nil, err
		}
		needed := make(map[pawl.ID]bool)
		for id, a := range rows.Artifacts.All() {
			needed[id] = a.State == pawl.ArtifactPending || a.State == pawl.ArtifactFailed
		}
		return needed, nil
	})
	if err != nil && ctx.Err() == nil {
		c.o.Log.Warn("the spool of captures could not be tidied", "error", err)
	}
}
