package work

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// slots bound what is under way of one kind at one upstream on this node, and
// space it out where the upstream has a rate. A slot is taken first; only as
// many rows as slots are leased.
type slots struct {
	mu sync.Mutex
	// every is the time between two turns, size how many slots there are in
	// all; left is below zero while more is under way than after a reload is
	// wanted.
	every      time.Duration
	size, left int
	next       time.Time
	// ahead is how many are taken that have not been given their turn yet.
	ahead int
	// busy shows what is under way at all upstreams together.
	busy prometheus.Gauge
	// served numbers the last turn of each tenant, turns counts them.
	served map[string]int64
	turns  int64
}

// resized sets the bounds and gives the slots; nil makes new ones. What is
// under way goes on and counts.
func (s *slots) resized(n int, spacing time.Duration, busy prometheus.Gauge) *slots {
	if s == nil {
		s = &slots{busy: busy}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left += n - s.size
	s.size, s.every = n, spacing
	return s
}

// free is how many slots can be taken at now: no more than can have their turn
// within a second, so that little is leased long before it begins.
func (s *slots) free(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.available(now)
}

func (s *slots) available(now time.Time) int {
	n := s.left
	if wait := max(s.next.Sub(now), 0); s.every > 0 && wait > time.Second {
		n = 0
	} else if s.every > 0 {
		n = min(n, int((time.Second-wait)/s.every)+1-s.ahead)
	}
	return max(n, 0)
}

// take takes up to n slots.
func (s *slots) take(n int, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.available(now))
	s.hold(n)
	s.ahead += n
	return n
}

// unused gives slots back that nothing was leased for.
func (s *slots) unused(n int) {
	s.mu.Lock()
	s.hold(-n)
	s.ahead -= n
	s.mu.Unlock()
}

// taken is how many slots are held.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.left
}

func (s *slots) give(n int) {
	s.mu.Lock()
	s.hold(-n)
	s.mu.Unlock()
}

// hold takes n more slots, or gives some back.
func (s *slots) hold(n int) {
	s.left -= n
	if s.busy != nil {
		s.busy.Add(float64(n))
	}
}

// turn is when what has a slot may begin. Calls get the next turn in the
// schedule: turns are at least 1/rate apart, so that no second ever holds more
// than the rate.
func (s *slots) turn(now time.Time, calls bool) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead--
	if s.every == 0 || !calls {
		return now
	}
	at := now
	if s.next.After(at) {
		at = s.next
	}
	s.next = at.Add(s.every)
	return at
}
