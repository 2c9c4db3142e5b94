package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// The window of a spending limit is the day in UTC, which always has 24 hours:
// on the days on which Berlin's clocks change there is one reset each, and no
// moment is in two windows or in none (O-131).
func TestO131OneResetADay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range []time.Time{time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), time.Date(2026, 10, 25, 0, 0, 0, 0, berlin)} {
		resets := 0
		last := DayOf(pawl.TimeOf(day))
		end := time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, berlin)
		for at := day; at.Before(end); at = at.Add(time.Minute) {
			now := DayOf(pawl.TimeOf(at))
			switch {
			case now == last:
			case now == last+1 && at.UTC().Hour() == 0 && at.UTC().Minute() == 0:
				resets++
			default:
				t.Errorf("at %s the day goes from %d to %d", at, last, now)
			}
			last = now
		}
		if resets != 1 {
			t.Errorf("%d resets on %s", resets, day.Format(time.DateOnly))
		}
	}
}

// The same event id for another task is another event (1-product, "Words"),
// with a token and without one.
func TestSameEventIDOfTwoTasks(t *testing.T) {
	up := upstream()
	w := stage(t)
	a, b := w.running(up, "a", 10), w.running(up, "b", 10)
	expectVerdict(t, "first", w.event(up, a.ID, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Applied)
	expectVerdict(t, "the other task's", w.event(up, b.ID, "e1", obs("task-b", pawl.Succeeded)).Verdict, pawl.Applied)
	expectVerdict(t, "a repeat", w.event(up, a.ID, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Duplicate)
	w.sound()
}
