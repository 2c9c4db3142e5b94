package outbox

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
)

// slots count what is under way on this node, by endpoint and in all. A slot
// is taken before a row is leased, so that no lease waits for its turn.
type slots struct {
	per   int
	gauge prometheus.Gauge

	mu   sync.Mutex
	free int
	busy map[pawl.ID]int
	// served is the turn in which an endpoint was last given a slot, kept for
	// those that are ready now.
	served map[pawl.ID]uint64
	turn   uint64
}

// grant is a number of slots taken for an endpoint.
type grant struct {
	endpoint pawl.ID
	n        int
}

func newSlots(per, total int, gauge prometheus.Gauge) *slots {
	return &slots{per: per, gauge: gauge, free: total, busy: make(map[pawl.ID]int)}
}

// take shares the free slots among the endpoints that are ready: one each,
// those with the least under way first, then those served longest ago; and so
// on until the slots or the endpoints' own bounds are used up. A backlog never
// keeps another endpoint from its turn (1-product H4).
func (s *slots) take(ready []pawl.ID) []grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := slices.Clone(ready)
	slices.SortStableFunc(order, func(a, b pawl.ID) int {
		return cmp.Or(cmp.Compare(s.busy[a], s.busy[b]), cmp.Compare(s.served[a], s.served[b]))
	})
	given := make([]int, len(order))
	taken := 0
	for level := 0; level < s.per && s.free > taken; level++ {
		for i, id := range order {
			if s.busy[id]+given[i] == level && s.free > taken {
				given[i]++
				taken++
			}
		}
	}
	s.turn++
	served := make(map[pawl.ID]uint64, len(order))
	var grants []grant
	for i, id := range order {
		if served[id] = s.served[id]; given[i] > 0 {
			served[id] = s.turn
			s.busy[id] += given[i]
			grants = append(grants, grant{id, given[i]})
		}
	}
	s.served = served
	s.free -= taken
	s.gauge.Add(float64(taken))
	return grants
}

func (s *slots) give(endpoint pawl.ID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	if s.busy[endpoint] -= n; s.busy[endpoint] <= 0 {
		delete(s.busy, endpoint)
	}
	s.gauge.Sub(float64(n))
}
