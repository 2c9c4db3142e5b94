package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
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
	eventWithoutKey = `(direction = 1 AND CASE WHEN rejudged_verdict > 0 THEN rejudged_verdict ELSE verdict END IN (1, 3, 4, 5) OR direction = 2 AND external_id <> '')
	AND NOT EXISTS (SELECT 1 FROM event_keys k WHERE k.event = events.id)`

	// The classes are those of the ledger's Delivery.class.
	eventMiscounted = `inbox > 0 AND (inbox <> CASE CASE WHEN rejudged_verdict > 0 THEN rejudged_verdict ELSE verdict END
	WHEN 7 THEN CASE WHEN rejudged_reason = 'discarded' THEN 3 ELSE 4 END WHEN 1 THEN CASE WHEN troubled > 0 THEN 4 WHEN waiting > 0 THEN 2 WHEN handled > 0 THEN 3 ELSE 1 END ELSE 0 END
	OR (waiting, troubled, handled) <> (
	SELECT count(*) FILTER (WHERE class = 1), count(*) FILTER (WHERE class = 2), count(*) FILTER (WHERE class = 3) FROM (SELECT CASE
		WHEN NOT inbound OR state = 5 THEN 0 WHEN completed_at > 'epoch' OR discarded THEN 3 WHEN state = 4 THEN 2
		WHEN state <> 3 THEN 1 WHEN overdue >= 2 THEN 2 WHEN complete_by > 'epoch' THEN 1 ELSE 3 END AS class
		FROM deliveries d WHERE d.event = events.id) classed))`

	parkedWithOperation = `WHERE parked AND EXISTS (SELECT 1 FROM tasks t
	WHERE t.upstream = events.source AND t.task = events.task AND t.operation IS NOT NULL) ORDER BY id LIMIT 100`

	taskWithoutOperation = "operation IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = tasks.operation)"
	deliveryWithoutEvent = "NOT EXISTS (SELECT 1 FROM events e WHERE e.id = deliveries.event)"
	keyWithoutOperation  = "purpose = 'operation' AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = idempotency_keys.operation)"

	// The accounts that the journal names are found by hops over its key.
	entryWithoutAccount = `WHERE account = ANY (ARRAY(WITH RECURSIVE named (id) AS (
	(SELECT account FROM entries ORDER BY account LIMIT 1)
	UNION ALL SELECT (SELECT account FROM entries WHERE account > named.id ORDER BY account LIMIT 1) FROM named WHERE id IS NOT NULL
) SELECT id FROM named WHERE id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = named.id))) ORDER BY id LIMIT 100`
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
	last := "SELECT at FROM (SELECT " + column + " AS at FROM " + t.name +
		" WHERE " + column + " > $1::uuid ORDER BY " + column + " LIMIT $2::bigint) step ORDER BY at DESC LIMIT 1"
	rest := "WHERE " + column + " > $1::uuid AND " + column + " <= $2::uuid AND " + condition + " ORDER BY " + column + " LIMIT $3::bigint"
	var from pawl.ID
	more := true
	for more && len(*into) < looseLimit {
		err := r.read(ctx, "read loose rows of "+t.name, func(c *conn) error {
			var to pawl.ID
			more = false
			err := c.each(ctx, last, []value{idValue(from), limit(looseStep)}, func(row [][]byte) error {
				to, more = pawl.ID(row[0]), true
				return nil
			})
			if err != nil || !more {
				return err
			}
			found, err := query(ctx, c, t, rest, idValue(from), idValue(to), limit(looseLimit-len(*into)))
			*into, from = append(*into, found...), to
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
