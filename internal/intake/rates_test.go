package intake

import (
	"testing"
	"time"
)

// A source may send a second's worth at once and its rate after that; another
// source is not held up by it.
func TestRates(t *testing.T) {
	r := newRates()
	start := time.Unix(1000, 0)
	for i, step := range []struct {
		source string
		rate   float64
		after  time.Duration
		wait   time.Duration
		ok     bool
	}{
		{"a", 2, 0, 0, true}, {"a", 2, 0, 0, true}, {"a", 2, 0, 500 * time.Millisecond, false},
		{"b", 2, 0, 0, true}, {"free", 0, 0, 0, true}, {"free", 0, 0, 0, true},
		{"a", 2, 400 * time.Millisecond, 100 * time.Millisecond, false}, {"a", 2, 500 * time.Millisecond, 0, true},
		{"a", 2, 500 * time.Millisecond, 500 * time.Millisecond, false},
		{"a", 2, time.Hour, 0, true}, {"a", 2, time.Hour, 0, true}, {"a", 2, time.Hour, 500 * time.Millisecond, false},
		{"slow", 0.1, time.Hour, 0, true}, {"slow", 0.1, time.Hour, 10 * time.Second, false},
		{"slow", 0.1, time.Hour - time.Minute, 10 * time.Second, false}, // a clock that stepped back gives nothing
	} {
		wait, ok := r.take(step.source, step.rate, start.Add(step.after))
		if ok != step.ok || (wait-step.wait).Abs() > time.Millisecond {
			t.Errorf("step %d: wait %s, %v; want %s, %v", i, wait, ok, step.wait, step.ok)
		}
	}
	for wait, want := range map[time.Duration]string{0: "1", 100 * time.Millisecond: "1", 1001 * time.Millisecond: "2", 10 * time.Second: "10"} {
		if got := seconds(wait); got != want {
			t.Errorf("%s is written %s, want %s", wait, got, want)
		}
	}
}
