package work

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/upstream"
)

// maxServed bounds how many tenants' last turns are remembered.
const maxServed = 1000

// window is how many ready queues must be looked at to find so many that have
// had no turn yet: those that have had one are ready the longest.
func (s *slots) window(free int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return free + len(s.served)
}

// fair picks the queues whose turn it is, so that a tenant with few operations
// waits for one turn of the others and not for all that they have waiting
// (1-product B5): those whose last turn is the longest ago, and of these the
// longest ready. whole says that no further queue is ready.
func (s *slots) fair(ready []ledger.Queue, whole bool, free int) []ledger.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(ready, func(a, b ledger.Queue) int { return cmp.Compare(s.served[a.ID.Tenant], s.served[b.ID.Tenant]) })
	kept := s.served
	if whole || len(kept) >= maxServed || kept == nil {
		// Who has nothing waiting, or is one too many to be remembered, comes
		// first next time.
		kept = make(map[string]int64)
		for _, q := range ready[:min(len(ready), maxServed)] {
			kept[q.ID.Tenant] = s.served[q.ID.Tenant]
		}
	}
	picked := ready[:min(free, len(ready))]
	for _, q := range picked {
		s.turns++
		kept[q.ID.Tenant] = s.turns
	}
	s.served = kept
	return picked
}

// ready are the queues of an upstream that slots may be taken for, none while
// its creates are paused.
func (w *Worker) ready(ctx context.Context, kind ledger.QueueKind, up upstream.Upstream, s *slots, now time.Time, free int) ([]ledger.Queue, error) {
	closed, err := w.closedUntil(ctx, kind, up.Name())
	if err != nil || closed > pawl.TimeOf(now) {
		return nil, err
	}
	window := s.window(free)
	queues, err := w.o.Reader.Ready(ctx, kind, up.Name(), pawl.TimeOf(now), window)
	return s.fair(queues, len(queues) < window, free), err
}

// closedUntil is when an upstream's gate opens; reads have none.
func (w *Worker) closedUntil(ctx context.Context, kind ledger.QueueKind, upstream string) (pawl.Time, error) {
	if kind != ledger.SubmitQueue {
		return 0, nil
	}
	var rows ledger.Rows
	gate := ledger.GateID(upstream)
	if err := w.o.Reader.Load(ctx, &ledger.Keys{Queues: []ledger.QueueID{gate}}, &rows); err != nil {
		return 0, err
	}
	q, _ := rows.Queues.Get(gate)
	return q.PausedUntil, nil
}
