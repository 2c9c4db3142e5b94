package work

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// turns lets tenants, in the order of their readiness and each with so many
// operations waiting, take turns with so many slots at a time, and tells who
// got slots in each.
func turns(s *slots, free, n int, tenants []string, waiting map[string]int) [][]string {
	var out [][]string
	for range n {
		var ready []ledger.Queue
		window := s.window(free)
		for _, name := range tenants {
			if waiting[name] > 0 && len(ready) < window {
				ready = append(ready, ledger.Queue{ID: ledger.WorkQueueID(ledger.SubmitQueue, "up", name)})
			}
		}
		var names []string
		picked := s.fair(ready, len(ready) < window, free)
		for _, q := range picked {
			names = append(names, q.ID.Tenant)
			waiting[q.ID.Tenant] -= max(1, free/len(picked))
		}
		out = append(out, names)
	}
	return out
}

// Each tenant has a turn before one has two, however much it has waiting and
// however long (1-product B5).
func TestFairTurns(t *testing.T) {
	many := map[string]int{"a": 10_000, "b": 10_000, "c": 10_000, "d": 1}
	got := turns(new(slots), 1, 9, []string{"a", "b", "c", "d"}, many)
	want := [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"a"}, {"b"}, {"c"}, {"a"}, {"b"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("turns %v, want %v", got, want)
	}
}

func TestFairTurnsWithSeveralSlots(t *testing.T) {
	many := map[string]int{"a": 10_000, "b": 10_000, "c": 10_000}
	seen := map[string]int{}
	for _, turn := range turns(new(slots), 2, 300, []string{"a", "b", "c"}, many) {
		if len(turn) != 2 {
			t.Fatalf("a turn of %v with two slots", turn)
		}
		for _, name := range turn {
			seen[name]++
		}
	}
	for name, n := range seen {
		if n != 200 {
			t.Errorf("%s had %d of 600 turns, want 200", name, n)
		}
	}
}

// A tenant that comes late, when another has long been alone, does not wait.
func TestFairToTheLatecomer(t *testing.T) {
	s, waiting := new(slots), map[string]int{"a": 10_000}
	turns(s, 1, 50, []string{"a", "b"}, waiting)
	waiting["b"] = 1
	if got := turns(s, 1, 2, []string{"a", "b"}, waiting); !slices.Contains(slices.Concat(got...), "b") {
		t.Errorf("turns %v", got)
	}
}

// What is remembered of a round is bounded.
func TestRoundIsBounded(t *testing.T) {
	s, waiting := new(slots), map[string]int{}
	var names []string
	for i := range 3 * maxServed {
		names = append(names, fmt.Sprint("t", i))
		waiting[names[i]] = 1
	}
	turns(s, 1, 3*maxServed, names, waiting)
	if n := len(s.served); n > maxServed {
		t.Errorf("%d tenants are remembered", n)
	}
	for name, n := range waiting {
		if n != 0 {
			t.Fatalf("%s was never served", name)
		}
	}
}

// With a rate, no more slots are taken than have their turn within a second,
// and turns are never closer than the rate allows.
func TestSpacedSlots(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := (*slots)(nil).resized(100, 200*time.Millisecond, nil)
	if n := s.take(100, now); n != 6 { // at 0, 200, …, 1000 ms
		t.Fatalf("%d slots for a second at 5 a second, want 6", n)
	}
	if n := s.take(100, now); n != 0 {
		t.Fatalf("%d more", n)
	}
	s.unused(2)
	for i := range 4 {
		if at := s.turn(now, true); at != now.Add(time.Duration(i)*200*time.Millisecond) {
			t.Errorf("turn %d is %s later", i, at.Sub(now))
		}
	}
	if n := s.take(100, now); n != 2 {
		t.Errorf("%d slots are left for this second, want 2", n)
	}
	if at := s.turn(now, false); at != now {
		t.Errorf("what makes no call waits %s", at.Sub(now))
	}
	s.unused(1)
	if n := s.take(100, now.Add(-time.Minute)); n != 0 {
		t.Errorf("%d slots with the next turn a minute away", n)
	}
}
