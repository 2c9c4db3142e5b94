package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestCreateOutcomes is 1-product B2 and B4: what one attempt's end means, by
// idempotency, window, credential and attempts.
func TestCreateOutcomes(t *testing.T) {
	plain, safe := upstream(), idempotent()
	closed := idempotent()
	closed.IdempotencyWindow = 0
	other := idempotent()
	other.Credential = [8]byte{2}
	once := idempotent()
	once.SubmitAttempts = 1
	onceOnly := upstream()
	onceOnly.SubmitAttempts = 1
	cases := []struct {
		name   string
		record Upstream
		how    CreateOutcome
		state  pawl.State
		next   Action
	}{
		{"accepted", plain, CreateAccepted, pawl.Running, ActRead},
		{"refused", plain, CreateRefused, pawl.Failed, NoAction},
		{"unauthorized", plain, CreateUnauthorized, pawl.Pending, ActSubmit},
		{"wait", plain, CreateWait, pawl.Pending, ActSubmit},
		{"not written", plain, CreateNotWritten, pawl.Pending, ActSubmit},
		{"not written, the last attempt", onceOnly, CreateNotWritten, pawl.Failed, NoAction},
		{"wait, the last attempt", onceOnly, CreateWait, pawl.Failed, NoAction},
		{"unknown, not idempotent", plain, CreateUnknown, pawl.Unconfirmed, ActAdvance},
		{"unknown, idempotent", safe, CreateUnknown, pawl.Pending, ActSubmit},
		{"unknown, window over", closed, CreateUnknown, pawl.Unconfirmed, ActAdvance},
		{"unknown, other credential", other, CreateUnknown, pawl.Unconfirmed, ActAdvance},
		{"unknown, the last attempt", once, CreateUnknown, pawl.Unconfirmed, ActAdvance},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := stage(t)
			leased := c.record
			if c.name == "unknown, other credential" {
				leased = safe
			}
			op := w.submit(leased, "a", 10)
			l := w.lease(leased, op.ID, ActSubmit)
			op = w.answer(c.record, l, c.how, "task-a")
			expectState(t, "state", op, c.state)
			if c.next == NoAction {
				expect(t, "due", op.DueAt, pawl.Never)
			} else {
				w.now = max(w.now, w.queues[GateID("s")].PausedUntil)
				w.lease(c.record, op.ID, c.next)
			}
			expect(t, "held", w.account().Reserved == 10, !op.State.Terminal())
			w.sound()
		})
	}
}

// TestUnauthorizedPauses: no attempt is spent, nothing of the queue is touched
// while it is paused, and the pause ends with the first success.
func TestUnauthorizedPauses(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.submit(up, "a", 0)
	var last time.Duration
	for range 3 {
		op = w.create(up, op.ID, CreateUnauthorized, "")
		q := w.queues[GateID("s")]
		pause := q.PausedUntil.Sub(w.now)
		if pause <= last {
			t.Errorf("pause %s after %s: want it to grow", pause, last)
		}
		last = pause
		expect(t, "while paused", w.do(LeaseWork{Queue: WorkQueueID(SubmitQueue, "s", tenant), Limit: 1, Up: up}).Reason, "paused")
		w.now = q.PausedUntil
	}
	expect(t, "attempts", op.Creates, 0)
	w.create(up, op.ID, CreateAccepted, "task-a")
	expect(t, "failures", w.queues[GateID("s")].Failures, 0)
	w.sound()
}

