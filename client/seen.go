package client

import (
	"slices"
	"sync"
)

// Seen is which sequences of an endpoint's stream a receiver is done with. The
// zero value has seen none; see also [NewSeen]. It is safe for concurrent use, and
// small however long the stream: it keeps the spans between gaps.
type Seen struct {
	mu sync.Mutex
	// spans are disjoint, not adjacent, and in order.
	spans []span
}

type span struct{ from, to int64 }

// NewSeen has seen everything up to a sequence: what [Seen.Until] was when the
// receiver last wrote it down.
func NewSeen(until int64) *Seen {
	s := new(Seen)
	if until > 0 {
		s.spans = []span{{1, until}}
	}
	return s
}

// Add notes that an event was seen, and reports whether it was new. Sequences
// begin at 1; others are not noted.
func (s *Seen) Add(sequence int64) bool {
	if sequence < 1 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, has := s.find(sequence)
	if has {
		return false
	}
	left := i > 0 && s.spans[i-1].to == sequence-1
	right := i < len(s.spans) && s.spans[i].from == sequence+1
	switch {
	case left && right:
		s.spans[i-1].to = s.spans[i].to
		s.spans = slices.Delete(s.spans, i, i+1)
	case left:
		s.spans[i-1].to = sequence
	case right:
		s.spans[i].from = sequence
	default:
		s.spans = slices.Insert(s.spans, i, span{sequence, sequence})
	}
	return true
}

// Has reports whether an event was seen.
func (s *Seen) Has(sequence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.find(sequence)
	return has
}

// find is the first span that ends at a sequence or later, and whether it holds
// it.
func (s *Seen) find(sequence int64) (at int, has bool) {
	at, _ = slices.BinarySearchFunc(s.spans, sequence, func(p span, n int64) int {
		if p.to < n {
			return -1
		}
		return 1
	})
	return at, at < len(s.spans) && s.spans[at].from <= sequence
}

// Until is the last sequence up to which nothing is missing.
func (s *Seen) Until() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spans) == 0 || s.spans[0].from > 1 {
		return 0
	}
	return s.spans[0].to
}

// Gaps are the sequences below the highest one that were not seen.
func (s *Seen) Gaps() []Gap {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []Gap
	last := int64(0)
	for _, p := range s.spans {
		if p.from > last+1 {
			gaps = append(gaps, Gap{last + 1, p.from - 1})
		}
		last = p.to
	}
	return gaps
}
