package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// The figures are counted in partial indexes, which hold what is open alone.
const (
	countUnfinished = "SELECT state, count(*), min(created_at) FROM operations WHERE " + unfinished + " GROUP BY state"
	countWork       = "SELECT queue, count(*), min(due_at) FROM operations WHERE due_at < 'infinity' GROUP BY queue"
	countReviews    = "SELECT reason, count(*) FROM reviews WHERE closed_at = 'epoch' GROUP BY reason"
	countWaiting    = "SELECT count(*), coalesce(min(due_at), 'infinity') FROM deliveries WHERE (due_at < 'infinity' OR state <= 2) AND state <= 2"
	countDead       = "SELECT count(*) FROM deliveries WHERE state = 4"
	countArtifacts  = "SELECT count(*), coalesce(min(ends_at), 'epoch'), coalesce(min(due_at), 'infinity') FROM artifacts WHERE due_at < 'infinity'"
	countParked     = "SELECT count(*) FROM events WHERE parked"
	countDisabled   = "SELECT count(*) FROM endpoints WHERE disabled AND deleted_at = 'epoch'"
)

// Stats are the figures of the metrics page.
func (r *Reader) Stats(ctx context.Context) (store.Stats, error) {
	stats := store.Stats{Unfinished: make(map[pawl.State]int64), Work: make(map[ledger.QueueKind]int64), WorkDue: make(map[ledger.QueueKind]pawl.Time), OpenReviews: make(map[pawl.Reason]int64)}
	count := func(into *int64) func([][]byte) error {
		return func(row [][]byte) error {
			*into = fromInt(row[0])
			return nil
		}
	}
	err := r.read(ctx, "count", func(c *conn) error {
		p := c.pipe(ctx)
		p.query(countUnfinished, nil, func(row [][]byte) error {
			stats.Unfinished[pawl.State(fromInt(row[0]))] = fromInt(row[1])
			if oldest := fromInstant(row[2]); stats.OldestUnfinished == 0 || oldest < stats.OldestUnfinished {
				stats.OldestUnfinished = oldest
			}
			return nil
		})
		p.query(countWork, nil, func(row [][]byte) error {
			queue := ledger.QueueKind(fromInt(row[0]))
			stats.Work[queue], stats.WorkDue[queue] = fromInt(row[1]), fromInstant(row[2])
			return nil
		})
		p.query(countReviews, nil, func(row [][]byte) error {
			stats.OpenReviews[pawl.Reason(fromInt(row[0]))] = fromInt(row[1])
			return nil
		})
		p.query(countWaiting, nil, func(row [][]byte) error {
			stats.DeliveriesWaiting, stats.DeliveryDue = fromInt(row[0]), fromInstant(row[1])
			return nil
		})
		p.query(countDead, nil, count(&stats.DeliveriesDead))
		p.query(countArtifacts, nil, func(row [][]byte) error {
			stats.ArtifactsWaiting, stats.FirstLinkEnd, stats.ArtifactDue = fromInt(row[0]), fromInstant(row[1]), fromInstant(row[2])
			return nil
		})
		p.query(countParked, nil, count(&stats.Parked))
		p.query(countDisabled, nil, count(&stats.Disabled))
		return p.run()
	})
	return stats, err
}