// TestLostSubmit: a claim whose holder died may have reached the provider. It
// is repeated where that is safe, and is never forgotten: not by handing back
// the lease that repeats it, not by a repeat that was not written.
func TestLostSubmit(t *testing.T) {
	t.Run("not idempotent", func(t *testing.T) {
		up := upstream()
		w := stage(t)
		op := w.submit(up, "a", 10)
		l := w.lease(up, op.ID, ActSubmit)
		w.do(LoseLease{Operation: op.ID, Fence: l.Fence})
		a := w.lease(up, op.ID, ActAdvance)
		w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
		expectState(t, "lost", w.ops[op.ID], pawl.Unconfirmed)
		expect(t, "held", w.account().Reserved, 10)
		w.sound()
	})
	for _, how := range []string{"released", "not written", "refused", "wait"} {
		t.Run("idempotent, the repeat is "+how, func(t *testing.T) {
			up := idempotent()
			w := stage(t)
			op := w.submit(up, "a", 10)
			w.lease(up, op.ID, ActSubmit)
			repeat := w.lease(up, op.ID, ActSubmit) // the first lease ran out
			switch how {
			case "released":
				w.do(ReleaseLease{Operation: op.ID, Fence: repeat.Fence})
			case "not written":
				w.answer(up, repeat, CreateNotWritten, "")
			case "refused":
				w.answer(up, repeat, CreateRefused, "")
			case "wait":
				w.answer(up, repeat, CreateWait, "")
			}
			w.tick(up.IdempotencyWindow)
			a := w.lease(up, op.ID, ActAdvance)
			w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
			expectState(t, "after the window", w.ops[op.ID], pawl.Unconfirmed)
			w.sound()
		})
	}
	// A callback that comes between the lease and its decision has planned what is
	// next; the decision must not put that off to the deadline, or for ever.
	for _, c := range []struct {
		name string
		told pawl.State
		more func(*Observation)
		act  Action
	}{
		{"running", pawl.Running, func(*Observation) {}, ActRead},
		{"succeeded, without the result", pawl.Succeeded, func(o *Observation) { o.Result = "" }, ActRead},
		{"succeeded, not settled", pawl.Succeeded, func(o *Observation) { o.HasCost, o.Cost, o.CostText, o.Settled = true, 4, "0.000000004", SettledNo }, ActRead},
	} {
		t.Run("overtaken: "+c.name, func(t *testing.T) {
			up := upstream()
			w := stage(t)
			op := w.submit(up, "a", 10)
			w.lease(up, op.ID, ActSubmit)
			a := w.lease(up, op.ID, ActAdvance) // the create's lease ran out
			told := obs("task-a", c.told)
			c.more(&told)
			expectVerdict(t, "the callback", w.event(up, op.ID, "e1", told).Verdict, pawl.Applied)
			planned := w.ops[op.ID].DueAt
			w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
			if due := w.ops[op.ID].DueAt; due > planned {
				t.Errorf("the next read was planned for %v and is put off to %v", planned, due)
			}
			w.lease(up, op.ID, c.act)
			w.sound()
		})
	}
	t.Run("an unsent lease is handed back", func(t *testing.T) {
		up := upstream()
		w := stage(t)
		op := w.submit(up, "a", 10)
		l := w.lease(up, op.ID, ActSubmit)
		w.do(ReleaseLease{Operation: op.ID, Fence: l.Fence})
		w.lease(up, op.ID, ActSubmit)
		w.sound()
	})
}

// TestLateAnswers is 7-rules §4: an old lease's failures are ignored, and what
// it learned is taken.
func TestLateAnswers(t *testing.T) {
	up := idempotent()
	for how := CreateAccepted; how <= CreateUnknown; how++ {
		w := stage(t)
		op := w.submit(up, "a", 10)
		old := w.lease(up, op.ID, ActSubmit)
		present := w.lease(up, op.ID, ActSubmit)
		before := w.ops[op.ID]
		after := w.answer(up, old, how, "task-a")
		if how == CreateAccepted {
			expectState(t, "learned", after, pawl.Running)
			expect(t, "the present lease's answer", w.answer(up, present, CreateUnknown, ""), after)
			second := w.answer(up, present, CreateAccepted, "task-b")
			expect(t, "the first stays", second.Task, "task-a")
			if w.open(op.ID, pawl.ReviewSecondTask).ID.IsZero() {
				t.Error("no review of the second task")
			}
		} else {
			expect(t, how.String(), after, before)
		}
		w.sound()
	}
}

// TestForeignTask: a provider that answers with another operation's task has
// told nothing of ours: a person decides, and no repeat goes out.
func TestForeignTask(t *testing.T) {
	for _, up := range []Upstream{upstream(), idempotent()} {
		w := stage(t)
		w.running(up, "a", 0)
		b := w.submit(up, "b", 0)
		op := w.create(up, b.ID, CreateAccepted, "task-a")
		expectState(t, "foreign", op, pawl.Unconfirmed)
		expect(t, "of a", w.tasks[TaskID{"s", "task-a"}].Operation != b.ID, true)
		w.sound()
	}
}

