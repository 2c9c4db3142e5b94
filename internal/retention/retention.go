// Package retention removes content that is old enough, and content that a person
// has erased (1-product I8, docs/retention.md). It finds what may be over, names it
// in commands of a few rows each, and leaves the decision to the ledger: nothing
// that is unfinished, held or waits for a person ages. Several nodes may do the
// same at once, and whatever was begun is found again.
package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/audit"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
)

const (
	// lookEvery is how often a node looks for what is to be erased, passEvery how
	// often for what is old.
	lookEvery = 15 * time.Second
	passEvery = 10 * time.Minute
	// pace is the pause after each command: others have the ledger meanwhile.
	pace = 5 * time.Millisecond
	// step is how many rows one command names.
	step = 50
)

// Settings are how long what is kept.
type Settings struct {
	Ages ledger.Ages
	// Audit is how long lines of the audit are kept, Keys how long idempotency keys
	// are after they have ended.
	Audit, Keys time.Duration
}

// Options are what the remover works with.
type Options struct {
	Store  store.Commands
	Reader store.Reader
	// Settings are those in force.
	Settings config.InForce[Settings]
	// AuditKey seals the audit; without it there are no seals, and no line of the
	// audit is removed.
	AuditKey audit.Key
	// RemoveFiles removes all copies of a result file; it may have none.
	RemoveFiles func(ctx context.Context, artifact pawl.ID) error
	// Scrub makes sure that what was erased is nowhere in the database's files;
	// nil where the database does so by itself.
	Scrub   func(context.Context) error
	Metrics *telemetry.Metrics
	Log     *slog.Logger
}

// Remover runs the loop. Its methods are not safe for concurrent use, but for
// Wake.
type Remover struct {
	o    Options
	wake chan struct{}
	pace time.Duration
	// later is when a tenant is looked at again of which something was left.
	later map[string]time.Time
	// users are operations that were found to need an endpoint of kind callback.
	users map[pawl.ID]pawl.ID
	// sealed is the latest seal of the audit that this node has seen.
	sealed ledger.AuditSeal
}

// New makes a remover; [Remover.Run] starts it.
func New(o Options) *Remover {
	return &Remover{o: o, wake: make(chan struct{}, 1), pace: pace, later: make(map[string]time.Time), users: make(map[pawl.ID]pawl.ID)}
}

// Wake tells the loop that something is to be erased. It never blocks.
func (r *Remover) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run erases and removes until the context ends.
func (r *Remover) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	passed := time.Time{}
	for {
		r.complain(ctx, "erasing", r.Erase(ctx, time.Now()))
		if time.Since(passed) >= passEvery {
			r.complain(ctx, "removing what is old", r.Pass(ctx, time.Now()))
			passed = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.wake:
		}
	}
}

func (r *Remover) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.o.Log.WarnContext(ctx, what+" failed; it goes on from there at the next look", "error", err)
	}
}

// do has a command decided and waits a little.
func (r *Remover) do(ctx context.Context, c ledger.Command) (reason string, err error) {
	out, err := r.o.Store.Do(ctx, c)
	if err == nil && out.Err != nil && out.Err.Kind != pawl.NotFound && out.Err.Kind != pawl.Conflicting {
		err = out.Err
	}
	if err != nil {
		return "", err
	}
	timer := time.NewTimer(r.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
	}
	return out.Reason, nil
}

// counts are what a pass has removed the content of.
type counts struct{ operations, events, keys, audits int }

func (r *Remover) tell(what string, n counts) {
	for kind, count := range map[string]int{"operation": n.operations, "event": n.events, "idempotency_key": n.keys, "audit": n.audits} {
		r.o.Metrics.ContentRemoved.WithLabelValues(kind).Add(float64(count))
	}
	if n != (counts{}) {
		r.o.Log.Info(what, "operations", n.operations, "events", n.events, "idempotency_keys", n.keys, "audits", n.audits)
	}
}

// idAt is below every id that is made at a moment or later.
func idAt(at pawl.Time) pawl.ID {
	id := pawl.NewID(max(at, 0), 0)
	for i := 6; i < len(id); i++ {
		id[i] = 0
	}
	return id
}
