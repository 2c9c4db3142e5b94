package postgres

import (
	"sync"
	"time"

	"github.com/pawlhq/pawl"
)

// A step of the database's clock is believed at once if it is small, and after
// it has lasted for a while if it is not: a clock that is hours wrong for a
// minute must not plan retries for hours from now (O-129).
const (
	smallStep = time.Second
	lasting   = 2 * time.Minute
)

// clock is the time of this ledger: the database's clock without its short
// steps, which all nodes share. Between steps it goes by this machine's
// monotonic clock.
type clock struct {
	elapsed func() time.Duration
	// machine is this machine's clock.
	machine func() time.Time

	mu     sync.Mutex
	known  bool
	origin pawl.Time
	// stepped says that the two have disagreed since the moment since.
	stepped bool
	since   time.Duration
	// ahead is how far the database's clock is ahead of the machine's.
	ahead time.Duration
}

func newClock() *clock {
	started := time.Now()
	return &clock{elapsed: func() time.Duration { return time.Since(started) }, machine: time.Now}
}

// theirs is a moment of this machine's clock by that of the database, which
// decides what is due (O-128). A difference that a network may make is none.
func (c *clock) theirs(at pawl.Time) pawl.Time {
	return at.Add(c.apart())
}

// ours is a moment of the database's clock by that of this machine.
func (c *clock) ours(at pawl.Time) pawl.Time { return at.Add(-c.apart()) }

// apart is how far the database's clock is ahead.
func (c *clock) apart() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead.Abs() <= smallStep {
		return 0
	}
	return c.ahead
}

// now is the time at which the database's clock was read just now as wall.
// Small steps are followed: nodes that share a database see the same time, and
// the answer took a while to come.
func (c *clock) now(wall pawl.Time) pawl.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.elapsed()
	c.ahead = wall.Sub(pawl.TimeOf(c.machine()))
	if !c.known {
		c.known, c.origin = true, wall.Add(-elapsed)
	}
	steady := c.origin.Add(elapsed)
	switch off := wall.Sub(steady); {
	case off.Abs() <= smallStep:
		c.stepped, c.origin = false, wall.Add(-elapsed)
		return wall
	case !c.stepped:
		c.stepped, c.since = true, elapsed
		return steady
	case elapsed-c.since < lasting:
		return steady
	}
	c.stepped, c.origin = false, wall.Add(-elapsed)
	return wall
}