// TestOrphans: events of an unknown task wait, and are judged in the order
// received when the create answer or a token teaches the task.
func TestOrphans(t *testing.T) {
	up := upstream()
	running := func(p int32) Observation {
		o := obs("task-a", pawl.Running)
		o.Progress = p
		return o
	}
	t.Run("create answer", func(t *testing.T) {
		w := stage(t)
		op := w.submit(up, "a", 10)
		l := w.lease(up, op.ID, ActSubmit)
		// At one moment, in one batch: nothing but their order tells them apart.
		var batch []Command
		for i, o := range []Observation{running(1), running(2), obs("task-a", pawl.Succeeded), running(3), obs("task-a", pawl.Failed)} {
			batch = append(batch, ReceiveEvent{Up: up, Event: fmt.Sprint("e", i), Obs: o, Digest: digest(fmt.Sprint(i))})
		}
		for _, out := range w.batch(batch...) {
			expectVerdict(t, "parked", out.Value.(Received).Verdict, pawl.Orphan)
		}
		expect(t, "parked", w.sources["s"].Parked, 5)
		expectVerdict(t, "a repeat", w.event(up, pawl.ID{}, "e0", running(1)).Verdict, pawl.Duplicate)
		w.answer(up, l, CreateAccepted, "task-a")
		want := []pawl.Verdict{pawl.Applied, pawl.Applied, pawl.Applied, pawl.Stale, pawl.Conflict}
		for _, e := range pick(w.events, func(e Event) bool { return e.Direction == Inbound }) {
			expectVerdict(t, e.ExternalID, e.Verdict, want[e.ExternalID[1]-'0'])
		}
		expectState(t, "after", w.ops[op.ID], pawl.Succeeded)
		expect(t, "parked after", w.sources["s"].Parked, 0)
		w.sound()
	})
	t.Run("a repeat with a token", func(t *testing.T) {
		w := stage(t)
		op := w.submit(up, "a", 10)
		w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded))
		out := w.do(OrphanOverdue{Event: pick(w.events, func(e Event) bool { return e.Parked })[0].ID})
		expectVerdict(t, "repeat", w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Duplicate)
		expectState(t, "after", w.ops[op.ID], pawl.Succeeded)
		expect(t, "its review", w.reviews[out.Value.(pawl.ID)].Decision, DecidedBySystem)
		w.sound()
	})
	t.Run("an event without a state", func(t *testing.T) {
		w := stage(t)
		op := w.submit(up, "a", 10)
		w.event(up, pawl.ID{}, "e1", Observation{Task: "task-a", ProgressOnly: true, Progress: 10})
		expectState(t, "after", w.create(up, op.ID, CreateAccepted, "task-a"), pawl.Running)
		expect(t, "progress", w.ops[op.ID].Progress, 10)
		w.sound()
	})
	t.Run("discarded", func(t *testing.T) {
		w := stage(t)
		w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded))
		e := pick(w.events, func(e Event) bool { return e.Parked })[0]
		r := w.do(OrphanOverdue{Event: e.ID}).Value.(pawl.ID)
		w.resolve(up, w.reviews[r], pawl.DecideDiscard)
		expect(t, "parked", w.sources["s"].Parked, 0)
		expect(t, "twice", w.resolve(up, w.reviews[r], pawl.DecideDiscard).Err.Kind, pawl.Conflicting)
		w.sound()
	})
	t.Run("a repeat with a token after that", func(t *testing.T) {
		w := stage(t)
		op := w.submit(up, "a", 10)
		w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded))
		r := w.do(OrphanOverdue{Event: pick(w.events, func(e Event) bool { return e.Parked })[0].ID}).Value.(pawl.ID)
		w.resolve(up, w.reviews[r], pawl.DecideDiscard)
		expectVerdict(t, "repeat", w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Duplicate)
		expectState(t, "after", w.ops[op.ID], pawl.Running)
		// The timeline tells what taught the task: no create was ever claimed.
		w.sound()
	})
	t.Run("too many", func(t *testing.T) {
		few := up
		few.OrphanLimit = 1
		w := stage(t)
		w.event(few, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded))
		out := w.do(ReceiveEvent{Up: few, Event: "e2", Obs: obs("task-a", pawl.Succeeded)})
		expect(t, "kind", out.Err.Kind, pawl.Unavailable)
		expect(t, "remembered", len(w.keys), 1)
	})
	t.Run("rejected by policy", func(t *testing.T) {
		strict := up
		strict.ParkOrphans = false
		w := stage(t)
		expectVerdict(t, "unknown task", w.event(strict, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Rejected)
		expect(t, "keys", len(w.keys), 0)
		w.sound()
	})
}

