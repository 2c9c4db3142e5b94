package listing

import (
	"context"
	"sync"
	"time"
)

// Pace spaces the pages of lists out, one a source at a time. The zero value is
// ready; it is safe for concurrent use.
type Pace struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// Turn waits for the turn of a source's next page, at least every after the one
// before. The error is that of the context.
func (p *Pace) Turn(ctx context.Context, source string, every time.Duration) error {
	now := time.Now()
	p.mu.Lock()
	for name, at := range p.next {
		if at.Before(now) {
			delete(p.next, name) // What is over says nothing.
		}
	}
	if p.next == nil {
		p.next = make(map[string]time.Time)
	}
	at := now
	if next, ok := p.next[source]; ok {
		at = next
	}
	p.next[source] = at.Add(every)
	p.mu.Unlock()
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
