package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestReadSchedule is R23: first after about 2 s, ×1.5 each time up to 15 s,
// ±10 %, never past the deadline.
func TestReadSchedule(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	want := 2 * time.Second
	from := w.now
	for range 12 {
		got := w.ops[op.ID].DueAt.Sub(from)
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("read after %s, want %s ±10 %%", got, want)
		}
		w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Running))
		from = w.now
		want = min(want*3/2, 15*time.Second)
	}
	w.sound()
}

// TestCallbackDelaysRead: a verified callback that changes something moves the
// next read at least one interval away, and never brings it nearer.
func TestCallbackDelaysRead(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	w.now = w.ops[op.ID].DueAt
	o := obs("task-a", pawl.Running)
	o.Progress = 10
	w.event(up, op.ID, "e1", o)
	if away := w.ops[op.ID].DueAt.Sub(w.now); away < 2*time.Second {
		t.Errorf("the next read is %s away", away)
	}
	w.sound()
}

// TestDeadline is D4, R24 and R26: read first; unfinished expires, anything
// that could not be read is a person's to decide, with state and money held.
func TestDeadline(t *testing.T) {
	up := upstream()
	late := func(t *testing.T) (*world, pawl.ID) {
		w := stage(t)
		op := w.running(up, "a", 10)
		w.now = op.Deadline.Add(24 * time.Hour) // as after a day of downtime
		return w, op.ID
	}
	t.Run("finished", func(t *testing.T) {
		w, id := late(t)
		expectState(t, "read", w.read(up, id, ReadObserved, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
		expect(t, "charged", w.account().Charged, 10)
		w.sound()
	})
	t.Run("unfinished", func(t *testing.T) {
		w, id := late(t)
		expectState(t, "read", w.read(up, id, ReadObserved, obs("task-a", pawl.Running)), pawl.Expired)
		expect(t, "released", w.account().Reserved, 0)
		w.sound()
	})
	t.Run("finished with a version that is not above the held one", func(t *testing.T) {
		w, id := late(t)
		o := obs("task-a", pawl.Running)
		o.Version, o.HasVersion = 7, true
		w.event(up, id, "e1", o)
		o = obs("task-a", pawl.Succeeded)
		o.Version, o.HasVersion = 7, true
		expectState(t, "not expired", w.read(up, id, ReadObserved, o), pawl.Running)
		w.sound()
	})
	for _, how := range []ReadOutcome{ReadNotFound, ReadOtherTask, ReadUnknownState, ReadUnreachable, ReadUnauthorized} {
		t.Run(how.String(), func(t *testing.T) {
			w, id := late(t)
			began := w.now
			for range 3 {
				if q := w.queues[WorkQueueID(ReadQueue, "s", tenant)]; q.PausedUntil > w.now {
					w.now = q.PausedUntil
				}
				expectState(t, "held", w.read(up, id, how, Observation{Word: "odd", Task: "task-b"}), pawl.Running)
			}
			if how != ReadUnauthorized && w.now.Sub(began) > 60*time.Second {
				t.Errorf("three reads took %s", w.now.Sub(began))
			}
			r := w.open(id, pawl.ReviewDeadlineUnread)
			expect(t, "asked", r.ID.IsZero(), false)
			if wait := w.ops[id].DueAt.Sub(w.now); wait < 54*time.Minute || wait > 66*time.Minute {
				t.Errorf("read again after %s, want about an hour", wait)
			}
			expect(t, "held", w.account().Reserved, 10)
			w.sound()
			w.resolve(up, r, pawl.DecideRead)
			w.now = max(w.now, w.queues[WorkQueueID(ReadQueue, "s", tenant)].PausedUntil)
			expectState(t, "read again", w.read(up, id, ReadObserved, obs("task-a", pawl.Running)), pawl.Expired)
			w.sound()
		})
	}
	t.Run("it is read on, and answers at last", func(t *testing.T) {
		w, id := late(t)
		for range 3 {
			w.read(up, id, ReadUnreachable, Observation{})
		}
		r := w.open(id, pawl.ReviewDeadlineUnread)
		for i, hours := range []float64{1, 2, 4, 8, 16, 24, 24} {
			if wait := w.ops[id].DueAt.Sub(w.now).Hours(); wait < 0.9*hours || wait > 1.1*hours {
				t.Errorf("wait %d is %.2f h, want %.0f h", i+1, wait, hours)
			}
			expectState(t, "held", w.read(up, id, ReadUnreachable, Observation{}), pawl.Running)
		}
		expect(t, "one review", w.open(id, pawl.ReviewDeadlineUnread).ID, r.ID)
		expectState(t, "found out", w.read(up, id, ReadObserved, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
		expect(t, "answered", w.reviews[r.ID].Decision, DecidedBySystem)
		w.sound()
	})
	t.Run("it is read on for a bounded time", func(t *testing.T) {
		w, id := late(t)
		began, reads := w.now, 0
		for ; w.ops[id].DueAt != pawl.Never && reads < 100; reads++ {
			w.read(up, id, ReadUnreachable, Observation{})
		}
		days := w.now.Sub(began).Hours() / 24
		if reads != 3+30 || days < 20 || days > 35 {
			t.Errorf("%d reads over %.1f days", reads, days)
		}
		expect(t, "asked", w.open(id, pawl.ReviewDeadlineUnread).ID.IsZero(), false)
		w.do(ReadNow{Operation: id, Up: up})
		expect(t, "asked for by hand", w.ops[id].DueAt, w.now)
		w.sound()
	})
	t.Run("a person lets it expire", func(t *testing.T) {
		w, id := late(t)
		for range 3 {
			w.read(up, id, ReadUnreachable, Observation{})
		}
		r := w.open(id, pawl.ReviewDeadlineUnread)
		w.resolve(up, r, pawl.DecideExpired)
		expectState(t, "decided", w.ops[id], pawl.Expired)
		expect(t, "released", w.account().Reserved, 0)
		expect(t, "decision", w.reviews[r.ID].Decision, pawl.DecideExpired)
		w.sound()
	})
	t.Run("it ended while a person was asked", func(t *testing.T) {
		w, id := late(t)
		for range 3 {
			w.read(up, id, ReadUnreachable, Observation{})
		}
		r := w.open(id, pawl.ReviewDeadlineUnread)
		w.event(up, id, "e1", obs("task-a", pawl.Succeeded))
		expect(t, "answered", w.reviews[r.ID].Decision, DecidedBySystem)
		expect(t, "too late", w.resolve(up, r, pawl.DecideExpired).Err.Kind, pawl.Conflicting)
		expectState(t, "stays", w.ops[id], pawl.Succeeded)
		w.sound()
	})
	t.Run("an older review is answered as well", func(t *testing.T) {
		w, id := late(t)
		for range 3 {
			w.read(up, id, ReadUnreachable, Observation{})
		}
		r := w.open(id, pawl.ReviewDeadlineUnread)
		w.answer(up, Lease{Operation: w.ops[id]}, CreateAccepted, "task-z") // a later one
		second := w.open(id, pawl.ReviewSecondTask)
		expect(t, "shown", w.ops[id].Review, second.ID)
		w.event(up, id, "e1", obs("task-a", pawl.Succeeded))
		expect(t, "answered", w.reviews[r.ID].Decision, DecidedBySystem)
		expect(t, "still open", w.ops[id].Reviews, 1<<pawl.ReviewSecondTask)
		w.resolve(up, second, pawl.DecideKeep)
		expect(t, "nothing left", w.ops[id].Review, pawl.ID{})
		w.sound()
	})
}

// TestTaskUnknown is R24: three 404 in a row over at least 60 s.
func TestTaskUnknown(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	began := pawl.Time(0)
	for range 20 {
		w.read(up, op.ID, ReadNotFound, Observation{})
		if began == 0 {
			began = w.now
		}
		asked := !w.open(op.ID, pawl.ReviewTaskUnknown).ID.IsZero()
		expect(t, "asked", asked, w.ops[op.ID].NotFound >= 3 && w.now.Sub(began) >= 60*time.Second)
	}
	expect(t, "held", w.account().Reserved, 10)
	w.sound()
	w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Running))
	expect(t, "a good read resets", w.ops[op.ID].NotFound, 0)
	expect(t, "and answers", w.open(op.ID, pawl.ReviewTaskUnknown).ID.IsZero(), true)
	w.read(up, op.ID, ReadNotFound, Observation{})
	expect(t, "counted anew", w.open(op.ID, pawl.ReviewTaskUnknown).ID.IsZero(), true)
	w.sound()
}

// TestUnknownWordInARead is R15: recorded, kept open, one review.
func TestUnknownWordInARead(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	for range 3 {
		expectState(t, "open", w.read(up, op.ID, ReadUnknownState, Observation{Word: "odd"}), pawl.Running)
	}
	expect(t, "word", w.ops[op.ID].UpstreamState, "odd")
	w.resolve(up, w.open(op.ID, pawl.ReviewUnknownState), pawl.DecideKeep)
	w.read(up, op.ID, ReadUnknownState, Observation{Word: "odd"})
	expect(t, "reviews", len(w.reviews), 1)
	w.sound()
}

// TestLateReads: a status is learned under any lease, a failure is not (§4).
func TestLateReads(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	old := w.lease(up, op.ID, ActRead)
	present := w.lease(up, op.ID, ActRead)
	before := w.ops[op.ID]
	for how := ReadNotFound; how <= ReadUnauthorized; how++ {
		w.do(ObserveStatus{Up: up, Operation: op.ID, Fence: old.Fence, Outcome: how, Obs: Observation{Word: "odd"}})
		expect(t, how.String(), w.ops[op.ID], before)
	}
	w.do(ObserveStatus{Up: up, Operation: op.ID, Fence: old.Fence, Outcome: ReadObserved, Obs: obs("task-b", pawl.Succeeded)})
	expect(t, "another task", w.ops[op.ID], before)
	w.do(ObserveStatus{Up: up, Operation: op.ID, Fence: old.Fence, Outcome: ReadObserved, Obs: obs("task-a", pawl.Succeeded)})
	expectState(t, "learned", w.ops[op.ID], pawl.Succeeded)
	before = w.ops[op.ID]
	w.do(ObserveStatus{Up: up, Operation: op.ID, Fence: present.Fence, Outcome: ReadObserved, Obs: obs("task-a", pawl.Succeeded)})
	expect(t, "the present lease", w.ops[op.ID], before)
	w.sound()
}

// TestReadNow: only what has a task can be read; a finished one is not.
func TestReadNow(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.submit(up, "a", 0)
	expect(t, "no task", w.do(ReadNow{Operation: op.ID, Up: up}).Err.Kind, pawl.Conflicting)
	w.create(up, op.ID, CreateAccepted, "task-a")
	expect(t, "another tenant", w.do(ReadNow{Operation: op.ID, Tenant: "other", Up: up}).Err.Kind, pawl.NotFound)
	w.do(ReadNow{Operation: op.ID, Tenant: tenant, Up: up})
	expect(t, "due", w.ops[op.ID].DueAt, w.now)
	w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded))
	expect(t, "finished", w.do(ReadNow{Operation: op.ID, Up: up}).Reason, "finished")
	expect(t, "nothing due", w.ops[op.ID].DueAt, pawl.Never)
	w.sound()
}
