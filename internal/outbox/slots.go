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
	// first and most bound one endpoint.
	first, most int
	gauge       prometheus.Gauge

	// crowd is how many slots the endpoints that fail may hold together.
	crowd int

	mu   sync.Mutex
	free int
	busy map[pawl.ID]int
	// failing is how many of the busy slots are held by endpoints that fail.
	failing int
	// room is the present bound of endpoints for which it is not the first.
	room map[pawl.ID]int
	// served says since which turn each endpoint that is ready now has waited:
	// since it was last given a slot, or since it became ready.
	served map[pawl.ID]uint64
	turn   uint64
}

// grant is a number of slots taken for an endpoint.
type grant struct {
	endpoint pawl.ID
	n        int
}

func newSlots(first, most, total int, gauge prometheus.Gauge) *slots {
	return &slots{
		first: first, most: most, crowd: max(total*3/4, 1), gauge: gauge, free: total,
		busy: make(map[pawl.ID]int), room: make(map[pawl.ID]int),
	}
}

// bound is how many of an endpoint's deliveries may be under way.
func (s *slots) bound(endpoint pawl.ID) int {
	if n, ok := s.room[endpoint]; ok {
		return n
	}
	return s.first
}

// fails says whether an endpoint has failed so often of late that its bound is
// below where it began.
func (s *slots) fails(endpoint pawl.ID) bool { return s.bound(endpoint) < s.first }

// hold takes n slots for an endpoint, or gives them back if n is negative.
func (s *slots) hold(endpoint pawl.ID, n int) {
	s.free -= n
	if s.busy[endpoint] += n; s.busy[endpoint] <= 0 {
		delete(s.busy, endpoint)
	}
	if s.fails(endpoint) {
		s.failing += n
	}
	s.gauge.Add(float64(n))
}

// rooms is how many endpoints with a bound of their own are remembered.
const rooms = 10_000

// ended lets an endpoint that works take more at once, and one that does not
// take less.
func (s *slots) ended(endpoint pawl.ID, worked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, failed := s.bound(endpoint), s.fails(endpoint)
	if worked {
		n = min(n+1, s.most)
	} else {
		n = max(n/2, 1)
	}
	if len(s.room) >= rooms {
		clear(s.room)
		s.failing, failed = 0, false
	}
	s.room[endpoint] = n
	switch fails := s.fails(endpoint); {
	case fails && !failed:
		s.failing += s.busy[endpoint]
	case failed && !fails:
		s.failing -= s.busy[endpoint]
	}
}

// one takes a slot for an endpoint out of its turn, if there is one.
func (s *slots) one(endpoint pawl.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < 1 || s.busy[endpoint] >= s.bound(endpoint) {
		return false
	}
	s.hold(endpoint, 1)
	return true
}

// take shares the free slots among the endpoints that are ready: one each,
// those with the least under way first, then those served longest ago; and so
// on until the slots or the endpoints' own bounds are used up. Neither a backlog
// nor any number of endpoints that fail keeps another from its turn (1-product
// H4): those that fail leave a quarter of the slots to the others.
func (s *slots) take(ready []pawl.ID) []grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	order := slices.Clone(ready)
	served := make(map[pawl.ID]uint64, len(order))
	for _, id := range order {
		var waiting bool
		if served[id], waiting = s.served[id]; !waiting {
			served[id] = s.turn // whoever comes anew stands behind those who wait
		}
	}
	slices.SortStableFunc(order, func(a, b pawl.ID) int {
		return cmp.Or(cmp.Compare(s.busy[a], s.busy[b]), cmp.Compare(served[a], served[b]))
	})
	given := s.level(order)
	var grants []grant
	for i, id := range order {
		if given[i] > 0 {
			s.turn++
			served[id] = s.turn
			s.hold(id, given[i])
			grants = append(grants, grant{id, given[i]})
		}
	}
	s.served = served
	return grants
}

// level shares the free slots so that the lowest rise first.
func (s *slots) level(order []pawl.ID) (given []int) {
	given = make([]int, len(order))
	free, crowd := s.free, s.crowd-s.failing
	for level := 0; level < s.most && free > 0; level++ {
		for i, id := range order {
			fails := s.fails(id)
			if s.busy[id]+given[i] != level || level >= s.bound(id) || free <= 0 || fails && crowd <= 0 {
				continue
			}
			given[i]++
			free--
			if fails {
				crowd--
			}
		}
	}
	return given
}

func (s *slots) give(endpoint pawl.ID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(endpoint, -n)
}

// full reports whether an endpoint can be given no slot now.
func (s *slots) full(endpoint pawl.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	crowded := s.fails(endpoint) && s.failing >= s.crowd
	return s.free == 0 || crowded || s.busy[endpoint] >= s.bound(endpoint)
}
