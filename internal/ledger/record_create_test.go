package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestLastCreate: an operation that ran out of attempts tells what its last
// create was answered (1-product D5, B4), at once and not a wait later.
func TestLastCreate(t *testing.T) {
	cases := []struct {
		name string
		last RecordCreate
		code pawl.FailureCode
		word string
		text string
	}{
		{"429", RecordCreate{Outcome: CreateWait, ErrorCode: pawl.FailRateLimited, ErrorWord: "slow_down", ErrorMessage: "10 a minute", Status: 429}, pawl.FailRateLimited, "slow_down", "10 a minute"},
		{"429 without a text", RecordCreate{Outcome: CreateWait, ErrorCode: pawl.FailRateLimited, Status: 429}, pawl.FailRateLimited, "", "the upstream asked to wait each time"},
		{"402", RecordCreate{Outcome: CreateWait, ErrorCode: pawl.FailUnavailable, ErrorWord: "no_funds", Status: 402}, pawl.FailUnavailable, "no_funds", "the upstream asked to wait each time"},
		{"nothing written", RecordCreate{Outcome: CreateNotWritten}, pawl.FailUnavailable, "", "the upstream could not be reached"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			up := upstream()
			w := stage(t)
			op := w.submit(up, "a", 10)
			for n := range up.SubmitAttempts {
				expectState(t, "before", w.ops[op.ID], pawl.Pending)
				l := w.lease(up, op.ID, ActSubmit)
				answer := RecordCreate{Outcome: CreateNotWritten}
				if n == up.SubmitAttempts-1 {
					answer = c.last
				}
				answer.Up, answer.Operation, answer.Fence = up, op.ID, l.Fence
				w.do(answer)
			}
			end := w.ops[op.ID]
			expectState(t, "after", end, pawl.Failed)
			expect(t, "at once", end.FinishedAt, w.now)
			expect(t, "code", end.ErrorCode, c.code)
			expect(t, "word", end.ErrorWord, c.word)
			expect(t, "message", end.ErrorMessage, c.text)
			expect(t, "released", w.account().Reserved, 0)
			w.sound()
		})
	}
}

// TestLastCreateMayExist: where an earlier create may have reached the provider,
// the last one ends nothing.
func TestLastCreateMayExist(t *testing.T) {
	up := idempotent()
	up.SubmitAttempts = 2
	w := stage(t)
	op := w.submit(up, "a", 10)
	w.create(up, op.ID, CreateUnknown, "")
	expectState(t, "after", w.create(up, op.ID, CreateWait, ""), pawl.Unconfirmed)
	expect(t, "held", w.account().Reserved, 10)
	w.sound()
}

// TestFirstObservation: what the answer to a create says of the task is an
// observation as every other is (1-product D1).
func TestFirstObservation(t *testing.T) {
	first := func(word string, s pawl.State) Observation {
		o := obs("task-a", s)
		o.Word = word
		return o
	}
	answer := func(w *world, up Upstream, l Lease, o Observation) Operation {
		c := RecordCreate{Up: up, Operation: l.Operation.ID, Fence: l.Fence, Outcome: CreateAccepted, Task: "task-a", First: o, HasFirst: true}
		w.do(c)
		return w.ops[l.Operation.ID]
	}
	t.Run("waiting", func(t *testing.T) {
		up, w := upstream(), stage(t)
		op := answer(w, up, w.lease(up, w.submit(up, "a", 10).ID, ActSubmit), first("queued", pawl.Running))
		expectState(t, "state", op, pawl.Running)
		expect(t, "word", op.UpstreamState, "queued")
		if wait := op.DueAt.Sub(w.now); wait > 11*up.ReadFirst/10 {
			t.Errorf("the first read is %s away, want about %s from the acceptance", wait, up.ReadFirst)
		}
		w.lease(up, op.ID, ActRead)
		w.sound()
	})
	t.Run("an end", func(t *testing.T) {
		up, w := upstream(), stage(t)
		o := first("done", pawl.Succeeded)
		o.HasCost, o.Cost, o.CostText = true, 4, "4"
		op := answer(w, up, w.lease(up, w.submit(up, "a", 10).ID, ActSubmit), o)
		expectState(t, "state", op, pawl.Succeeded)
		expect(t, "charged", w.account().Charged, 4)
		expect(t, "due", op.DueAt, pawl.Never)
		expect(t, "result", op.Result.IsZero(), false)
		w.sound()
	})
	t.Run("a success without its result", func(t *testing.T) {
		up, w := upstream(), stage(t)
		o := first("done", pawl.Succeeded)
		o.Result = ""
		op := answer(w, up, w.lease(up, w.submit(up, "a", 10).ID, ActSubmit), o)
		expectState(t, "state", op, pawl.Running)
		expect(t, "word", op.UpstreamState, "done")
		expect(t, "the read is due", op.DueAt, w.now)
		o = first("done", pawl.Succeeded)
		o.HasCost, o.Cost, o.CostText = true, 4, "4"
		expectState(t, "read", w.read(up, op.ID, ReadObserved, o), pawl.Succeeded)
		expect(t, "charged", w.account().Charged, 4)
		w.sound()
	})
	t.Run("a failure", func(t *testing.T) {
		up, w := upstream(), stage(t)
		o := first("broken", pawl.Failed)
		o.Result, o.ErrorCode, o.ErrorMessage = "", pawl.FailContentRejected, "no"
		op := answer(w, up, w.lease(up, w.submit(up, "a", 10).ID, ActSubmit), o)
		expectState(t, "state", op, pawl.Failed)
		expect(t, "code", op.ErrorCode, pawl.FailContentRejected)
		expect(t, "released", w.account().Reserved, 0)
		w.sound()
	})
	t.Run("a callback has overtaken it", func(t *testing.T) {
		up, w := upstream(), stage(t)
		op := w.submit(up, "a", 10)
		l := w.lease(up, op.ID, ActSubmit)
		w.event(up, op.ID, "e1", first("processing", pawl.Running))
		expect(t, "word", answer(w, up, l, first("queued", pawl.Running)).UpstreamState, "processing")
		expect(t, "conflicts", w.ops[op.ID].Reviews, 0)
		w.sound()
	})
	t.Run("of another task", func(t *testing.T) {
		up, w := upstream(), stage(t)
		o := first("done", pawl.Succeeded)
		o.Task = "task-b"
		expectState(t, "state", answer(w, up, w.lease(up, w.submit(up, "a", 10).ID, ActSubmit), o), pawl.Running)
		w.sound()
	})
}

