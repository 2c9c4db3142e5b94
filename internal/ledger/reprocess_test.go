package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// again judges a stored event anew as it reads today.
func (w *world) again(up Upstream, id pawl.ID, event string, o Observation, preset pawl.Verdict) Received {
	w.t.Helper()
	out := w.do(ReprocessEvent{ID: id, Whose: w.events[id].Tenant, ReceiveEvent: ReceiveEvent{
		Header: Header{Actor: "operator"}, Up: up, Token: w.events[id].Operation, Event: event, Type: "t", Obs: o, Preset: preset, Reason: preset.String(),
	}})
	if out.Err != nil {
		w.t.Fatal(out.Err)
	}
	return out.Value.(Received)
}

// odd stores an event that could not be used.
func (w *world) odd(up Upstream, token pawl.ID, event, task string, v pawl.Verdict) pawl.ID {
	w.t.Helper()
	out := w.do(ReceiveEvent{Up: up, Token: token, Event: event, Type: "t", Obs: Observation{Task: task, Progress: -1}, Preset: v, Reason: v.String(), Body: "body " + event})
	return out.Value.(Received).Event
}

// TestReprocess is C10: what a mended description can use is applied under the
// same rules, beside the first verdict, and takes its key then.
func TestReprocess(t *testing.T) {
	up := upstream()
	for _, preset := range []pawl.Verdict{pawl.Rejected, pawl.UnknownState, pawl.UnknownType} {
		t.Run(preset.String(), func(t *testing.T) {
			w := stage(t)
			op := w.running(up, "a", 10)
			e := w.odd(up, op.ID, "e1", "task-a", preset)
			w.tick(time.Hour) // freshness held at receipt
			expectVerdict(t, "not mended yet", w.again(up, e, "e1", obs("task-a", 0), preset).Verdict, preset)
			got := w.again(up, e, "e1", obs("task-a", pawl.Succeeded), 0)
			expectVerdict(t, "mended", got.Verdict, pawl.Applied)
			expect(t, "the event", got.Event, e)
			expectState(t, "operation", w.ops[op.ID], pawl.Succeeded)
			expect(t, "charged", w.account().Charged, 10)
			row := w.events[e]
			expectVerdict(t, "the first verdict stays", row.Verdict, preset)
			expect(t, "the latest", row.Rejudged, Rejudgment{At: w.now, Verdict: pawl.Applied, Reason: "state", Actor: "operator"})
			expect(t, "the key is its own", w.keys[EventKeyID{"s", "task-a", "e1"}].Event, e)
			expectVerdict(t, "a third time", w.again(up, e, "e1", obs("task-a", pawl.Failed), 0).Verdict, pawl.Duplicate)
			expect(t, "and what it came to stays", w.events[e], row)
			expectVerdict(t, "the sender repeats it", w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded)).Verdict, pawl.Duplicate)
			audits := 0
			for _, a := range w.audits {
				if a.Action == "event.reprocess" && a.Actor == "operator" && a.Subject == e.Text(pawl.PrefixEvent) {
					audits++
				}
			}
			expect(t, "audited", audits, 2)
			w.sound()
		})
	}
}

// TestReprocessObeysTheRules: an old event changes nothing that happened since,
// and one whose repeat was applied is a duplicate.
func TestReprocessObeysTheRules(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	late := w.odd(up, op.ID, "e1", "task-a", pawl.UnknownState)
	other := w.odd(up, op.ID, "e2", "task-a", pawl.UnknownState)
	repeated := w.odd(up, op.ID, "e3", "task-a", pawl.UnknownState)
	wrong := w.odd(up, op.ID, "e4", "task-x", pawl.UnknownState)
	expectVerdict(t, "the repeat", w.event(up, op.ID, "e3", obs("task-a", pawl.Succeeded)).Verdict, pawl.Applied)
	version := w.ops[op.ID].Version

	expectVerdict(t, "unfinished", w.again(up, late, "e1", obs("task-a", pawl.Running), 0).Verdict, pawl.Stale)
	expectVerdict(t, "its repeat was applied", w.again(up, repeated, "e3", obs("task-a", pawl.Succeeded), 0).Verdict, pawl.Duplicate)
	expectVerdict(t, "another task than its address", w.again(up, wrong, "e4", obs("task-x", pawl.Failed), 0).Verdict, pawl.Rejected)
	expect(t, "version", w.ops[op.ID].Version, version)
	expectVerdict(t, "another end", w.again(up, other, "e2", obs("task-a", pawl.Failed), 0).Verdict, pawl.Conflict)
	expectState(t, "the first stays", w.ops[op.ID], pawl.Succeeded)
	if w.open(op.ID, pawl.ReviewConflict).ID.IsZero() {
		t.Error("nobody is asked about the other end")
	}
	w.sound()
}

