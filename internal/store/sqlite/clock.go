package sqlite

import (
	"sync"
	"time"

	"github.com/pawlhq/pawl"
)

// A step of the machine's clock is believed at once if it is small, and after
// it has lasted for a while if it is not: a clock that is hours wrong for a
// minute must not plan retries for hours from now (O-129).
const (
	smallStep = time.Second
	lasting   = 2 * time.Minute
)

// clock is the time of this ledger: the machine's clock without its short
// steps. Between steps it goes by the monotonic clock. A suspended machine looks
// like a step, and is followed like one.
type clock struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu     sync.Mutex
	origin time.Time
	// stepped says that the two have disagreed since the moment since.
	stepped bool
	since   time.Duration
}

func newClock() *clock {
	started := time.Now()
	return &clock{
		wall:    func() time.Time { return time.Now().Round(0) }, // without the monotonic reading
		elapsed: func() time.Duration { return time.Since(started) },
		origin:  started.Round(0),
	}
}

func (c *clock) now() pawl.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.elapsed()
	steady := c.origin.Add(elapsed)
	off := c.wall().Sub(steady)
	switch {
	case off.Abs() <= smallStep:
		c.stepped = false
	case !c.stepped:
		c.stepped, c.since = true, elapsed
		return pawl.TimeOf(steady)
	case elapsed-c.since < lasting:
		return pawl.TimeOf(steady)
	}
	c.stepped = false
	c.origin = c.origin.Add(off)
	return pawl.TimeOf(steady.Add(off))
}
