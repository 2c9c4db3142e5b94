package sqlite

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	readyQueues = "WHERE kind = ? AND ready <= ? ORDER BY ready, upstream, tenant, endpoint LIMIT ?"
	nextReady   = "SELECT ready FROM queues WHERE kind = ? ORDER BY ready LIMIT 1"

	leasedOperations = "WHERE leased > 0 AND id > ? ORDER BY id LIMIT ?"
	leasedDeliveries = "WHERE leased = 1 AND id > ? ORDER BY id LIMIT ?"

	parkedAlone = "WHERE parked = 1 AND at < ? AND review IS NULL ORDER BY at, id LIMIT ?"

	misqueued = `WHERE next_due > coalesce(
	(SELECT min(due_at) FROM operations o WHERE o.upstream = queues.upstream AND o.tenant = queues.tenant
		AND o.queue = queues.kind AND o.due_at < 9223372036854775807),
	(SELECT min(due_at) FROM deliveries d WHERE (d.due_at < 9223372036854775807 OR d.state <= 2)
		AND d.endpoint = queues.endpoint AND d.due_at < 9223372036854775807),
	9223372036854775807)
ORDER BY ready, upstream, tenant, endpoint LIMIT ?`
)

// Ready returns queues that are ready, those longest ready first.
func (r *Reader) Ready(ctx context.Context, kind ledger.QueueKind, now pawl.Time, n int) ([]ledger.Queue, error) {
	return list(ctx, r, &queues.relation, readyQueues, intValue(kind), intValue(now), limit(n))
}

// NextReady is when the next queue of the kind will be ready; Never if none.
func (r *Reader) NextReady(ctx context.Context, kind ledger.QueueKind) (pawl.Time, error) {
	next := pawl.Never
	err := r.read(ctx, "read queues", func(c *conn) error {
		return c.each(nextReady, []value{intValue(kind)}, func(s *sqlite3.Stmt) { next = pawl.Time(s.ColumnInt64(0)) })
	})
	return next, err
}

// LeasedOperations lists what is leased now, in the order of ids.
func (r *Reader) LeasedOperations(ctx context.Context, p store.Page) ([]ledger.Operation, error) {
	return list(ctx, r, &operations.relation, leasedOperations, idValue(p.After), limit(p.Limit))
}

// LeasedDeliveries lists what is leased now, in the order of ids.
func (r *Reader) LeasedDeliveries(ctx context.Context, p store.Page) ([]ledger.Delivery, error) {
	return list(ctx, r, &deliveries.relation, leasedDeliveries, idValue(p.After), limit(p.Limit))
}

// Parked lists parked events that have no review, oldest first.
func (r *Reader) Parked(ctx context.Context, before pawl.Time, n int) ([]ledger.Event, error) {
	return list(ctx, r, &events.relation, parkedAlone, intValue(before), limit(n))
}

// Misqueued lists queues whose NextDue is later than their earliest due row.
func (r *Reader) Misqueued(ctx context.Context, n int) ([]ledger.Queue, error) {
	return list(ctx, r, &queues.relation, misqueued, limit(n))
}
