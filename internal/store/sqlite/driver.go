package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var _ store.Driver = (*Driver)(nil)

// writerPragmas hold for the writer besides [pragmas]: checkpoints are made
// elsewhere, a log that grew large is cut when it starts anew, and what is deleted
// is overwritten.
const writerPragmas = `PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16384;
PRAGMA secure_delete = ON;`

// ring is how many of the latest batches are remembered. A batch in doubt is
// looked up before the next one runs, so a handful would do.
const ring = 1024

// Driver is the ledger in one SQLite file. It is safe for concurrent use;
// transactions queue for the one writer.
type Driver struct {
	*Reader
	lock *os.File
	// writer holds the writing connection while nobody writes; write is the
	// same one, for opening and closing.
	writer chan *conn
	write  *conn
	// batch numbers the batches; it belongs to whoever holds the writer.
	batch       int64
	checkpoints *checkpoints
	clock       *clock
	closing     sync.Once
}

// Update runs fn in one transaction; see [store.Driver]. The context
// interrupts fn's statements, never the commit.
func (d *Driver) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	w, err := acquire(ctx, d.writer, d.closed)
	if err != nil {
		return err
	}
	defer func() { d.writer <- w }()
	return d.transact(ctx, w, batch, fn)
}

func (d *Driver) transact(ctx context.Context, w *conn, batch pawl.ID, fn func(store.Tx) error) (err error) {
	if err := w.begin(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explain(ctx, "begin", err)
	}
	// After a commit there is nothing left to roll back.
	defer func() { err = errors.Join(err, explain(ctx, "roll back", w.end("ROLLBACK"))) }()
	if err := fn(&tx{conn: w, ctx: ctx, now: d.clock.now()}); err != nil {
		return err
	}
	d.batch++
	err = w.exec("REPLACE INTO batches (slot, number, id) VALUES (?, ?, ?)",
		[]value{intValue(d.batch % ring), intValue(d.batch), idValue(batch)})
	if err != nil {
		return explain(ctx, "record the batch", err)
	}
	w.db.SetInterrupt(context.Background())
	if err := w.exec("COMMIT", nil); err != nil {
		return &store.CommitError{Err: explain(ctx, "commit", err)}
	}
	return nil
}

func lastBatch(c *conn) (number int64, err error) {
	err = c.each("SELECT max(number) FROM batches", nil, func(s *sqlite3.Stmt) { number = s.ColumnInt64(0) })
	return number, err
}

// Committed reports whether one of the latest batches took effect; see
// [store.Driver].
func (d *Driver) Committed(ctx context.Context, batch pawl.ID) (found bool, err error) {
	err = d.read(ctx, "look up a batch", func(c *conn) error {
		return c.each("SELECT 1 FROM batches WHERE id = ?", []value{idValue(batch)}, func(*sqlite3.Stmt) { found = true })
	})
	return found, err
}

// LastCommit is when the latest transaction of the ledger began, to the
// millisecond below; 0 where there was none yet.
func (r *Reader) LastCommit(ctx context.Context) (at pawl.Time, err error) {
	err = r.read(ctx, "find the last commit", func(c *conn) error {
		return c.each("SELECT id FROM batches ORDER BY number DESC LIMIT 1", nil, func(s *sqlite3.Stmt) {
			// An id begins with its milliseconds (RFC 9562 §5.7).
			var text [8]byte
			copy(text[2:], s.ColumnRawBlob(0))
			at = pawl.Time(binary.BigEndian.Uint64(text[:]) * 1000)
		})
	})
	return at, err
}

// Close waits for what is under way, moves the log into the file and frees the
// folder. What comes later gets store.ErrClosed.
func (d *Driver) Close() (err error) {
	d.closing.Do(func() {
		err = d.checkpoints.stop()
		// The last connection to close empties the log, which takes one that
		// may write.
		err = errors.Join(err, d.Reader.Close())
		w := <-d.writer
		err = errors.Join(err, w.close(), d.lock.Close())
	})
	return explain(context.Background(), "close", err)
}

// abandon undoes an [Open] that failed halfway.
func (d *Driver) abandon() error {
	var errs []error
	if d.Reader != nil {
		errs = append(errs, d.Reader.Close())
	}
	if d.write != nil {
		errs = append(errs, d.write.close())
	}
	return errors.Join(append(errs, d.lock.Close())...)
}

// tx is the one transaction under way.
type tx struct {
	conn *conn
	ctx  context.Context
	now  pawl.Time
}

// Now is the clock at the transaction's start.
func (t *tx) Now() pawl.Time { return t.now }

// Load adds the wanted rows; see [store.Tx].
func (t *tx) Load(keys *ledger.Keys, rows *ledger.Rows) error {
	return explain(t.ctx, "load", t.conn.load(keys, rows))
}

// Save writes every changed row; see [store.Tx].
func (t *tx) Save(rows *ledger.Rows) error {
	return explain(t.ctx, "save", t.conn.save(rows))
}
