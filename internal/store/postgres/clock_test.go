package postgres

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// The clock of the database is eight hours ahead for a minute, then an hour behind for
// another; what is planned meanwhile is planned by the time that passes. A step
// that lasts is followed.
func TestClockSteps(t *testing.T) {
	begin := time.Date(2026, 10, 14, 12, 0, 0, 0, time.UTC)
	var passed, off time.Duration
	c := &clock{elapsed: func() time.Duration { return passed }, machine: time.Now}
	for _, step := range []struct {
		name      string
		wait, off time.Duration
		// ahead is how far the ledger's time is ahead of the time that has passed.
		ahead time.Duration
	}{
		{"right", time.Minute, 0, 0},
		{"eight hours ahead", 0, 8 * time.Hour, 0},
		{"still, after a minute", time.Minute, 8 * time.Hour, 0},
		{"right again", 0, 0, 0},
		{"an hour behind", time.Second, -time.Hour, 0},
		{"still, after a minute", time.Minute, -time.Hour, 0},
		{"right again", time.Second, 0, 0},
		{"corrected a little", time.Second, 300 * time.Millisecond, 300 * time.Millisecond},
		{"an hour ahead", time.Second, time.Hour, 300 * time.Millisecond},
		{"just before it counts as lasting", lasting - time.Second, time.Hour, 300 * time.Millisecond},
		{"it lasts", time.Second, time.Hour, time.Hour},
		{"and goes on", time.Minute, time.Hour, time.Hour},
		{"back for good", time.Second, 0, time.Hour},
		{"it lasts", lasting, 0, 0},
	} {
		passed, off = passed+step.wait, step.off
		if got, want := c.now(pawl.TimeOf(begin.Add(passed+off))), pawl.TimeOf(begin.Add(passed+step.ahead)); got != want {
			t.Errorf("%s: the time is %s off", step.name, got.Sub(want))
		}
	}
}
