package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	// One look-up for each line, not a walk along all that waits.
	workLines = `WITH RECURSIVE lines AS (
	(SELECT upstream, tenant, model, waiting_at FROM operations
		WHERE waiting_at > 'epoch' ORDER BY upstream, tenant, model, waiting_at LIMIT 1)
	UNION ALL
	SELECT next.* FROM lines CROSS JOIN LATERAL (SELECT o.upstream, o.tenant, o.model, o.waiting_at FROM operations o
		WHERE o.waiting_at > 'epoch' AND (o.upstream, o.tenant, o.model) > (lines.upstream, lines.tenant, lines.model)
		ORDER BY o.upstream, o.tenant, o.model, o.waiting_at LIMIT 1) next)
SELECT * FROM lines LIMIT $1::bigint`

	workWaiting = `SELECT id FROM operations WHERE waiting_at > 'epoch' AND upstream = $1::text AND tenant = $2::text AND model = $3::text
	AND waiting_at <= $4::timestamptz ORDER BY waiting_at, id LIMIT $5::bigint`
)

// WorkLines lists the lines in which something waits for own workers, since a
// moment of the caller's clock.
func (r *Reader) WorkLines(ctx context.Context, n int) (lines []store.Line, err error) {
	err = r.each(ctx, "list lines", workLines, []value{limit(n)}, func(row [][]byte) error {
		lines = append(lines, store.Line{
			Upstream: fromText(row[0]), Tenant: fromText(row[1]), Model: fromText(row[2]), Since: r.ours(fromInstant(row[3])),
		})
		return nil
	})
	return lines, err
}

// WorkWaiting names operations of a line that may be leased, oldest first. The
// moment is by the caller's clock, and is taken over to the database's.
func (r *Reader) WorkWaiting(ctx context.Context, l store.Line, by pawl.Time, n int) (ids []pawl.ID, err error) {
	args := []value{textValue(l.Upstream), textValue(l.Tenant), textValue(l.Model), timeValue(r.theirs(by)), limit(n)}
	err = r.each(ctx, "list waiting work", workWaiting, args, func(row [][]byte) error {
		ids = append(ids, pawl.ID(row[0]))
		return nil
	})
	return ids, err
}
