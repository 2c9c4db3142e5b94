package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

func (w *world) hint(up Upstream, token pawl.ID, task string) Received {
	w.t.Helper()
	out := w.do(ReceiveHint{Up: up, Token: token, Task: task})
	if out.Err != nil {
		w.t.Fatal(out.Err)
	}
	return out.Value.(Received)
}

// TestHint is C6: a read becomes due, at most one in 2 s, and nothing else
// happens.
func TestHint(t *testing.T) {
	up := upstream()
	up.ReadFirst, up.ReadMax = time.Minute, time.Minute
	w := stage(t)
	op := w.running(up, "a", 10)
	w.tick(5 * time.Second)
	before := w.ops[op.ID]
	for _, token := range []pawl.ID{op.ID, {}} {
		got := w.hint(up, token, "task-a")
		expectVerdict(t, "hint", got.Verdict, pawl.Hint)
		expect(t, "operation", got.Operation, op.ID)
	}
	after := w.ops[op.ID]
	expect(t, "the read is due", after.DueAt, w.now)
	after.DueAt = before.DueAt
	expect(t, "and that is all", after, before)
	expect(t, "stored events", len(pick(w.events, func(e Event) bool { return e.Direction == Inbound })), 0)
	expect(t, "keys taken", len(w.keys), 0)

	read := w.now
	w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Running))
	w.tick(500 * time.Millisecond)
	expect(t, "within 2 s", w.hint(up, op.ID, "").Reason, "read_due")
	expect(t, "the next one is 2 s after the last", w.ops[op.ID].DueAt, read.Add(2*time.Second))
	for range 10 {
		expect(t, "again", w.hint(up, op.ID, "task-a").Reason, "read_awaited")
	}
	w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Succeeded))
	expectState(t, "read", w.ops[op.ID], pawl.Succeeded)
	expect(t, "after the end", w.hint(up, op.ID, "task-a").Reason, "finished")
	expect(t, "nothing is due", w.ops[op.ID].DueAt, pawl.Never)
	w.sound()
}

// TestHintDuringRead: the answer under way may be older than the hint, so that
// another read follows it, and not within 2 s.
func TestHintDuringRead(t *testing.T) {
	up := upstream()
	up.ReadFirst, up.ReadMax = time.Minute, time.Minute
	w := stage(t)
	op := w.running(up, "a", 0)
	l := w.lease(up, op.ID, ActRead)
	expect(t, "hint", w.hint(up, op.ID, "").Reason, "read_under_way")
	expect(t, "the lease", w.ops[op.ID].Leased, ActRead)
	w.do(ObserveStatus{Up: up, Operation: op.ID, Fence: l.Fence, Outcome: ReadObserved, Obs: obs("task-a", pawl.Running)})
	if wait := w.ops[op.ID].DueAt.Sub(w.now); wait < 2*time.Second || wait > 3*time.Second {
		t.Errorf("the next read is %s away, want a little over 2 s", wait)
	}
	w.sound()
}

// TestHintProvesNothing is R19 and line 5: an unsigned body teaches no task id,
// and one that names another task than its address is refused.
func TestHintProvesNothing(t *testing.T) {
	up := upstream()
	w := stage(t)
	a, b := w.running(up, "a", 0), w.submit(up, "b", 0)
	before := w.ops[b.ID]
	expect(t, "no task is known", w.hint(up, b.ID, "task-b").Reason, "nothing_to_read")
	expect(t, "nothing is learned", w.ops[b.ID], before)
	expect(t, "no claim of the task", w.tasks[TaskID{"s", "task-b"}], Task{})
	expect(t, "a task of nobody", w.hint(up, pawl.ID{}, "task-x").Reason, "unknown_task")
	for what, c := range map[string]ReceiveHint{
		"another operation's task":          {Up: up, Token: b.ID, Task: "task-a"},
		"another task than the one it has":  {Up: up, Token: a.ID, Task: "task-x"},
		"a task of nobody, where one known": {Up: up, Token: a.ID, Task: "task-b"},
	} {
		if out := w.do(c); out.Fate != Dropped || out.Reason != "task_mismatch" {
			t.Errorf("%s: %+v, want it refused", what, out)
		}
	}
	other := up
	other.Name = "other"
	if out := w.do(ReceiveHint{Up: other, Token: a.ID}); out.Fate != Dropped || out.Err.Kind != pawl.NotFound {
		t.Errorf("a token of another source: %+v", out)
	}
	w.sound()
}

// TestHintOfUnsettledEnd: an end whose money is open is read on.
func TestHintOfUnsettledEnd(t *testing.T) {
	up := upstream()
	up.ReadFirst, up.ReadMax = time.Minute, time.Minute
	w := stage(t)
	op := w.running(up, "a", 10)
	o := obs("task-a", pawl.Succeeded)
	o.Settled = SettledNo
	w.event(up, op.ID, "e1", o)
	w.tick(3 * time.Second)
	expect(t, "hint", w.hint(up, op.ID, "").Reason, "read_due")
	expect(t, "due", w.ops[op.ID].DueAt, w.now)
	w.sound()
}