// TestReprocessRefusals: outbound events, other sources' and other tenants'
// events are none.
func TestReprocessRefusals(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	e := w.odd(up, op.ID, "e1", "task-a", pawl.Rejected)
	outbound := w.facts(op.ID).Outbound[0].ID
	elsewhere := up
	elsewhere.Name = "elsewhere"
	for what, c := range map[string]ReprocessEvent{
		"outbound":       {ID: outbound, ReceiveEvent: ReceiveEvent{Up: up}},
		"another source": {ID: e, ReceiveEvent: ReceiveEvent{Up: elsewhere}},
		"another tenant": {ID: e, Tenant: "other", ReceiveEvent: ReceiveEvent{Up: up}},
		"unknown":        {ID: pawl.NewID(start, 77), ReceiveEvent: ReceiveEvent{Up: up}},
	} {
		c.Token = w.events[c.ID].Operation
		c.Obs = obs("task-a", pawl.Succeeded)
		if out := w.do(c); out.Fate != Dropped || out.Err.Kind != pawl.NotFound {
			t.Errorf("%s: %+v, want not found", what, out)
		}
	}
	expectState(t, "operation", w.ops[op.ID], pawl.Running)
}

// TestReprocessOrphans: a parked event waits on until a mended description
// reads its task; one that was refused or discarded may still find its
// operation.
func TestReprocessOrphans(t *testing.T) {
	up := upstream()
	w := stage(t)
	parked := w.event(up, pawl.ID{}, "e1", obs("wrong", pawl.Succeeded)).Event
	w.tick(time.Hour)
	w.do(OrphanOverdue{Event: parked})
	review := w.events[parked].Review
	expectVerdict(t, "still nobody's", w.again(up, parked, "e1", obs("wrong", pawl.Succeeded), 0).Verdict, pawl.Orphan)
	expect(t, "it waits on", w.events[parked].Parked, true)
	expect(t, "parked", w.sources["s"].Parked, 1)
	w.sound()

	op := w.running(up, "a", 10)
	expectVerdict(t, "its task is read", w.again(up, parked, "e1", obs("task-a", pawl.Succeeded), 0).Verdict, pawl.Applied)
	expectState(t, "operation", w.ops[op.ID], pawl.Succeeded)
	row := w.events[parked]
	expect(t, "it waits no more", row.Parked, false)
	expect(t, "of the operation", row.Operation, op.ID)
	expectVerdict(t, "first", row.Verdict, pawl.Orphan)
	expect(t, "parked at the end", w.sources["s"].Parked, 0)
	if w.reviews[review].ClosedAt == 0 {
		t.Error("its review is open")
	}
	w.sound()

	discarded := w.event(up, pawl.ID{}, "e2", obs("task-b", pawl.Succeeded)).Event
	w.do(OrphanOverdue{Event: discarded})
	w.resolve(up, w.reviews[w.events[discarded].Review], pawl.DecideDiscard)
	expectVerdict(t, "nobody's", w.again(up, discarded, "e2", obs("task-b", pawl.Succeeded), 0).Verdict, pawl.Orphan)
	expect(t, "a discarded one waits no more", w.events[discarded].Parked, false)
	b := w.running(up, "b", 10)
	expectState(t, "not by itself", w.ops[b.ID], pawl.Running)
	expectVerdict(t, "by hand", w.again(up, discarded, "e2", obs("task-b", pawl.Succeeded), 0).Verdict, pawl.Applied)
	expect(t, "parked", w.sources["s"].Parked, 0)
	w.sound()

	strict := up
	strict.ParkOrphans = false
	refused := w.event(strict, pawl.ID{}, "e3", obs("task-c", pawl.Succeeded)).Event
	expectVerdict(t, "refused", w.events[refused].Verdict, pawl.Rejected)
	expectVerdict(t, "the policy was changed", w.again(up, refused, "e3", obs("task-c", pawl.Succeeded), 0).Verdict, pawl.Orphan)
	expect(t, "it waits now", w.sources["s"].Parked, 1)
	c := w.running(up, "c", 10)
	expectState(t, "matched", w.ops[c.ID], pawl.Succeeded)
	expectVerdict(t, "the first verdict stays", w.events[refused].Verdict, pawl.Rejected)
	expectVerdict(t, "the latest", w.events[refused].Judged(), pawl.Applied)
	w.sound()
}

