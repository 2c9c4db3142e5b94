package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var _ store.Driver = (*Driver)(nil)

// Driver is the ledger in one PostgreSQL database. It is safe for concurrent
// use, by any number of processes.
type Driver struct {
	*Reader
	writers *pool
	log     *slog.Logger

	upkeep  upkeep
	closing sync.Once
}

// The statements of a transaction. What it sets lasts no longer than itself, so
// that it does not matter whose connection comes next. A node that is stopped
// in the middle loses its locks soon, so that others can go on. Rows are found
// by key alone: a plan that was made when a table was nearly empty must not
// walk over it when it is large.
const (
	beginBatch = "BEGIN ISOLATION LEVEL READ COMMITTED"
	guardBatch = "SELECT set_config('synchronous_commit', 'on', true), set_config('idle_in_transaction_session_timeout', '5s', true), set_config('lock_timeout', '9s', true), " +
		"set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)"
	readClock   = "SELECT clock_timestamp()"
	recordBatch = "INSERT INTO batches (id) VALUES ($1::uuid)"
	commitBatch = "COMMIT"
	rollBack    = "ROLLBACK"
)

// commitPatience is how long the answer to a commit is waited for, and
// rollbackPatience that to the end of what failed.
const (
	commitPatience   = 10 * time.Second
	rollbackPatience = time.Second
)

// Update runs fn in one transaction; see [store.Driver]. The context
// interrupts fn's statements, never the commit.
func (d *Driver) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	began := false
	err := d.writers.use(ctx, func(c *conn) error {
		t := &tx{ctx: ctx, conn: c, clock: d.clock}
		p := c.pipe(ctx)
		p.exec(beginBatch, nil, nil)
		p.exec(guardBatch, nil, nil)
		t.readClock(p)
		if err := p.run(); err != nil {
			return errors.Join(c.dead(err), c.rollBack())
		}
		began = true
		return t.transact(batch, fn)
	})
	if !began {
		return explain(ctx, "begin", err)
	}
	return err
}

// transact runs fn in the transaction that was begun, and ends it.
func (t *tx) transact(batch pawl.ID, fn func(store.Tx) error) error {
	c := t.conn
	done := false
	defer func() {
		if !done { // fn panicked.
			_ = c.rollBack()
		}
	}()
	err := fn(t)
	if err == nil {
		err = t.commit(batch)
	}
	var commit *store.CommitError
	if err != nil && !errors.As(err, &commit) {
		err = errors.Join(err, explain(t.ctx, "roll back", c.rollBack()))
	} else if err != nil {
		_ = c.rollBack()
	}
	done = true
	return err
}

// rollBack ends a transaction that failed. Where that cannot be had soon, the
// connection is closed, which does the same.
func (c *conn) rollBack() error {
	if c.pg.IsClosed() || c.pg.TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackPatience)
	defer cancel()
	if err := c.exec(ctx, rollBack); err != nil {
		_ = c.pg.Close(ctx)
	}
	return nil
}

// Close waits for what is under way. What comes later gets store.ErrClosed.
func (d *Driver) Close() error {
	d.closing.Do(func() {
		d.upkeep.stop()
		d.writers.Close()
		d.pool.Close()
	})
	return nil
}

// tx is the one transaction under way on its connection.
type tx struct {
	ctx   context.Context
	conn  *conn
	clock *clock
	wall  pawl.Time
	// placed are the placeholders by table: maps whose keys are the table's.
	placed map[string]any
	// shared are the endpoints that were read under their set's lock alone.
	shared map[pawl.ID]bool
	// alone says that all endpoints were read without a lock.
	alone bool
	// unsent is what was saved and is sent with what comes next.
	unsent *pipe
}

func (t *tx) readClock(p *pipe) {
	p.query(readClock, nil, func(row [][]byte) error {
		t.wall = fromInstant(row[0])
		return nil
	})
}

// Now is the database's clock at the latest load, when all its locks were held:
// who waited for another batch decides later than it.
func (t *tx) Now() pawl.Time { return t.clock.now(t.wall) }

// Load adds the wanted rows; see [store.Tx].
func (t *tx) Load(keys *ledger.Keys, rows *ledger.Rows) error {
	if err := t.flush(); err != nil {
		return err
	}
	l := loader{ctx: t.ctx, conn: t.conn, tx: t}
	return explain(t.ctx, "load", l.load(keys, rows))
}

// Save writes every changed row; see [store.Tx]. What the database says to it is
// heard at the latest before the commit.
func (t *tx) Save(rows *ledger.Rows) error {
	if err := t.flush(); err != nil {
		return err
	}
	return explain(t.ctx, "save", t.save(rows))
}

// commit takes away the placeholders that nobody filled, records the batch and
// commits. An error before the commit was sent is an ordinary one.
func (t *tx) commit(batch pawl.ID) error {
	p := t.unsent
	if t.unsent = nil; p == nil {
		p = t.conn.pipe(t.ctx)
	}
	t.release(p)
	p.exec(recordBatch, []value{idValue(batch)}, nil)
	if err := p.run(); err != nil {
		return explain(t.ctx, "save and record the batch", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitPatience)
	defer cancel()
	if err := t.conn.exec(ctx, commitBatch); err != nil {
		return &store.CommitError{Err: explain(ctx, "commit", err)}
	}
	return nil
}