func confirming() Upstream {
	up := upstream()
	up.Confirm, up.ReadFirst, up.ReadMax = true, time.Minute, time.Minute
	return up
}

// TestConfirm is "confirm: poll" of C6: an end that a callback names is read
// before it is applied; what is no end is applied as ever.
func TestConfirm(t *testing.T) {
	up := confirming()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.tick(5 * time.Second)
	progress := obs("task-a", pawl.Running)
	progress.Progress = 10
	expectVerdict(t, "progress", w.event(up, op.ID, "e1", progress).Verdict, pawl.Applied)
	for range 3 {
		got := w.event(up, op.ID, "e2", obs("task-a", pawl.Succeeded))
		expectVerdict(t, "an end", got.Verdict, pawl.Hint)
		expect(t, "reason", got.Reason, "confirm")
		expect(t, "no event is stored", got.Event, pawl.ID{})
	}
	expectState(t, "not applied", w.ops[op.ID], pawl.Running)
	expect(t, "money held", w.account().Reserved, 10)
	expect(t, "the read is due", w.ops[op.ID].DueAt, w.now)
	_, taken := w.keys[EventKeyID{"s", "task-a", "e2"}]
	expect(t, "its key is taken", taken, false)
	w.sound()

	// The read fails for good: the schedule goes on, and a repeat is judged anew.
	w.read(up, op.ID, ReadUnreachable, Observation{})
	expectState(t, "still not applied", w.ops[op.ID], pawl.Running)
	if w.ops[op.ID].DueAt <= w.now || w.ops[op.ID].DueAt > w.now.Add(70*time.Second) {
		t.Errorf("the next read is at %s after a failed one", w.ops[op.ID].DueAt)
	}
	w.tick(3 * time.Second)
	expectVerdict(t, "a repeat", w.event(up, op.ID, "e2", obs("task-a", pawl.Succeeded)).Verdict, pawl.Hint)
	expect(t, "due again", w.ops[op.ID].DueAt, w.now)
	expectState(t, "read", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Failed)), pawl.Failed)
	expect(t, "released", w.account().Reserved, 0)
	w.sound()
}

// TestConfirmOfWhatIsFinished: what is read no more cannot be confirmed, so
// that a callback moves no money of it and a late success asks a person.
func TestConfirmOfWhatIsFinished(t *testing.T) {
	up := confirming()
	up.AcceptLateSuccess = true
	w := stage(t)
	op := w.running(up, "a", 10)
	o := obs("task-a", pawl.Succeeded)
	o.HasCost, o.Cost, o.CostText, o.Settled = true, 4, "4", SettledYes
	w.read(up, op.ID, ReadObserved, o)
	expect(t, "charged", w.account().Charged, 4)
	o.Cost, o.CostText = 9, "9"
	expectVerdict(t, "a higher total", w.event(up, op.ID, "e1", o).Verdict, pawl.Stale)
	expect(t, "charged still", w.account().Charged, 4)

	late := w.running(up, "b", 10)
	w.now = late.Deadline.Add(time.Minute)
	w.read(up, late.ID, ReadObserved, obs("task-b", pawl.Running))
	expectState(t, "late", w.ops[late.ID], pawl.Expired)
	expectVerdict(t, "a late success", w.event(up, late.ID, "e2", obs("task-b", pawl.Succeeded)).Verdict, pawl.Conflict)
	if w.open(late.ID, pawl.ReviewLateSuccess).ID.IsZero() {
		t.Error("nobody is asked")
	}
	w.sound()
}

// TestConfirmOfParked: an end that waited for its task is confirmed too.
func TestConfirmOfParked(t *testing.T) {
	up := confirming()
	w := stage(t)
	op := w.submit(up, "a", 10)
	l := w.lease(up, op.ID, ActSubmit)
	e := w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Succeeded))
	expectVerdict(t, "unknown task", e.Verdict, pawl.Orphan)
	w.answer(up, l, CreateAccepted, "task-a")
	expectState(t, "not applied", w.ops[op.ID], pawl.Running)
	expectVerdict(t, "what it came to", w.events[e.Event].Judged(), pawl.Hint)
	expect(t, "the read is due", w.ops[op.ID].DueAt, w.now)
	expect(t, "parked", w.sources["s"].Parked, 0)
	w.sound()
	expectState(t, "read", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
	w.sound()
}

// TestConfirmTeaches: a signed end that comes to the operation's own address
// teaches the task id (R19), without which nothing could be read.
func TestConfirmTeaches(t *testing.T) {
	up := confirming()
	w := stage(t)
	op := w.submit(up, "a", 10)
	l := w.lease(up, op.ID, ActSubmit)
	expectVerdict(t, "early", w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Hint)
	expectState(t, "taught", w.ops[op.ID], pawl.Running)
	expect(t, "task", w.ops[op.ID].Task, "task-a")
	w.answer(up, l, CreateAccepted, "task-a")
	expectState(t, "read", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
	w.sound()
}
