package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var _ store.Reader = (*Reader)(nil)

// Reader reads committed rows on a few connections of its own. It is safe for
// concurrent use: who finds all connections taken waits for one.
type Reader struct {
	pool    chan *conn
	size    int
	closed  chan struct{}
	closing sync.Once
}

func openReader(ctx context.Context, path string, size int) (*Reader, error) {
	r := &Reader{pool: make(chan *conn, size), closed: make(chan struct{})}
	for range size {
		c, err := connect(ctx, path, sqlite3.OPEN_READONLY, "")
		if err == nil {
			r.size++
			r.pool <- c
			// A first read finds out now whether the file can be read at all.
			err = c.db.Exec("SELECT 1 FROM sqlite_schema LIMIT 1")
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Close waits for the reads under way and closes the connections.
func (r *Reader) Close() (err error) {
	r.closing.Do(func() {
		close(r.closed)
		for range r.size {
			c := <-r.pool
			err = errors.Join(err, c.close())
		}
	})
	return err
}

// acquire takes a connection; whoever takes it puts it back.
func acquire(ctx context.Context, from chan *conn, closed <-chan struct{}) (*conn, error) {
	select {
	case <-closed:
		return nil, store.ErrClosed
	default:
	}
	select {
	case c := <-from:
		return c, nil
	case <-closed:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read runs fn in one snapshot, which lasts no longer than fn.
func (r *Reader) read(ctx context.Context, op string, fn func(*conn) error) (err error) {
	c, err := acquire(ctx, r.pool, r.closed)
	if err != nil {
		return err
	}
	defer func() { r.pool <- c }()
	defer func() { err = explain(ctx, op, errors.Join(err, c.end("ROLLBACK"))) }()
	if err := c.begin(ctx, "BEGIN"); err != nil {
		return err
	}
	return fn(c)
}

// Load reads the wanted rows in one snapshot; see [store.Reader].
func (r *Reader) Load(ctx context.Context, keys *ledger.Keys, rows *ledger.Rows) error {
	return r.read(ctx, "load", func(c *conn) error { return c.load(keys, rows) })
}

// Payloads returns those of the wanted payloads that exist.
func (r *Reader) Payloads(ctx context.Context, ids ...ledger.PayloadID) (map[ledger.PayloadID]string, error) {
	found := make(map[ledger.PayloadID]string, len(ids))
	err := r.read(ctx, "read payloads", func(c *conn) error {
		for _, k := range ids {
			rows, err := query(c, &payloads, "WHERE owner = ? AND kind = ?", idValue(k.Owner), intValue(k.Kind))
			if err != nil {
				return err
			}
			for _, p := range rows {
				found[p.ID] = p.Body
			}
		}
		return nil
	})
	return found, err
}
