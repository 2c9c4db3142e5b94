package work

import (
	"context"
	"sync"
	"time"
)

// slots bound what is under way of one kind at one upstream on this node, and
// space it out where the upstream has a rate. A slot is taken first; only as
// many rows as slots are leased.
type slots struct {
	every time.Duration

	mu   sync.Mutex
	left int
	next time.Time
}

func newSlots(n int, perSecond int64) *slots {
	s := &slots{left: n}
	if perSecond > 0 {
		s.every = time.Second / time.Duration(perSecond)
	}
	return s
}

// free is how many slots can be taken now: none while the next turn in the
// schedule is still a second away.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.available()
}

func (s *slots) available() int {
	if s.every > 0 && time.Until(s.next) > time.Second {
		return 0
	}
	return s.left
}

// take takes up to n slots.
func (s *slots) take(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.available())
	s.left -= n
	return n
}

func (s *slots) give(n int) {
	s.mu.Lock()
	s.left += n
	s.mu.Unlock()
}

// pace waits for the next turn in the schedule: turns are at least 1/rate
// apart, so that no second ever holds more than the rate.
func (s *slots) pace(ctx context.Context) error {
	if s.every == 0 {
		return nil
	}
	s.mu.Lock()
	at := s.next
	if now := time.Now(); at.Before(now) {
		at = now
	}
	s.next = at.Add(s.every)
	s.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
