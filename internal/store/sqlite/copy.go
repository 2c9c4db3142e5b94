package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var _ store.CopyTarget = (*Driver)(nil)

// bulk reads a table as a whole.
type bulk struct {
	name, order string
	each        func(c *conn, sql string, skip int64, row func(any) error) error
	list        string
}

// whole is the bulk of a relation, by its leading columns.
func whole[R any](t *relation[R], keys int) bulk {
	return bulk{
		name: t.name, order: strings.Join(t.names[:keys], ", "), list: t.list,
		each: func(c *conn, sql string, skip int64, row func(any) error) error {
			s, err := c.prepare(sql)
			if err != nil {
				return err
			}
			defer release(s)
			if err := s.BindInt64(1, skip); err != nil {
				return err
			}
			for s.Step() {
				if err := row(read(c, t, s)); err != nil {
					return err
				}
			}
			return s.Err()
		},
	}
}

// bulks are all tables, in the order in which they are copied.
func bulks() []bulk {
	return []bulk{
		whole(&wrappingKeys.relation, wrappingKeys.keys),
		whole(&tenants.relation, tenants.keys),
		whole(&apiKeys.relation, apiKeys.keys),
		whole(&accounts.relation, accounts.keys),
		whole(&endpoints.relation, endpoints.keys),
		whole(&sources.relation, sources.keys),
		whole(&unknownTypes.relation, unknownTypes.keys),
		whole(&budgets.relation, budgets.keys),
		whole(&queues.relation, queues.keys),
		whole(&idempotencyKeys.relation, idempotencyKeys.keys),
		whole(&correlations.relation, correlations.keys),
		whole(&eventKeys.relation, eventKeys.keys),
		whole(&tasks.relation, tasks.keys),
		whole(&operations.relation, operations.keys),
		whole(&events.relation, events.keys),
		whole(&reviews.relation, reviews.keys),
		whole(&deliveries.relation, deliveries.keys),
		whole(&replays.relation, replays.keys),
		whole(&artifacts.relation, artifacts.keys),
		whole(&entries, 2),
		whole(&history, 3),
		whole(&attempts, 2),
		whole(&audits, 1),
		whole(&auditSeals.relation, auditSeals.keys),
		whole(&payloads, 2),
	}
}

// Counts are the rows of every table; see [store.Whole].
func (r *Reader) Counts(ctx context.Context) (counts []store.TableCount, err error) {
	err = r.read(ctx, "count rows", func(c *conn) error {
		counts, err = c.counts()
		return err
	})
	return counts, err
}

func (c *conn) counts() ([]store.TableCount, error) {
	var counts []store.TableCount
	for _, b := range bulks() {
		err := c.each("SELECT count(*) FROM "+b.name, nil, func(s *sqlite3.Stmt) {
			counts = append(counts, store.TableCount{Table: b.name, Rows: s.ColumnInt64(0)})
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// Export hands over the rows of a table; see [store.Whole].
func (r *Reader) Export(ctx context.Context, table string, skip int64, row func(any) error) error {
	for _, b := range bulks() {
		if b.name == table {
			var failed error
			err := r.read(ctx, "read "+table, func(c *conn) error {
				return b.each(c, "SELECT "+b.list+" FROM "+b.name+" ORDER BY "+b.order+" LIMIT -1 OFFSET ?", skip, func(got any) error {
					failed = row(got)
					return failed
				})
			})
			if failed != nil {
				return failed
			}
			return err
		}
	}
	return fmt.Errorf("sqlite: there is no table %s", table)
}

// LastBatch is the id of the latest batch; see [store.Whole].
func (r *Reader) LastBatch(ctx context.Context) (id pawl.ID, err error) {
	err = r.read(ctx, "find the last batch", func(c *conn) error {
		return c.each("SELECT id FROM batches ORDER BY number DESC LIMIT 1", nil, func(s *sqlite3.Stmt) {
			copy(id[:], s.ColumnRawBlob(0))
		})
	})
	return id, err
}

// CopyState is that of the copy which this ledger is; see [store.CopyTarget].
func (r *Reader) CopyState(ctx context.Context) (state store.CopyState, ok bool, err error) {
	err = r.read(ctx, "look for a copy", func(c *conn) error {
		state, ok, err = c.copyState()
		return err
	})
	return state, ok, err
}

func (c *conn) copyState() (state store.CopyState, ok bool, err error) {
	err = c.each("SELECT source, place, done, started_at, finished_at FROM copies", nil, func(s *sqlite3.Stmt) {
		ok = true
		copy(state.Source[:], s.ColumnRawBlob(0))
		state.Table, state.Done = s.ColumnText(1), s.ColumnInt64(2)
		state.StartedAt, state.FinishedAt = pawl.Time(s.ColumnInt64(3)), pawl.Time(s.ColumnInt64(4))
	})
	return state, ok, err
}

// copiesSince is the version of the schema that knows of copies.
const copiesSince = 2

// complete refuses a ledger that is an unfinished copy, unless that is what is
// worked on.
func (c *conn) complete(copying bool) error {
	all, err := c.migrations()
	if err != nil || copying || all[len(all)-1].Version < copiesSince {
		return err
	}
	state, ok, err := c.copyState()
	if err == nil && ok && state.FinishedAt == 0 {
		return store.ErrUnfinishedCopy
	}
	return err
}

// Import adds rows of the copied ledger; see [store.CopyTarget].
func (d *Driver) Import(ctx context.Context, state store.CopyState, rows *ledger.Rows) error {
	return d.Update(ctx, store.NewID(), func(t store.Tx) error {
		if rows != nil {
			if err := t.Save(rows); err != nil {
				return err
			}
		}
		return explain(ctx, "record the copy", d.write.exec("REPLACE INTO copies (source, place, done, started_at, finished_at) VALUES (?, ?, ?, ?, ?)",
			[]value{idValue(state.Source), textValue(state.Table), intValue(state.Done), intValue(state.StartedAt), intValue(state.FinishedAt)}))
	})
}

// Stopped is a ledger that is read while nobody serves it: its folder is locked
// until it is closed.
type Stopped struct {
	*Reader
	lock *os.File
}

// OpenStopped opens the ledger in dir for reading and keeps everybody from
// serving it. One that is served is a [LockedError].
func OpenStopped(ctx context.Context, dir string) (*Stopped, error) {
	if err := exists(dir); err != nil {
		return nil, err
	}
	held, err := lock(dir)
	if err != nil {
		return nil, err
	}
	r, err := OpenReadOnly(ctx, dir)
	if err == nil {
		err = explain(ctx, "open", r.complete(ctx))
	}
	if err != nil {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
		return nil, errors.Join(err, held.Close())
	}
	return &Stopped{r, held}, nil
}

func (r *Reader) complete(ctx context.Context) error {
	return r.read(ctx, "look for a copy", func(c *conn) error { return c.complete(false) })
}

// Close frees the folder.
func (s *Stopped) Close() error { return errors.Join(s.Reader.Close(), s.lock.Close()) }

// Holds says whether there is a ledger's file in dir.
func Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return err == nil
}
