package sqlite

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	// One look-up for each line, not a walk along all that waits.
	nextLine = `SELECT upstream, tenant, model, waiting_at FROM operations
WHERE waiting_at > 0 AND (upstream, tenant, model) > (?, ?, ?) ORDER BY upstream, tenant, model, waiting_at LIMIT 1`

	waitingWork = `SELECT id FROM operations
WHERE waiting_at > 0 AND upstream = ? AND tenant = ? AND model = ? AND waiting_at <= ? ORDER BY waiting_at, id LIMIT ?`
)

// WorkLines lists the lines in which something waits for own workers.
func (r *Reader) WorkLines(ctx context.Context, n int) (lines []store.Line, err error) {
	err = r.read(ctx, "list lines", func(c *conn) error {
		var last store.Line
		for more := true; more && len(lines) < n; {
			more = false
			err := c.each(nextLine, []value{textValue(last.Upstream), textValue(last.Tenant), textValue(last.Model)}, func(s *sqlite3.Stmt) {
				last = store.Line{Upstream: s.ColumnText(0), Tenant: s.ColumnText(1), Model: s.ColumnText(2), Since: pawl.Time(s.ColumnInt64(3))}
				lines, more = append(lines, last), true
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return lines, err
}

// WorkWaiting names operations of a line that may be leased, oldest first.
func (r *Reader) WorkWaiting(ctx context.Context, l store.Line, by pawl.Time, n int) (ids []pawl.ID, err error) {
	args := []value{textValue(l.Upstream), textValue(l.Tenant), textValue(l.Model), intValue(by), limit(n)}
	err = r.read(ctx, "list waiting work", func(c *conn) error {
		return c.each(waitingWork, args, func(s *sqlite3.Stmt) {
			var id pawl.ID
			copy(id[:], s.ColumnRawBlob(0))
			ids = append(ids, id)
		})
	})
	return ids, err
}
