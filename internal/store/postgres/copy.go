package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var _ store.CopyTarget = (*Driver)(nil)

// bulk reads a table as a whole.
type bulk struct {
	name, order, list string
	read              func([][]byte) any
}

// whole is the bulk of a relation, by its leading columns.
func whole[R any](t *relation[R], keys int) bulk {
	return bulk{
		name: t.name, order: strings.Join(t.names[:keys], ", "), list: t.list,
		read: func(row [][]byte) any { return t.read(row) },
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
		for _, b := range bulks() {
			err := c.each(ctx, "SELECT count(*) FROM "+b.name, nil, func(row [][]byte) error {
				counts = append(counts, store.TableCount{Table: b.name, Rows: fromInt(row[0])})
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return counts, err
}

// Export hands over the rows of a table; see [store.Whole].
func (r *Reader) Export(ctx context.Context, table string, skip int64, row func(any) error) error {
	for _, b := range bulks() {
		if b.name == table {
			// What nobody wants any more need not come.
			limited, cancel := context.WithCancel(ctx)
			defer cancel()
			var failed error
			err := r.each(limited, "read "+table, "SELECT "+b.list+" FROM "+b.name+" ORDER BY "+b.order+" OFFSET $1::bigint", []value{intValue(skip)},
				func(columns [][]byte) error {
					if failed = row(b.read(columns)); failed != nil {
						cancel()
					}
					return failed
				})
			if failed != nil {
				return failed
			}
			return err
		}
	}
	return fmt.Errorf("postgres: there is no table %s", table)
}

// LastBatch is the id of the latest batch; see [store.Whole].
func (r *Reader) LastBatch(ctx context.Context) (id pawl.ID, err error) {
	err = r.each(ctx, "find the last batch", latestBatch, nil, func(row [][]byte) error {
		copy(id[:], row[0])
		return nil
	})
	return id, err
}

// CopyState is that of the copy which this ledger is; see [store.CopyTarget].
func (r *Reader) CopyState(ctx context.Context) (state store.CopyState, ok bool, err error) {
	err = r.each(ctx, "look for a copy", "SELECT source, place, done, started_at, finished_at FROM copies", nil, func(row [][]byte) error {
		ok = true
		copy(state.Source[:], row[0])
		state.Table, state.Done = fromText(row[1]), fromInt(row[2])
		state.StartedAt, state.FinishedAt = fromInstant(row[3]), fromInstant(row[4])
		return nil
	})
	return state, ok, err
}

// copiesSince is the version of the schema that knows of copies.
const copiesSince = 2

// complete refuses a ledger that is an unfinished copy.
func (r *Reader) complete(ctx context.Context) error {
	var known bool
	err := r.read(ctx, "read the schema's version", func(c *conn) error {
		all, err := c.migrations(ctx)
		known = err == nil && all[len(all)-1].Version >= copiesSince
		return err
	})
	if err != nil || !known {
		return err
	}
	state, ok, err := r.CopyState(ctx)
	if err == nil && ok && state.FinishedAt == 0 {
		return store.ErrUnfinishedCopy
	}
	return err
}

const recordCopy = `INSERT INTO copies (source, place, done, started_at, finished_at) VALUES ($1::uuid, $2::text, $3::bigint, $4::timestamptz, $5::timestamptz)
ON CONFLICT (source) DO UPDATE SET place = excluded.place, done = excluded.done, finished_at = excluded.finished_at`

// Import adds rows of the copied ledger; see [store.CopyTarget]. At the end the
// planner is told of what has come.
func (d *Driver) Import(ctx context.Context, state store.CopyState, rows *ledger.Rows) error {
	err := d.Update(ctx, store.NewID(), func(t store.Tx) error {
		if rows != nil {
			if err := t.Save(rows); err != nil {
				return err
			}
		}
		return explain(ctx, "record the copy", t.(*tx).conn.exec(ctx, recordCopy, idValue(state.Source), textValue(state.Table),
			intValue(state.Done), timeValue(state.StartedAt), timeValue(state.FinishedAt)))
	})
	if err != nil || state.FinishedAt == 0 {
		return err
	}
	return explain(ctx, "analyze", d.writers.use(ctx, func(c *conn) error { return c.exec(ctx, "ANALYZE") }))
}

// Who serves a database has sessions of the program's name on it, beside the one
// that asks, and tells of itself.
const (
	otherSessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
	findNodes     = "SELECT to_regclass('nodes') IS NOT NULL"
	livingNodes   = "SELECT count(*) FROM nodes WHERE seen_at > clock_timestamp() - $1::bigint * interval '1 second'"
)

// ServedError says that other processes use a database.
type ServedError struct{ Sessions, Nodes int64 }

// Error says what to do.
func (e *ServedError) Error() string {
	if e.Sessions == 0 {
		return fmt.Sprintf("%d nodes of Pawl have told lately that they serve this database: stop them first; of one that was killed nothing is heard for %s", e.Nodes, store.NodeSilentAfter)
	}
	return fmt.Sprintf("%d connections of Pawl to this database are open: stop its nodes first", e.Sessions)
}

// Unserved returns a [ServedError] if nodes use the database. One that has just
// ended may need a moment to be gone. The connections of a pooler outlive those who
// use them, and may have another name in the URL of the nodes; these tell of
// themselves all the same.
func Unserved(ctx context.Context, url string) error {
	at, err := locate(url)
	if err != nil {
		return explain(ctx, "open", err)
	}
	r, err := openReader(ctx, at, 1)
	if err != nil {
		return explain(ctx, "open", err)
	}
	var found ServedError
	for tries := 0; ; tries++ {
		found, err = r.served(ctx, !at.pooled)
		if err != nil || found == (ServedError{}) || tries == 15 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err = errors.Join(err, r.Close()); err != nil || found == (ServedError{}) {
		return err
	}
	return &found
}

// served tells who uses the database, by its sessions too where they tell.
func (r *Reader) served(ctx context.Context, sessions bool) (found ServedError, err error) {
	count := func(into *int64) func([][]byte) error {
		return func(row [][]byte) error {
			*into = fromInt(row[0])
			return nil
		}
	}
	err = r.use(ctx, "look for nodes", func(c *conn) error {
		known := false
		p := c.pipe(ctx)
		p.query(findNodes, nil, func(row [][]byte) error {
			known = row[0][0] != 0
			return nil
		})
		if sessions {
			p.query(otherSessions, nil, count(&found.Sessions))
		}
		if err := p.run(); err != nil || !known {
			return c.dead(err)
		}
		return c.each(ctx, livingNodes, []value{intValue(int64(store.NodeSilentAfter / time.Second))}, count(&found.Nodes))
	})
	return found, err
}