// TestUnconfirmed is R8, and that it never expires by our clock.
func TestUnconfirmed(t *testing.T) {
	up := upstream()
	unconfirmed := func(t *testing.T) (*world, pawl.ID) {
		w := stage(t)
		op := w.submit(up, "a", 10)
		w.create(up, op.ID, CreateUnknown, "")
		a := w.lease(up, op.ID, ActAdvance)
		w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
		expectState(t, "past the deadline", w.ops[op.ID], pawl.Unconfirmed)
		expect(t, "nothing due", w.ops[op.ID].DueAt, pawl.Never)
		expect(t, "held", w.account().Reserved, 10)
		return w, op.ID
	}
	t.Run("created", func(t *testing.T) {
		w, id := unconfirmed(t)
		r := w.open(id, pawl.ReviewUnconfirmed)
		w.once(ResolveReview{Review: r.ID, Operation: id, Up: up, Decision: pawl.DecideCreated, Task: "task-a"})
		expectState(t, "created", w.ops[id], pawl.Running)
		expect(t, "decision", w.reviews[r.ID].Decision, pawl.DecideCreated)
		if op := w.read(up, id, ReadObserved, obs("task-a", pawl.Succeeded)); op.State != pawl.Succeeded {
			t.Errorf("read first, even past the deadline: %s", op.State)
		}
		w.sound()
	})
	t.Run("not created", func(t *testing.T) {
		w, id := unconfirmed(t)
		w.resolve(up, w.open(id, pawl.ReviewUnconfirmed), pawl.DecideNotCreated)
		expectState(t, "not created", w.ops[id], pawl.Pending)
		w.create(up, id, CreateAccepted, "task-a")
		if left := w.ops[id].Deadline.Sub(w.now); left < 50*time.Minute {
			t.Errorf("the new submit has %s until its deadline", left)
		}
		w.sound()
	})
	t.Run("failed", func(t *testing.T) {
		w, id := unconfirmed(t)
		w.resolve(up, w.open(id, pawl.ReviewUnconfirmed), pawl.DecideFailed)
		expectState(t, "failed", w.ops[id], pawl.Failed)
		expect(t, "released", w.account().Reserved, 0)
		expect(t, "charged", w.account().Charged, 0)
		w.sound()
	})
	t.Run("by a callback, and the provider has no reads", func(t *testing.T) {
		w, id := unconfirmed(t)
		blind := up
		blind.Reads = false
		w.event(blind, id, "e1", obs("task-a", pawl.Running))
		expectState(t, "callback", w.ops[id], pawl.Running)
		a := w.lease(blind, id, ActAdvance)
		w.do(Advance{Up: blind, Operation: id, Fence: a.Fence})
		if w.open(id, pawl.ReviewDeadlineUnread).ID.IsZero() {
			t.Error("money is held past the deadline and nobody is asked")
		}
		w.sound()
	})
	t.Run("decided although it moved on", func(t *testing.T) {
		w, id := unconfirmed(t)
		w.event(up, id, "e1", obs("task-a", pawl.Succeeded))
		expect(t, "answered", len(pick(w.reviews, func(r Review) bool { return r.ClosedAt == 0 })), 0)
		out := w.do(ResolveOperation{Operation: id, Up: up, Decision: pawl.DecideFailed})
		expect(t, "refused", out.Err.Kind, pawl.Conflicting)
		w.sound()
	})
	t.Run("unknown decision", func(t *testing.T) {
		w, id := unconfirmed(t)
		expect(t, "kind", w.resolve(up, w.open(id, pawl.ReviewUnconfirmed), "maybe").Err.Kind, pawl.Invalid)
		expect(t, "no task id", w.do(ResolveOperation{Operation: id, Up: up, Decision: pawl.DecideCreated}).Err.Kind, pawl.Invalid)
		w.sound()
	})
}

// TestPendingDeadline: what was never created may expire by our clock, and
// what ran out of attempts fails; both release.
func TestPendingDeadline(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.submit(up, "a", 10)
	w.now = op.Deadline
	a := w.lease(up, op.ID, ActAdvance)
	w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
	expectState(t, "deadline", w.ops[op.ID], pawl.Expired)
	b := w.submit(up, "b", 10)
	for range up.SubmitAttempts {
		l := w.lease(up, b.ID, ActSubmit)
		w.do(RecordCreate{Up: up, Operation: b.ID, Fence: l.Fence, Outcome: CreateNotWritten})
	}
	expectState(t, "attempts", w.ops[b.ID], pawl.Failed)
	expect(t, "at once", w.ops[b.ID].FinishedAt, w.now)
	expect(t, "code", w.ops[b.ID].ErrorCode, pawl.FailUnavailable)
	expect(t, "released", w.account().Reserved, 0)
	w.sound()
}
