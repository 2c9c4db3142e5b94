package sqlite

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	readyQueues = "WHERE kind = ? AND upstream = ? AND ready <= ? ORDER BY ready, tenant, endpoint LIMIT ?"

	leasedOperations = "WHERE leased > 0 AND id > ? ORDER BY id LIMIT ?"
	leasedDeliveries = "WHERE leased = 1 AND id > ? ORDER BY id LIMIT ?"

	lateOperations = "WHERE state = 1 AND upstream = ? AND deadline <= ? ORDER BY deadline, id LIMIT ?"

	versionOf = "SELECT version FROM operations WHERE id = ?"

	parkedAlone = "WHERE parked = 1 AND at < ? AND review IS NULL ORDER BY at, id LIMIT ?"

	// One look-up for each name, not a walk along all that is due.
	waitedFor = `WITH RECURSIVE names(name) AS (
	SELECT min(upstream) FROM operations WHERE due_at < 9223372036854775807
	UNION ALL
	SELECT (SELECT min(upstream) FROM operations WHERE due_at < 9223372036854775807 AND upstream > name) FROM names WHERE name IS NOT NULL)
SELECT name FROM names WHERE name IS NOT NULL`

	misqueued = `WHERE next_due > coalesce(
	(SELECT min(due_at) FROM operations o WHERE o.upstream = queues.upstream AND o.tenant = queues.tenant
		AND o.queue = queues.kind AND o.due_at < 9223372036854775807),
	(SELECT min(due_at) FROM deliveries d WHERE (d.due_at < 9223372036854775807 OR d.state <= 2)
		AND d.endpoint = queues.endpoint AND d.due_at < 9223372036854775807),
	9223372036854775807)
ORDER BY ready, upstream, tenant, endpoint LIMIT ?`
)

// Ready returns queues that are ready, those longest ready first.
func (r *Reader) Ready(ctx context.Context, kind ledger.QueueKind, upstream string, by pawl.Time, n int) ([]ledger.Queue, error) {
	return list(ctx, r, &queues.relation, readyQueues, intValue(kind), textValue(upstream), intValue(by), limit(n))
}

// LeasedOperations lists what is leased now, in the order of ids.
func (r *Reader) LeasedOperations(ctx context.Context, p store.Page) ([]ledger.Operation, error) {
	return list(ctx, r, &operations.relation, leasedOperations, idValue(p.After), limit(p.Limit))
}

// LeasedDeliveries lists what is leased now, in the order of ids.
func (r *Reader) LeasedDeliveries(ctx context.Context, p store.Page) ([]ledger.Delivery, error) {
	return list(ctx, r, &deliveries.relation, leasedDeliveries, idValue(p.After), limit(p.Limit))
}

// Late are pending operations that are past their deadlines; see [store.Deadlines].
func (r *Reader) Late(ctx context.Context, upstream string, by pawl.Time, n int) ([]ledger.Operation, error) {
	return list(ctx, r, &operations.relation, lateOperations, textValue(upstream), intValue(by), limit(n))
}

// Parked lists parked events that have no review, oldest first.
func (r *Reader) Parked(ctx context.Context, before pawl.Time, n int) ([]ledger.Event, error) {
	return list(ctx, r, &events.relation, parkedAlone, intValue(before), limit(n))
}

// Versions are the versions of those of the operations that exist.
func (r *Reader) Versions(ctx context.Context, operations ...pawl.ID) (map[pawl.ID]int64, error) {
	found := make(map[pawl.ID]int64, len(operations))
	err := r.read(ctx, "read versions", func(c *conn) error {
		for _, id := range operations {
			err := c.each(versionOf, []value{idValue(id)}, func(s *sqlite3.Stmt) { found[id] = s.ColumnInt64(0) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// Misqueued lists queues whose NextDue is later than their earliest due row.
func (r *Reader) Misqueued(ctx context.Context, n int) ([]ledger.Queue, error) {
	return list(ctx, r, &queues.relation, misqueued, limit(n))
}

// WaitedFor names the upstreams that operations wait for, in the order of names.
func (r *Reader) WaitedFor(ctx context.Context) (names []string, err error) {
	err = r.read(ctx, "list upstreams", func(c *conn) error {
		return c.each(waitedFor, nil, func(s *sqlite3.Stmt) { names = append(names, s.ColumnText(0)) })
	})
	return names, err
}
