package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

func (w *world) lines(id pawl.ID, kind string) (lines []History) {
	for _, h := range w.history {
		if h.Operation == id && h.Kind == kind {
			lines = append(lines, h)
		}
	}
	slices.SortFunc(lines, func(a, b History) int { return int(a.At - b.At) })
	return lines
}

// TestReadLines: reads that come to the same leave one line with a count and the
// time of the last, and what differs begins another.
func TestReadLines(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	var first, last pawl.Time
	for i := range 50 {
		w.read(up, op.ID, ReadUnknownState, Observation{Task: "task-a", Word: "odd"})
		if i == 0 {
			first = w.now
		}
		last = w.now
	}
	lines := w.lines(op.ID, "read")
	// The first one opened the review, and with it raised the version.
	expect(t, "lines", len(lines), 1)
	expect(t, "at", lines[0].At, first)
	expect(t, "repeats", lines[0].Repeats, 49)
	expect(t, "last", lines[0].LastAt, last)
	expect(t, "reads", w.ops[op.ID].Reads, 50)
	w.tick(time.Second)
	w.read(up, op.ID, ReadUnknownState, Observation{Task: "task-a", Word: "other"})
	for range 3 {
		w.read(up, op.ID, ReadOtherTask, Observation{Task: "task-b"})
	}
	expect(t, "lines after others", len(w.lines(op.ID, "read")), 3)
	expect(t, "repeats of the last", w.lines(op.ID, "read")[2].Repeats, 2)
	expect(t, "of the first still", w.lines(op.ID, "read")[0].Repeats, 49)
	w.tick(time.Millisecond)
	w.do(ReadNow{Operation: op.ID, Up: up})
	w.read(up, op.ID, ReadOtherTask, Observation{Task: "task-b"})
	expect(t, "a read that was asked for has its own line", len(w.lines(op.ID, "read")), 4)
	w.sound()
}

// TestReadDecidedOnUnknownState: while the fault lasts, the review opens anew
// after each decision to read again, and once only.
func TestReadDecidedOnUnknownState(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	odd := Observation{Task: "task-a", Word: "odd"}
	for range 3 {
		for range 3 {
			w.read(up, op.ID, ReadUnknownState, odd)
		}
		r := w.open(op.ID, pawl.ReviewUnknownState)
		expect(t, "asked", r.ID.IsZero(), false)
		w.resolve(up, r, pawl.DecideRead)
		expect(t, "closed", w.ops[op.ID].Reviews, 0)
	}
	w.read(up, op.ID, ReadUnknownState, odd)
	w.resolve(up, w.open(op.ID, pawl.ReviewUnknownState), pawl.DecideKeep)
	w.read(up, op.ID, ReadUnknownState, odd)
	expect(t, "kept", w.ops[op.ID].Reviews, 0)
	w.sound()
}

// TestBodyDiffersLine: a repeat with another body is on the timeline, once.
func TestBodyDiffersLine(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	w.event(up, op.ID, "e1", obs("task-a", pawl.Running))
	differs := func() (n int) {
		for _, h := range w.lines(op.ID, CallbackLine) {
			if h.Reason == "body_differs" {
				n++
			}
		}
		return n
	}
	w.event(up, op.ID, "e1", obs("task-a", pawl.Running))
	expect(t, "an equal repeat", differs(), 0)
	for range 3 {
		w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded))
	}
	expect(t, "differing ones", differs(), 1)
	w.sound()
}
