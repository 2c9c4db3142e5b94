package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Ready returns queues that are ready, those longest ready first.
func (s *Store) Ready(ctx context.Context, kind ledger.QueueKind, upstream string, by pawl.Time, limit int) (rows []ledger.Queue, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.queues, longestReady, func(q ledger.Queue) bool {
			return q.ID.Kind == kind && q.ID.Upstream == upstream && q.Ready() <= by
		}), limit)
	})
	return rows, err
}

func longestReady(a, b ledger.Queue) int {
	return cmp.Or(cmp.Compare(a.Ready(), b.Ready()), cmp.Compare(a.ID.Upstream, b.ID.Upstream),
		cmp.Compare(a.ID.Tenant, b.ID.Tenant), a.ID.Endpoint.Compare(b.ID.Endpoint))
}

// LeasedOperations lists what is leased now, in the order of ids.
func (s *Store) LeasedOperations(ctx context.Context, p store.Page) (rows []ledger.Operation, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.operations, byID, func(o ledger.Operation) bool {
			return o.Leased != ledger.NoAction && o.ID.Compare(p.After) > 0
		}), p.Limit)
	})
	return rows, err
}

// LeasedDeliveries lists what is leased now, in the order of ids.
func (s *Store) LeasedDeliveries(ctx context.Context, p store.Page) (rows []ledger.Delivery, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.deliveries, byID, func(d ledger.Delivery) bool {
			return d.Leased && d.ID.Compare(p.After) > 0
		}), p.Limit)
	})
	return rows, err
}

// Parked lists parked events that have no review, oldest first.
func (s *Store) Parked(ctx context.Context, before pawl.Time, limit int) (rows []ledger.Event, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.events, oldestEvent, func(e ledger.Event) bool {
			return e.Parked && e.At < before && e.Review.IsZero()
		}), limit)
	})
	return rows, err
}

// Late are pending operations that are past their deadlines; see [store.Deadlines].
func (s *Store) Late(ctx context.Context, upstream string, by pawl.Time, limit int) (rows []ledger.Operation, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.operations, func(a, b ledger.Operation) int {
			return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), a.ID.Compare(b.ID))
		}, func(o ledger.Operation) bool {
			return o.State == pawl.Pending && o.Upstream == upstream && o.Deadline <= by
		}), limit)
	})
	return rows, err
}

// WaitedFor names the upstreams that operations wait for, in the order of names.
func (s *Store) WaitedFor(ctx context.Context) (names []string, err error) {
	err = s.read(ctx, func(t *tables) {
		for _, o := range t.operations {
			if o.DueAt != pawl.Never {
				names = append(names, o.Upstream)
			}
		}
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// Misqueued lists queues whose NextDue is later than their earliest due row.
func (s *Store) Misqueued(ctx context.Context, limit int) (rows []ledger.Queue, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.queues, longestReady, func(q ledger.Queue) bool {
			return q.NextDue > t.earliest(q.ID)
		}), limit)
	})
	return rows, err
}

// earliest is the due time of a queue's first row; Never if it has none.
func (t *tables) earliest(q ledger.QueueID) pawl.Time {
	if work := t.dueWork(q); len(work) > 0 {
		return work[0].DueAt
	}
	if deliveries := t.dueDeliveries(q); len(deliveries) > 0 {
		return deliveries[0].DueAt
	}
	return pawl.Never
}

// Versions are the versions of those of the operations that exist.
func (s *Store) Versions(ctx context.Context, operations ...pawl.ID) (map[pawl.ID]int64, error) {
	found := make(map[pawl.ID]int64, len(operations))
	err := s.read(ctx, func(t *tables) {
		for _, id := range operations {
			if o, ok := t.operations[id]; ok {
				found[id] = o.Version
			}
		}
	})
	return found, err
}

// Stats are the figures of the metrics page.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	stats := store.Stats{Unfinished: make(map[pawl.State]int64), Work: make(map[ledger.QueueKind]int64), OpenReviews: make(map[pawl.Reason]int64),
		WorkDue: make(map[ledger.QueueKind]pawl.Time), DeliveryDue: pawl.Never, ArtifactDue: pawl.Never}
	err := s.read(ctx, func(t *tables) {
		for _, ep := range t.endpoints {
			if ep.Disabled && ep.DeletedAt == 0 {
				stats.Disabled++
			}
		}
		for _, o := range t.operations {
			if o.DueAt != pawl.Never {
				if due, ok := stats.WorkDue[o.Queue]; !ok || o.DueAt < due {
					stats.WorkDue[o.Queue] = o.DueAt
				}
				stats.Work[o.Queue]++
			}
			if o.State.Terminal() {
				continue
			}
			stats.Unfinished[o.State]++
			if stats.OldestUnfinished == 0 || o.CreatedAt < stats.OldestUnfinished {
				stats.OldestUnfinished = o.CreatedAt
			}
		}
		for _, r := range t.reviews {
			if r.ClosedAt == 0 {
				stats.OpenReviews[r.Reason]++
			}
		}
		for _, d := range t.deliveries {
			switch d.State {
			case pawl.DeliveryPending, pawl.DeliveryDelivering:
				stats.DeliveriesWaiting++
				stats.DeliveryDue = min(stats.DeliveryDue, d.DueAt)
			case pawl.DeliveryDead:
				stats.DeliveriesDead++
			}
		}
		for _, a := range t.artifacts {
			if a.DueAt == pawl.Never {
				continue
			}
			stats.ArtifactsWaiting++
			stats.ArtifactDue = min(stats.ArtifactDue, a.DueAt)
			if stats.FirstLinkEnd == 0 || a.EndsAt < stats.FirstLinkEnd {
				stats.FirstLinkEnd = a.EndsAt
			}
		}
		for _, e := range t.events {
			if e.Parked {
				stats.Parked++
			}
		}
	})
	return stats, err
}
