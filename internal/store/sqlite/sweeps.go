package sqlite

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	readyQueues = "WHERE kind = ? AND upstream = ? AND ready <= ? ORDER BY ready, tenant, endpoint LIMIT ?"

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

// Parked lists parked events that have no review, oldest first.
func (r *Reader) Parked(ctx context.Context, before pawl.Time, n int) ([]ledger.Event, error) {
	return list(ctx, r, &events.relation, parkedAlone, intValue(before), limit(n))
}

// Misqueued lists queues whose NextDue is later than their earliest due row.
func (r *Reader) Misqueued(ctx context.Context, n int) ([]ledger.Queue, error) {
	return list(ctx, r, &queues.relation, misqueued, limit(n))
}