// TestReprocessUnknownTypes: the review of them closes when nothing is left.
func TestReprocessUnknownTypes(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	var all []pawl.ID
	for i := range 3 {
		all = append(all, w.odd(up, op.ID, fmt.Sprint("e", i), "task-a", pawl.UnknownType))
	}
	open := func() int {
		return len(pick(w.reviews, func(r Review) bool { return r.Reason == pawl.ReviewUnknownType && r.ClosedAt == 0 }))
	}
	expect(t, "counted", w.sources["s"].UnknownTypes, 3)
	w.again(up, all[0], "e0", obs("task-a", pawl.Running), pawl.UnknownType)
	expect(t, "unknown again", w.sources["s"].UnknownTypes, 3)
	progress := obs("task-a", pawl.Running)
	for i, e := range all {
		expect(t, fmt.Sprint("open before ", i), open(), 1)
		progress.Progress = int32(i + 1)
		expectVerdict(t, "applied", w.again(up, e, fmt.Sprint("e", i), progress, 0).Verdict, pawl.Applied)
	}
	expect(t, "open at the end", open(), 0)
	expect(t, "left", w.sources["s"].UnknownTypes, 0)
	w.odd(up, op.ID, "e9", "task-a", pawl.UnknownType)
	expect(t, "a new one asks anew", open(), 1)
	w.sound()
}

// TestReprocessUnderConfirm: an end still waits for its read.
func TestReprocessUnderConfirm(t *testing.T) {
	up := confirming()
	w := stage(t)
	op := w.running(up, "a", 10)
	e := w.odd(up, op.ID, "e1", "task-a", pawl.UnknownState)
	w.tick(5 * time.Second)
	expectVerdict(t, "an end", w.again(up, e, "e1", obs("task-a", pawl.Succeeded), 0).Verdict, pawl.Hint)
	expectState(t, "operation", w.ops[op.ID], pawl.Running)
	expect(t, "due", w.ops[op.ID].DueAt, w.now)
	w.sound()
	up.Confirm = false
	expectVerdict(t, "no longer to be confirmed", w.again(up, e, "e1", obs("task-a", pawl.Succeeded), 0).Verdict, pawl.Applied)
	w.sound()
}

// TestOrphanLimit is R18 at its limit: one more is refused and leaves nothing,
// repeats of those that wait are duplicates, and a match makes room.
func TestOrphanLimit(t *testing.T) {
	up := upstream()
	up.OrphanLimit = 3
	w := stage(t)
	for i := range 3 {
		expectVerdict(t, "parked", w.event(up, pawl.ID{}, fmt.Sprint("e", i), obs(fmt.Sprint("task-", i), pawl.Succeeded)).Verdict, pawl.Orphan)
	}
	over := ReceiveEvent{Up: up, Event: "e3", Obs: obs("task-3", pawl.Succeeded), Body: "b"}
	out := w.do(over)
	if out.Fate != Dropped || out.Err.Kind != pawl.Unavailable || out.Reason != "too_many_orphans" {
		t.Errorf("over the limit: %+v", out)
	}
	expect(t, "stored", len(pick(w.events, func(e Event) bool { return e.Direction == Inbound })), 3)
	expectVerdict(t, "a repeat", w.event(up, pawl.ID{}, "e0", obs("task-0", pawl.Succeeded)).Verdict, pawl.Duplicate)
	w.create(up, w.submit(up, "0", 0).ID, CreateAccepted, "task-0")
	expectVerdict(t, "after a match", w.do(over).Value.(Received).Verdict, pawl.Orphan)
	other := up
	other.Name = "other"
	expectVerdict(t, "another source has its own limit", w.event(other, pawl.ID{}, "e0", obs("task-0", pawl.Succeeded)).Verdict, pawl.Orphan)
	w.sound()
}
