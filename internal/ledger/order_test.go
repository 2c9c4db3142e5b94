package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestOrderOfChecks walks lines 5 to 12 of 7-rules §1, and pairs of them that
// both fit, where the first must decide.
func TestOrderOfChecks(t *testing.T) {
	up := upstream()
	versioned := func(s pawl.State, v int64) Observation {
		o := obs("task-a", s)
		o.Version, o.HasVersion = v, true
		return o
	}
	progress := func(p int32) Observation {
		o := obs("task-a", pawl.Running)
		o.Progress = p
		return o
	}
	type step struct {
		event string
		obs   Observation
		want  pawl.Verdict
	}
	cases := []struct {
		name  string
		steps []step
	}{
		{"5 another task than the token's", []step{{"e1", obs("task-b", pawl.Succeeded), pawl.Rejected}}},
		{"5 before 6: a taken key with another task is another event", []step{
			{"e1", progress(100), pawl.Applied}, {"e1", obs("task-b", pawl.Succeeded), pawl.Rejected}}},
		{"5 no task at all", []step{{"e1", obs("", pawl.Succeeded), pawl.Rejected}}},
		{"6 the key is taken", []step{{"e1", progress(100), pawl.Applied}, {"e1", progress(100), pawl.Duplicate}}},
		{"6 before 8: a repeat after the end is no conflict", []step{
			{"e1", progress(100), pawl.Applied}, {"e2", obs("task-a", pawl.Failed), pawl.Applied}, {"e1", obs("task-a", pawl.Succeeded), pawl.Duplicate}}},
		{"8 another end", []step{{"e1", obs("task-a", pawl.Succeeded), pawl.Applied}, {"e2", obs("task-a", pawl.Failed), pawl.Conflict}}},
		{"8 the same end under another id (R13)", []step{{"e1", obs("task-a", pawl.Succeeded), pawl.Applied}, {"e2", obs("task-a", pawl.Succeeded), pawl.Stale}}},
		{"8 unfinished after the end", []step{{"e1", obs("task-a", pawl.Succeeded), pawl.Applied}, {"e2", progress(5000), pawl.Stale}}},
		{"8 before 9: terminal comes before version (R10)", []step{
			{"e1", versioned(pawl.Succeeded, 2), pawl.Applied}, {"e2", versioned(pawl.Failed, 3), pawl.Conflict}}},
		{"8 before 9: a lower version of another end", []step{
			{"e1", versioned(pawl.Succeeded, 5), pawl.Applied}, {"e2", versioned(pawl.Failed, 1), pawl.Conflict}}},
		{"9 an equal version", []step{{"e1", versioned(pawl.Running, 3), pawl.Applied}, {"e2", versioned(pawl.Succeeded, 3), pawl.Stale}}},
		{"9 a lower version", []step{{"e1", versioned(pawl.Running, 3), pawl.Applied}, {"e2", versioned(pawl.Succeeded, 2), pawl.Stale}}},
		{"9 a higher version", []step{{"e1", versioned(pawl.Running, 3), pawl.Applied}, {"e2", versioned(pawl.Succeeded, 4), pawl.Applied}}},
		{"10 a lower rank without a version", []step{{"e1", obs("task-a", pawl.Pending), pawl.Stale}}},
		{"10 without a version the held one stays (R11)", []step{
			{"e1", versioned(pawl.Running, 3), pawl.Applied}, {"e2", progress(10), pawl.Applied}, {"e3", versioned(pawl.Succeeded, 3), pawl.Stale}}},
		{"11 nothing new", []step{{"e1", obs("task-a", pawl.Running), pawl.Applied}, {"e2", obs("task-a", pawl.Running), pawl.Stale}}},
		{"11 nothing but a higher version", []step{{"e1", versioned(pawl.Running, 1), pawl.Applied}, {"e2", versioned(pawl.Running, 2), pawl.Stale}}},
		{"12 progress", []step{{"e1", progress(100), pawl.Applied}, {"e2", progress(200), pawl.Applied}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := stage(t)
			op := w.running(up, "a", 10)
			for _, s := range c.steps {
				w.tick(time.Second)
				got := w.event(up, op.ID, s.event, s.obs)
				expectVerdict(t, s.event, got.Verdict, s.want)
				_, taken := w.keys[EventKeyID{"s", s.obs.Task, s.event}]
				if s.want.TakesKey() != taken {
					t.Errorf("%s: key taken %v, verdict %s", s.event, taken, s.want)
				}
			}
			w.sound()
		})
	}
}

// TestUnusable: what is verified and cannot be used is stored, shown, and
// leaves its key free, so that a mended description can apply a repeat (§2).
func TestUnusable(t *testing.T) {
	up := upstream()
	for _, preset := range []pawl.Verdict{pawl.Rejected, pawl.UnknownState, pawl.UnknownType} {
		w := stage(t)
		op := w.running(up, "a", 0)
		c := ReceiveEvent{Up: up, Token: op.ID, Event: "e1", Type: "odd", Obs: obs("task-a", pawl.Succeeded), Preset: preset, Reason: "why"}
		before := w.ops[op.ID]
		before.Kept |= KeptCallbacks
		for range 2 {
			got := w.do(c).Value.(Received)
			expectVerdict(t, "first", got.Verdict, preset)
		}
		expect(t, "operation", w.ops[op.ID], before)
		expect(t, "stored", len(pick(w.events, func(e Event) bool { return e.Direction == Inbound && e.Verdict == preset })), 2)
		reviews := pick(w.reviews, func(r Review) bool { return r.Reason == pawl.ReviewUnknownType })
		if preset == pawl.UnknownType {
			expect(t, "reviews of unknown types", len(reviews), 1)
			w.resolve(up, reviews[0], pawl.DecideDiscard)
			w.do(c)
			expect(t, "reviews after the first was decided", len(pick(w.reviews, func(r Review) bool { return r.Reason == pawl.ReviewUnknownType })), 2)
		}
		c.Preset = 0
		expectVerdict(t, "mended", w.do(c).Value.(Received).Verdict, pawl.Applied)
		w.sound()
	}
}

