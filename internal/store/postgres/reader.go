package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// beginRead opens a snapshot that all statements of a read share.
const beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// Reader reads committed rows on a few connections of its own. It is safe for
// concurrent use: who finds all connections taken waits for one.
type Reader struct {
	pool *pool
	// clock is the driver's; a reader alone has none.
	clock *clock
}

// theirs is a moment of this machine's clock by the database's, ours the other
// way round.
func (r *Reader) theirs(at pawl.Time) pawl.Time {
	if r.clock == nil {
		return at
	}
	return r.clock.theirs(at)
}

func (r *Reader) ours(at pawl.Time) pawl.Time {
	if r.clock == nil {
		return at
	}
	return r.clock.ours(at)
}

// Close waits for the reads under way and closes the connections.
func (r *Reader) Close() error {
	r.pool.Close()
	return nil
}

// read runs fn in one snapshot, which lasts no longer than fn.
func (r *Reader) read(ctx context.Context, op string, fn func(*conn) error) error {
	return r.use(ctx, op, func(c *conn) error {
		if err := c.exec(ctx, beginRead); err != nil {
			return c.dead(err)
		}
		return errors.Join(fn(c), c.rollBack())
	})
}

// use runs fn on a connection. Where none can be had, or it is lost, the error
// is store.ErrUnavailable: who asked may ask again.
func (r *Reader) use(ctx context.Context, op string, fn func(*conn) error) error {
	lost := false
	err := r.pool.use(ctx, func(c *conn) error {
		err := fn(c)
		lost = err != nil && c.pg.IsClosed()
		return err
	})
	told := explain(ctx, op, err)
	if lost || errors.As(err, new(*pgconn.ConnectError)) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, told)
	}
	return told
}

// each runs one statement, which is a snapshot by itself, and calls row for
// each row of its answer.
func (r *Reader) each(ctx context.Context, op, sql string, args []value, row func([][]byte) error) error {
	return r.use(ctx, op, func(c *conn) error {
		seen := false
		err := c.each(ctx, sql, args, func(columns [][]byte) error {
			seen = true
			return row(columns)
		})
		if seen {
			return err
		}
		return c.dead(err)
	})
}

// list reads the selected rows in one snapshot.
func list[R any](ctx context.Context, r *Reader, t *relation[R], rest string, args ...value) (rows []R, err error) {
	err = r.each(ctx, "list "+t.name, "SELECT "+t.list+" FROM "+t.name+" "+rest, args, into(t, &rows))
	return rows, err
}

// Load reads the wanted rows in one snapshot; see [store.Reader].
func (r *Reader) Load(ctx context.Context, keys *ledger.Keys, rows *ledger.Rows) error {
	return r.read(ctx, "load", func(c *conn) error {
		l := loader{ctx: ctx, conn: c}
		return l.load(keys, rows)
	})
}

// somePayloads finds payloads by their ids.
var somePayloads = "SELECT " + payloads.columns("t") + " FROM payloads t, unnest($1::uuid[], $2::bigint[]) AS k(owner, kind) WHERE t.owner = k.owner AND t.kind = k.kind"

// Payloads returns those of the wanted payloads that exist.
func (r *Reader) Payloads(ctx context.Context, ids ...ledger.PayloadID) (map[ledger.PayloadID]string, error) {
	found := make(map[ledger.PayloadID]string, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	w := payloads.writer(2)
	for _, id := range ids {
		payloads.add(w, &ledger.Payload{ID: id})
	}
	err := r.each(ctx, "read payloads", somePayloads, w.values(), func(row [][]byte) error {
		p := payloads.read(row)
		found[p.ID] = p.Body
		return nil
	})
	return found, err
}