// TestAttemptsShown: what is shown counts every create, also those before an
// operator said that the task was not created.
func TestAttemptsShown(t *testing.T) {
	up, w := upstream(), stage(t)
	op := w.submit(up, "a", 10)
	w.create(up, op.ID, CreateUnknown, "")
	out := w.do(ResolveOperation{Operation: op.ID, Up: up, Decision: pawl.DecideNotCreated})
	expect(t, "after the decision", out.Value.(Operation).View().Attempts, 1)
	expect(t, "the schedule's", w.ops[op.ID].Creates, 0)
	expect(t, "after the second", w.create(up, op.ID, CreateAccepted, "task-a").View().Attempts, 2)
	w.sound()
}

// TestUnknownDecision: a decision that there is not is invalid, whatever state
// the operation is in; one that there is does not fit every state.
func TestUnknownDecision(t *testing.T) {
	up, w := upstream(), stage(t)
	waiting := w.submit(up, "b", 0)
	running := w.running(up, "a", 0)
	ended := w.running(up, "c", 0)
	w.event(up, ended.ID, "e1", obs("task-c", pawl.Succeeded))
	for _, op := range []Operation{waiting, running, ended} {
		for _, decision := range []string{"foo", "", "running", "pending"} {
			expect(t, decision, w.do(ResolveOperation{Operation: op.ID, Up: up, Decision: decision}).Err.Kind, pawl.Invalid)
		}
		expect(t, "failed", w.do(ResolveOperation{Operation: op.ID, Up: up, Decision: pawl.DecideFailed}).Err.Kind, pawl.Conflicting)
	}
	w.sound()
}

// TestAttachAfterNotCreated: whoever said that the task was not created may have
// been wrong, and its event then finds its operation.
func TestAttachAfterNotCreated(t *testing.T) {
	up, w := upstream(), stage(t)
	op := w.submit(up, "a", 10)
	w.create(up, op.ID, CreateUnknown, "")
	w.do(ResolveOperation{Operation: op.ID, Up: up, Decision: pawl.DecideNotCreated})
	w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Running))
	e := pick(w.events, func(e Event) bool { return e.Parked })[0]
	r := w.reviews[w.do(OrphanOverdue{Event: e.ID}).Value.(pawl.ID)]
	out := w.once(ResolveReview{Review: r.ID, Event: r.Event, Source: r.Source, EventTask: "task-a", Up: up, Decision: pawl.DecideAttach, Target: op.ID})
	expect(t, "refused", out.Err == nil, true)
	expectState(t, "attached", w.ops[op.ID], pawl.Running)
	w.sound()
}

// TestOrphanWithinGrace: a node whose clock is ahead asks for the review too soon.
// The ledger's clock decides (O-128).
func TestOrphanWithinGrace(t *testing.T) {
	up, w := upstream(), stage(t)
	w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded))
	e := pick(w.events, func(e Event) bool { return e.Parked })[0]
	w.tick(14 * time.Minute)
	expect(t, "within the grace time", w.do(OrphanOverdue{Event: e.ID, Grace: 15 * time.Minute}).Reason, "waiting")
	expect(t, "reviews", len(w.reviews), 0)
	w.tick(time.Minute)
	expect(t, "after it", w.do(OrphanOverdue{Event: e.ID, Grace: 15 * time.Minute}).Reason, "review")
	w.sound()
}

// TestCreateAnsweredAfterErasure: a node was frozen while its create was answered,
// and goes on when the operation has ended and was erased. Nothing of the answer
// is kept but the task that an operation without one has, and nobody is asked.
func TestCreateAnsweredAfterErasure(t *testing.T) {
	up := upstream()
	for name, c := range map[string]struct {
		end  func(w *world, op pawl.ID)
		task string
	}{
		"it has another task": {func(w *world, op pawl.ID) {
			o := obs("task-a", pawl.Failed)
			w.event(up, op, "e1", o)
		}, "task-a"},
		"it has none": {func(w *world, op pawl.ID) {
			w.lease(up, op, ActAdvance)
			w.do(Advance{Up: up, Operation: op, Fence: w.ops[op].Lease})
			w.do(ResolveOperation{Operation: op, Up: up, Decision: pawl.DecideFailed})
		}, "task-b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := stage(t)
			id := w.submit(up, "a", 10).ID
			lease := w.lease(up, id, ActSubmit)
			c.end(w, id)
			expect(t, "erasure", w.do(EraseOperation{Operation: id, Whose: tenant}).Reason, "erased")
			w.do(RecordCreate{Up: up, Operation: id, Fence: lease.Fence, Outcome: CreateAccepted, Task: "task-b", RequestID: "req-b", Status: 200})
			op := w.ops[id]
			expect(t, "its task", op.Task, c.task)
			expect(t, "reviews", op.Reviews, 0)
			expect(t, "the provider's request", op.UpstreamRequestID, "")
			w.sound()
		})
	}
}
