package postgres

import (
	"context"
	"errors"
	"log/slog"

	"github.com/pawlhq/pawl/internal/store"
)

// Options are the settings of a driver. The zero value is good.
type Options struct {
	// Readers is how many connections read at once; 4 where it is zero.
	Readers int
	// Lanes is how many batches are committed at once; Lanes where it is zero. One
	// connection more asks what became of another.
	Lanes int
	// Log takes what a person must see; nil drops it.
	Log *slog.Logger
	// Copying opens also a ledger that is an unfinished copy of another one.
	Copying bool
}

// Lanes is how many batches a node commits at once.
const Lanes = 4

func (o Options) withDefaults() Options {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Lanes <= 0 {
		o.Lanes = Lanes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Open opens the ledger in the database that a URL names and brings its schema
// up to date. Any number of processes may do so at once. A schema that is newer
// than this program is refused with store.ErrNewerSchema. pooler=transaction
// among the URL's parameters says that a pooler is in between which hands out
// connections for a transaction at a time.
func Open(ctx context.Context, url string, opts Options) (*Driver, error) {
	d, err := open(ctx, url, opts.withDefaults())
	return d, explain(ctx, "open", err)
}

func open(ctx context.Context, url string, opts Options) (_ *Driver, err error) {
	at, err := locate(url)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, at); err != nil {
		return nil, err
	}
	d := &Driver{log: opts.Log}
	if d.Reader, err = openReader(ctx, at, opts.Readers); err != nil {
		return nil, err
	}
	d.Reader.clock = newClock()
	if !opts.Copying {
		if err := d.Reader.complete(ctx); err != nil {
			d.Reader.pool.Close()
			return nil, err
		}
	}
	if d.writers, err = at.pool(ctx, opts.Lanes+1, nil); err != nil {
		d.Reader.pool.Close()
		return nil, err
	}
	// Before the first row: later ones of the month would be in the way.
	d.tidy(ctx)
	d.startUpkeep()
	return d, nil
}

// OpenReadOnly opens the ledger for reading alone. It works beside running
// nodes. The ledger must have exactly this program's schema.
func OpenReadOnly(ctx context.Context, url string) (*Reader, error) {
	at, err := locate(url)
	if err != nil {
		return nil, explain(ctx, "open", err)
	}
	r, err := openReader(ctx, at, 1)
	if err == nil {
		if err = r.read(ctx, "open", func(c *conn) error { return checkVersion(ctx, c) }); err != nil {
			err = errors.Join(err, r.Close())
			return nil, err
		}
	}
	return r, explain(ctx, "open", err)
}

func openReader(ctx context.Context, at address, size int) (*Reader, error) {
	// Statements that are kept prepared would keep the plans of a nearly empty
	// database, too.
	p, err := at.pool(ctx, size, map[string]string{"plan_cache_mode": "force_custom_plan"})
	if err != nil {
		return nil, err
	}
	return &Reader{pool: p}, nil
}

var _ store.Reader = (*Reader)(nil)
