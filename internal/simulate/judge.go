package simulate

import (
	"net/http"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/internal/store"
)

// tolerance is how far a timestamp may be off for certain (2-contracts §1).
const tolerance = 299 * time.Second

// judge holds an answer of ours to an event against what the provider knows.
// late is how much the node's clock was ahead of the signature's time.
func (t *task) judge(s sending, e *eventBook, status int, v verdictAnswer, late time.Duration) {
	w := t.provider.world
	hint := v.Verdict == pawl.Hint.String()
	if status/100 == 2 && !hint {
		w.books.promiseEvent(v)
	} else if hint || status != http.StatusServiceUnavailable {
		e.perhaps--
	}
	wrong := func(rule string) {
		w.violate(rule, "event %s of task %s at %s (%s): answered %d %s %s", e.id, t.id, t.provider.name, s.fault, status, v.Verdict, v.Reason)
	}
	if v.Verdict == pawl.Conflict.String() && !w.asked(t) {
		wrong("a person is asked about a second end")
	}
	if s.fault == sim.CallbackConflict && t.contradicts(e) && (v.Verdict == pawl.Stale.String() || v.Verdict == pawl.Applied.String()) {
		wrong("a second end is a conflict")
	}
	busy := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
	forged := s.fault == sim.CallbackBadSignature || s.fault == sim.CallbackStale || s.fault == sim.CallbackCorrupted && s.attempt == 1
	offClock := late > tolerance || late < -tolerance
	switch {
	case t.provider.unsigned:
		if status/100 == 2 && !hint && v.Verdict != pawl.UnknownType.String() {
			wrong("what is not signed proves nothing")
		}
	case forged:
		if status != http.StatusUnauthorized {
			wrong("what is not verified is refused")
		}
	case busy, offClock && status == http.StatusUnauthorized:
	case hint && t.provider.confirmed:
	case s.genuine():
		t.judgeGenuine(e, status, v, wrong)
	case s.fault == sim.CallbackUnknownTask && t.shared:
		if v.Verdict != pawl.Orphan.String() && v.Verdict != pawl.Duplicate.String() && t.provider.up.Policy().ParkOrphans {
			wrong("an event of an unknown task is parked")
		}
	case s.fault == sim.CallbackWrongTask, s.fault == sim.CallbackUnknownTask, s.fault == sim.CallbackUnknownState:
		if status != http.StatusBadRequest {
			wrong("an event that contradicts itself is refused")
		}
	case s.fault == CallbackUnknownType:
		if status != http.StatusAccepted || v.Verdict != pawl.UnknownType.String() {
			wrong("an event of an unknown type is kept and shown")
		}
	case s.fault == CallbackOtherBody:
		if v.Verdict != pawl.Duplicate.String() {
			wrong("an event counts once, whatever a repeat says")
		}
	case status/100 != 2:
		wrong("a verified event is taken")
	}
}

// judgeGenuine is about the provider's own word.
func (t *task) judgeGenuine(e *eventBook, status int, v verdictAnswer, wrong func(string)) {
	refused := t.shared && !t.provider.up.Policy().ParkOrphans
	switch {
	case status/100 == 2 && v.Verdict == pawl.Duplicate.String() && e.perhaps < 2:
		wrong("the first of an event is no duplicate")
	case status/100 == 2:
	case refused && status == http.StatusBadRequest && v.Reason == "unknown_task":
	default:
		wrong("a verified event is taken")
	}
}

// contradicts reports whether an event names another end than the operation of
// its task has.
func (t *task) contradicts(e *eventBook) bool {
	id, err := pawl.ParseSuffix(t.op)
	if err != nil {
		return false
	}
	op, ok := t.provider.world.operation(id)
	return ok && op.Task == t.id && op.State.Terminal() && op.State != e.state
}

// asked reports whether a person was ever asked about another end of a task's
// operation.
func (w *world) asked(t *task) bool {
	id, err := pawl.ParseSuffix(t.op)
	if err != nil {
		return false
	}
	all, err := w.driver.Reviews(noLimit, store.ReviewFilter{Operation: id}, wide)
	return err == nil && slices.ContainsFunc(all, func(r ledger.Review) bool {
		return r.Reason == pawl.ReviewConflict || r.Reason == pawl.ReviewLateSuccess
	})
}
