package sqlite

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// The figures are counted in partial indexes, which hold what is open alone.
const (
	countUnfinished = "SELECT state, count(*), min(created_at) FROM operations WHERE " + unfinished + " GROUP BY state"
	countWork       = "SELECT queue, count(*), min(due_at) FROM operations WHERE due_at < 9223372036854775807 GROUP BY queue"
	countReviews    = "SELECT reason, count(*) FROM reviews WHERE closed_at = 0 GROUP BY reason"
	countWaiting    = "SELECT count(*), coalesce(min(due_at), 9223372036854775807) FROM deliveries WHERE (due_at < 9223372036854775807 OR state <= 2) AND state <= 2"
	countDead       = "SELECT count(*) FROM deliveries WHERE state = 4"
	countArtifacts  = "SELECT count(*), coalesce(min(ends_at), 0), coalesce(min(due_at), 9223372036854775807) FROM artifacts WHERE due_at < 9223372036854775807"
	countParked     = "SELECT count(*) FROM events WHERE parked = 1"
	countDisabled   = "SELECT count(*) FROM endpoints WHERE disabled = 1 AND deleted_at = 0"
)

// Stats are the figures of the metrics page.
func (r *Reader) Stats(ctx context.Context) (store.Stats, error) {
	stats := store.Stats{Unfinished: make(map[pawl.State]int64), Work: make(map[ledger.QueueKind]int64), WorkDue: make(map[ledger.QueueKind]pawl.Time), OpenReviews: make(map[pawl.Reason]int64)}
	count := func(c *conn, sql string, into *int64) func() error {
		return func() error {
			return c.each(sql, nil, func(s *sqlite3.Stmt) { *into = s.ColumnInt64(0) })
		}
	}
	err := r.read(ctx, "count", func(c *conn) error {
		return first(
			func() error {
				return c.each(countUnfinished, nil, func(s *sqlite3.Stmt) {
					stats.Unfinished[pawl.State(s.ColumnInt(0))] = s.ColumnInt64(1)
					if oldest := pawl.Time(s.ColumnInt64(2)); stats.OldestUnfinished == 0 || oldest < stats.OldestUnfinished {
						stats.OldestUnfinished = oldest
					}
				})
			},
			func() error {
				return c.each(countWork, nil, func(s *sqlite3.Stmt) {
					queue := ledger.QueueKind(s.ColumnInt(0))
					stats.Work[queue], stats.WorkDue[queue] = s.ColumnInt64(1), pawl.Time(s.ColumnInt64(2))
				})
			},
			func() error {
				return c.each(countReviews, nil, func(s *sqlite3.Stmt) {
					stats.OpenReviews[pawl.Reason(s.ColumnInt(0))] = s.ColumnInt64(1)
				})
			},
			func() error {
				return c.each(countWaiting, nil, func(s *sqlite3.Stmt) {
					stats.DeliveriesWaiting, stats.DeliveryDue = s.ColumnInt64(0), pawl.Time(s.ColumnInt64(1))
				})
			},
			count(c, countDead, &stats.DeliveriesDead),
			count(c, countParked, &stats.Parked),
			count(c, countDisabled, &stats.Disabled),
			func() error {
				return c.each(countArtifacts, nil, func(s *sqlite3.Stmt) {
					stats.ArtifactsWaiting, stats.FirstLinkEnd, stats.ArtifactDue = s.ColumnInt64(0), pawl.Time(s.ColumnInt64(1)), pawl.Time(s.ColumnInt64(2))
				})
			},
		)
	})
	return stats, err
}
