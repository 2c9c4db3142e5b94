package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// Ledger is an open ledger, which also knows when it was last used.
type Ledger interface {
	store.Driver
	// LastCommit is when its latest transaction began; 0 where there was none
	// lately.
	LastCommit(ctx context.Context) (pawl.Time, error)
}

// OpenLedger opens the ledger where the configuration says it is, and makes it
// if need be. One in PostgreSQL may be open in other nodes too.
func OpenLedger(ctx context.Context, cfg config.Config, log *slog.Logger) (Ledger, error) {
	if cfg.Shared() {
		return postgres.Open(ctx, cfg.Database.Reveal(), postgres.Options{Log: log})
	}
	return sqlite.Open(ctx, cfg.Data, sqlite.Options{Log: log})
}

// openLedger opens the node's own.
func (n *Node) openLedger(ctx context.Context) (Ledger, error) {
	ledger, err := OpenLedger(ctx, n.cfg, n.log)
	if err != nil {
		return nil, err
	}
	if file, ok := ledger.(*sqlite.Driver); ok {
		n.scrub = file.Scrub
	}
	if watched, ok := ledger.(*postgres.Driver); ok {
		n.roster = watched
		n.hindrance = &hindranceWatch{look: watched.Hindrance, metrics: n.metrics, log: n.log}
		// The data folder holds what is this node's own.
		if err := os.MkdirAll(n.cfg.Data, 0o700); err != nil {
			return nil, errors.Join(err, ledger.Close())
		}
	}
	return ledger, nil
}

// lanes is how many batches a node may have under way: one where the database
// takes one writer.
func (n *Node) lanes() int {
	if n.cfg.Shared() {
		return postgres.Lanes
	}
	return 1
}

// OpenReadOnly opens a ledger for reading alone: that in the database, or where
// none is named the one in the data folder.
func OpenReadOnly(ctx context.Context, cfg config.Config) (interface {
	store.Reader
	Close() error
}, error) {
	if cfg.Shared() {
		return postgres.OpenReadOnly(ctx, cfg.Database.Reveal())
	}
	return sqlite.OpenReadOnly(ctx, cfg.Data)
}

const (
	// hindranceEvery is how often a node looks for old transactions.
	hindranceEvery = 30 * time.Second
	// hindranceOld is how old a transaction must be to be told of. A backup of a
	// large ledger takes longer, and is worth a line.
	hindranceOld = 5 * time.Minute
	// hindranceAgain is how long the same one is not told of again.
	hindranceAgain = 10 * time.Minute
)

// hindranceWatch tells when a long transaction keeps PostgreSQL from cleaning
// up, which makes everything that is due slower (O-119).
type hindranceWatch struct {
	look    func(context.Context) (postgres.Hindrance, error)
	metrics *telemetry.Metrics
	log     *slog.Logger
	told    time.Time
}

// run looks every while until the context ends. A nil watch has nothing to look
// at.
func (w *hindranceWatch) run(ctx context.Context) {
	if w == nil {
		return
	}
	ticker := time.NewTicker(hindranceEvery)
	defer ticker.Stop()
	for {
		w.once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *hindranceWatch) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, hindranceEvery/2)
	defer cancel()
	h, err := w.look(limited)
	if err != nil {
		return // A database that does not answer is told of by whoever needs it.
	}
	w.metrics.OldestTransaction.Set(h.Age.Seconds())
	w.metrics.DeadRows.Set(float64(h.DeadRows))
	if h.Age < hindranceOld || time.Since(w.told) < hindranceAgain {
		return
	}
	w.told = time.Now()
	w.log.Warn("a long transaction keeps the database from cleaning up: due work gets slower until it ends",
		"age", h.Age.String(), "holder", h.Who, "dead_rows", h.DeadRows)
}
