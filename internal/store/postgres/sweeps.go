package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	readyQueues = "WHERE kind = $1::bigint AND upstream = $2::text AND ready <= $3::timestamptz ORDER BY ready, tenant, endpoint LIMIT $4::bigint"

	leasedOperations = "WHERE leased > 0 AND id > $1::uuid ORDER BY id LIMIT $2::bigint"
	leasedDeliveries = "WHERE leased AND id > $1::uuid ORDER BY id LIMIT $2::bigint"

	lateOperations = "WHERE state = 1 AND upstream = $1::text AND deadline <= $2::timestamptz ORDER BY deadline, id LIMIT $3::bigint"

	versionsOf = "SELECT id, version FROM operations WHERE id = ANY($1::uuid[])"

	parkedAlone = "WHERE parked AND at < $1::timestamptz AND review IS NULL ORDER BY at, id LIMIT $2::bigint"

	// One look-up for each name, not a walk along all that is due.
	waitedFor = `WITH RECURSIVE names(name) AS (
	SELECT min(upstream) FROM operations WHERE due_at < 'infinity'
	UNION ALL
	SELECT (SELECT min(upstream) FROM operations WHERE due_at < 'infinity' AND upstream > name) FROM names WHERE name IS NOT NULL)
SELECT name FROM names WHERE name IS NOT NULL`

	misqueued = `WHERE next_due > coalesce(
	(SELECT o.due_at FROM operations o WHERE o.upstream = queues.upstream AND o.tenant = queues.tenant
		AND o.queue = queues.kind AND o.due_at < 'infinity' ORDER BY o.due_at LIMIT 1),
	(SELECT d.due_at FROM deliveries d WHERE (d.due_at < 'infinity' OR d.state <= 2)
		AND d.endpoint = queues.endpoint AND d.due_at < 'infinity' ORDER BY d.due_at LIMIT 1),
	'infinity')
ORDER BY ready, upstream, tenant, endpoint LIMIT $1::bigint`
)

// Ready returns queues that are ready, those longest ready first. The moment is
// by the caller's clock, and is taken over to the database's.
func (r *Reader) Ready(ctx context.Context, kind ledger.QueueKind, upstream string, by pawl.Time, n int) ([]ledger.Queue, error) {
	return list(ctx, r, &queues.relation, readyQueues, intValue(kind), textValue(upstream), timeValue(r.theirs(by)), limit(n))
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
	return list(ctx, r, &operations.relation, lateOperations, textValue(upstream), timeValue(r.theirs(by)), limit(n))
}

// Parked lists parked events that have no review, oldest first.
func (r *Reader) Parked(ctx context.Context, before pawl.Time, n int) ([]ledger.Event, error) {
	return list(ctx, r, &events.relation, parkedAlone, timeValue(r.theirs(before)), limit(n))
}

// Versions are the versions of those of the operations that exist.
func (r *Reader) Versions(ctx context.Context, operations ...pawl.ID) (map[pawl.ID]int64, error) {
	found := make(map[pawl.ID]int64, len(operations))
	err := r.each(ctx, "read versions", versionsOf, []value{idArray(operations)}, func(row [][]byte) error {
		found[pawl.ID(row[0])] = fromInt(row[1])
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
	err = r.each(ctx, "list upstreams", waitedFor, nil, func(row [][]byte) error {
		names = append(names, fromText(row[0]))
		return nil
	})
	return names, err
}
