package sqlite

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl/internal/ledger"
)

const (
	// looseLimit bounds how many rows of a kind are shown.
	looseLimit = 100
	// looseStep is how many rows one statement looks at: a longer one would
	// pin the log.
	looseStep = 5000
)

const (
	// A duplicate is stored only if it was judged anew, and has no key.
	eventWithoutKey = `(direction = 1 AND iif(rejudged_verdict > 0, rejudged_verdict, verdict) IN (1, 3, 4, 5) OR direction = 2 AND external_id <> '')
	AND NOT EXISTS (SELECT 1 FROM event_keys k WHERE k.event = events.id)`

	// The classes are those of the ledger's Delivery.class.
	eventMiscounted = `inbox > 0 AND (inbox <> CASE iif(rejudged_verdict > 0, rejudged_verdict, verdict)
	WHEN 7 THEN iif(rejudged_reason = 'discarded', 3, 4) WHEN 1 THEN iif(troubled > 0, 4, iif(waiting > 0, 2, iif(handled > 0, 3, 1))) ELSE 0 END OR (waiting, troubled, handled) <> (
	SELECT coalesce(sum(class = 1), 0), coalesce(sum(class = 2), 0), coalesce(sum(class = 3), 0) FROM (SELECT CASE
		WHEN inbound = 0 OR state = 5 THEN 0 WHEN completed_at > 0 OR discarded = 1 THEN 3 WHEN state = 4 THEN 2
		WHEN state <> 3 THEN 1 WHEN overdue >= 2 THEN 2 WHEN complete_by > 0 THEN 1 ELSE 3 END AS class
		FROM deliveries d WHERE d.event = events.id)))`

	parkedWithOperation = `WHERE parked = 1 AND EXISTS (SELECT 1 FROM tasks t
	WHERE t.upstream = events.source AND t.task = events.task AND t.operation IS NOT NULL) ORDER BY +id LIMIT 100`

	taskWithoutOperation = "operation IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = tasks.operation)"
	deliveryWithoutEvent = "NOT EXISTS (SELECT 1 FROM events e WHERE e.id = deliveries.event)"
	keyWithoutOperation  = "purpose = 'operation' AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = idempotency_keys.operation)"

	// The accounts that the journal names are found by hops over its key.
	entryWithoutAccount = `WHERE account IN (WITH RECURSIVE named (id) AS (
	SELECT min(account) FROM entries
	UNION ALL SELECT (SELECT min(account) FROM entries WHERE account > named.id) FROM named WHERE id IS NOT NULL
) SELECT id FROM named WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = named.id)) ORDER BY id LIMIT 100`
)

// LooseFacts returns up to 100 rows of each kind that hang on nothing they
// should hang on. What a row hangs on is written with it, so every step may
// have a snapshot of its own.
func (r *Reader) LooseFacts(ctx context.Context) (loose ledger.LooseFacts, err error) {
	err = first(
		func() error { return sift(ctx, r, &loose.EventsWithoutKey, &events.relation, "id", eventWithoutKey) },
		func() error { return sift(ctx, r, &loose.EventsMiscounted, &events.relation, "id", eventMiscounted) },
		func() error {
			loose.ParkedWithOperation, err = list(ctx, r, &events.relation, parkedWithOperation)
			return err
		},
		func() error {
			return sift(ctx, r, &loose.TasksWithoutOperation, &tasks.relation, "operation", taskWithoutOperation)
		},
		func() error {
			return sift(ctx, r, &loose.DeliveriesWithoutEvent, &deliveries.relation, "id", deliveryWithoutEvent)
		},
		func() error {
			loose.EntriesWithoutAccount, err = list(ctx, r, &entries, entryWithoutAccount)
			return err
		},
		func() error {
			return sift(ctx, r, &loose.KeysWithoutOperation, &idempotencyKeys.relation, "operation", keyWithoutOperation)
		},
	)
	return loose, err
}

// sift walks over a large table in steps along an indexed column and keeps
// the rows that fit the condition.
func sift[R any](ctx context.Context, r *Reader, into *[]R, t *relation[R], column, condition string) error {
	last := "SELECT max(at) FROM (SELECT " + column + " AS at FROM " + t.name +
		" WHERE " + column + " > ? ORDER BY " + column + " LIMIT ?)"
	rest := "WHERE " + column + " > ? AND " + column + " <= ? AND " + condition + " ORDER BY " + column + " LIMIT ?"
	from, more := blobValue(nil), true
	for more && len(*into) < looseLimit {
		err := r.read(ctx, "read loose rows of "+t.name, func(c *conn) error {
			var to value
			err := c.each(last, []value{from, limit(looseStep)}, func(s *sqlite3.Stmt) { to = blobValue(s.ColumnRawBlob(0)) })
			if more = to.n > 0; err != nil || !more {
				return err
			}
			found, err := query(c, t, rest, from, to, limit(looseLimit-len(*into)))
			*into, from = append(*into, found...), to
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