// TestProgressNeverMoves is R12: the type decides, whatever the status says,
// and the end that it announces can still come with the same version.
func TestProgressNeverMoves(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	o := obs("task-a", pawl.Succeeded)
	o.ProgressOnly, o.Version, o.HasVersion, o.Progress = true, 3, true, 9000
	got := w.event(up, op.ID, "e1", o)
	expectVerdict(t, "progress", got.Verdict, pawl.Applied)
	expect(t, "flag", got.Reason, "progress_names_an_end")
	expectState(t, "after progress", w.ops[op.ID], pawl.Running)
	expect(t, "word", w.ops[op.ID].UpstreamState, "")
	o.ProgressOnly = false
	expectVerdict(t, "the end", w.event(up, op.ID, "e2", o).Verdict, pawl.Applied)
	w.sound()
}

// TestBodyDiffers: the same key with another body is a duplicate, flagged, and
// a review where the two name different outcomes (§2).
func TestBodyDiffers(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded))
	same := w.do(ReceiveEvent{Up: up, Token: op.ID, Event: "e1", Obs: obs("task-a", pawl.Succeeded), Digest: digest("other bytes")})
	expect(t, "other bytes, same outcome", same.Reason, "body_differs")
	expect(t, "no review", w.open(op.ID, pawl.ReviewBodyDiffers), Review{})
	version := w.ops[op.ID].Version
	w.event(up, op.ID, "e1", obs("task-a", pawl.Failed))
	w.event(up, op.ID, "e1", obs("task-a", pawl.Failed))
	if w.open(op.ID, pawl.ReviewBodyDiffers).ID.IsZero() {
		t.Error("no review of another outcome under one key")
	}
	expect(t, "version", w.ops[op.ID].Version, version+1)
	expectState(t, "the first stays", w.ops[op.ID], pawl.Succeeded)
	w.sound()
}

// TestEventsOfAChange: exactly one event a version, creation emits nothing.
func TestEventsOfAChange(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.submit(up, "a", 10)
	expect(t, "at creation", len(w.types(op.ID)), 0)
	expect(t, "first version", op.Version, 1)
	w.create(up, op.ID, CreateAccepted, "task-a")
	o := obs("task-a", pawl.Succeeded)
	o.Settled = SettledNo
	w.event(up, op.ID, "e1", o)
	o.Settled, o.Cost, o.HasCost, o.CostText = SettledYes, 4, true, "4"
	w.event(up, op.ID, "e2", o)
	w.event(up, op.ID, "e3", obs("task-a", pawl.Failed))
	want := []string{pawl.TypeRunning, pawl.TypeSucceeded, pawl.TypeSettled, pawl.TypeReviewOpened}
	if got := w.types(op.ID); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	expect(t, "version", w.ops[op.ID].Version, 5)
	w.resolve(up, w.open(op.ID, pawl.ReviewConflict), pawl.DecideKeep)
	expect(t, "last", w.types(op.ID)[4], pawl.TypeReviewClosed)
	w.sound()
}

// TestSkippingIsLegal: an end that comes before anything else, by a token, also
// teaches the task; the create answer that comes later observes nothing.
func TestSkippingIsLegal(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.submit(up, "a", 10)
	l := w.lease(up, op.ID, ActSubmit)
	got := w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded))
	expectVerdict(t, "event", got.Verdict, pawl.Applied)
	expectState(t, "by the event", w.ops[op.ID], pawl.Succeeded)
	expect(t, "task", w.ops[op.ID].Task, "task-a")
	before := w.ops[op.ID]
	expect(t, "the create answer", w.answer(up, l, CreateAccepted, "task-a"), before)
	expect(t, "a lost answer of the same lease", w.answer(up, l, CreateUnknown, ""), before)
	w.sound()
}

// TestUnknownToken is line 1: a token of another source is unknown.
func TestUnknownToken(t *testing.T) {
	w := stage(t)
	op := w.running(upstream(), "a", 0)
	other := upstream()
	other.Name = "other"
	for _, c := range []ReceiveEvent{
		{Up: upstream(), Token: pawl.NewID(start, 99), Event: "e", Obs: obs("task-a", pawl.Succeeded)},
		{Up: other, Token: op.ID, Event: "e", Obs: obs("task-a", pawl.Succeeded)},
	} {
		out := w.do(c)
		if out.Fate != Dropped || out.Err.Kind != pawl.NotFound {
			t.Errorf("%+v: want not found", out)
		}
	}
}

// TestTokenOfAnotherTask: a task that another operation has is refused, and
// the refusal leaves no trace but the stored event.
func TestTokenOfAnotherTask(t *testing.T) {
	up := upstream()
	w := stage(t)
	w.running(up, "a", 0)
	b := w.submit(up, "b", 0)
	got := w.event(up, b.ID, "e1", obs("task-a", pawl.Succeeded))
	expectVerdict(t, "foreign task", got.Verdict, pawl.Rejected)
	expectState(t, "b", w.ops[b.ID], pawl.Pending)
	expect(t, "version", w.ops[b.ID].Version, 1)
	w.sound()
}
