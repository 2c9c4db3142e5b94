package work

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/upstream"
)

// maxServed bounds what is remembered of a round.
const maxServed = 1000

// window is how many ready queues must be looked at to find so many that have
// not been served in this round: those that have are ready the longest.
func (s *slots) window(free int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return free + len(s.served)
}

// fair picks the queues whose turn it is, so that a tenant with few operations
// waits for one turn of the others and not for all that they have waiting
// (1-product B5). Tenants that have had no slots in this round come first, those
// ready the longest before the others; a new round begins when those that are
// left get slots all at once. whole says that no further queue is ready.
func (s *slots) fair(ready []ledger.Queue, whole bool, free int) []ledger.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first, again []ledger.Queue
	for _, q := range ready {
		if s.served[q.ID.Tenant] {
			again = append(again, q)
		} else {
			first = append(first, q)
		}
	}
	if whole && len(first) <= free || len(s.served) >= maxServed || s.served == nil {
		s.served = make(map[string]bool)
	}
	picked := append(first, again...)
	picked = picked[:min(free, len(picked))]
	for _, q := range picked {
		s.served[q.ID.Tenant] = true
	}
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
