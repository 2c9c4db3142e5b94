package exercise

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl"
)

// answeredID is the ledger's id of an event that its answer names.
func answeredID(x exchange) string {
	if x.Answer == nil {
		return ""
	}
	var said struct {
		EventID string `json:"event_id"`
	}
	_ = json.Unmarshal([]byte(x.Answer.Body), &said) // an answer that is no JSON names nothing
	return said.EventID
}

// findings collects what is wrong.
type findings struct{ all []error }

func (f *findings) that(ok bool, format string, args ...any) {
	if !ok {
		f.all = append(f.all, fmt.Errorf(format, args...))
	}
}

// judge holds a ledger.json against its own rules, the fixture and the wire: it
// says nothing of the code that wrote it.
func (b book) judge(fix Fixture, wire []exchange) error {
	var f findings
	b.judgeOperations(&f, fix)
	b.judgeEvents(&f)
	b.judgeSteps(&f, fix, ofPhases(wire, phaseEvents, phaseRecovery))
	counted := countWire(wire)
	f.that(b.Counts == counted, "ledger.json: counts are %+v, and wire/ holds %+v", b.Counts, counted)
	f.that(counted.CreateCalls == 0, "wire/: a create reached the provider during recovery")
	f.that(len(b.Reads) == counted.StatusReads, "ledger.json: %d status reads are listed, and wire/ holds %d", len(b.Reads), counted.StatusReads)
	points := make(map[string]bool)
	for _, c := range b.Crashes {
		points[c.Case] = true
		b.judgeCrash(&f, c, wire)
	}
	f.that(len(points) == 2 && points[stopAfterCommit] && points[stopBeforeDelivery], "ledger.json: both crashes must be there")
	return errors.Join(f.all...)
}

// judgeSteps: what went over the wire is what the fixture says, step by step,
// and came to what it expects.
func (b book) judgeSteps(f *findings, fix Fixture, wire []exchange) {
	f.that(len(wire) == len(fix.Steps), "wire/: %d exchanges, and the fixture has %d steps", len(wire), len(fix.Steps))
	verdicts := make(map[string]string)
	for _, e := range b.Events {
		verdicts[e.Exchange] = e.Verdict
	}
	for _, r := range b.Reads {
		verdicts[r.Exchange] = r.Verdict
	}
	for i := range min(len(wire), len(fix.Steps)) {
		x, s := wire[i], fix.Steps[i]
		made, err := x.step(fix)
		f.that(err == nil && x.Check == s.Check && x.Phase == phaseOf(s) && made.sameInput(s), "%s: is not step %s of the fixture", wireName(x), s.Check)
		f.that(s.Expect.Status == 0 || statusOf(x) == s.Expect.Status || s.Read != nil, "%s: answered %d, expected %d", wireName(x), statusOf(x), s.Expect.Status)
		f.that(s.Expect.Verdict == "" || verdicts[wireName(x)] == s.Expect.Verdict, "ledger.json: %s: the verdict is %q, expected %q", wireName(x), verdicts[wireName(x)], s.Expect.Verdict)
	}
}

// sameInput reports whether two steps bring the same.
func (s Step) sameInput(t Step) bool {
	switch {
	case s.Event != nil && t.Event != nil:
		a, b := *s.Event, *t.Event
		return a.ID == b.ID && a.To == b.To && a.Age == b.Age && a.Stranger == b.Stranger && string(a.Body) == string(b.Body)
	case s.Read != nil && t.Read != nil:
		return s.Read.Task == t.Read.Task && string(s.Read.Body) == string(t.Read.Body) && s.Read.Status == cmp.Or(t.Read.Status, 200)
	}
	return false
}

func (b book) judgeOperations(f *findings, fix Fixture) {
	f.that(len(b.Operations) == len(fix.Operations) && len(b.Tasks) == len(b.Operations), "ledger.json: not every operation of the fixture is there with its task")
	claimed := make(map[string]string)
	for _, t := range b.Tasks {
		f.that(claimed[t.TaskID] == "", "ledger.json: task %q is claimed twice", t.TaskID)
		claimed[t.TaskID] = t.OperationID
	}
	for _, op := range b.Operations {
		state, known := pawl.ParseState(op.State)
		f.that(known, "ledger.json: %s: %q is no state", op.ID, op.State)
		meant, inTable := fix.spec.States[op.UpstreamState]
		f.that(!inTable || meant == state || state == pawl.Expired, "ledger.json: %s is %s, and the provider's word %q does not mean that", op.ID, op.State, op.UpstreamState)
		f.that(fix.operation(op.TaskID).Task != "" && claimed[op.TaskID] == op.ID, "ledger.json: %s does not hold its task", op.ID)
		b.judgeVersions(f, op, state)
		reads := 0
		caused := 0
		for _, r := range b.Reads {
			if r.TaskID == op.TaskID {
				reads++
				caused += count(r.Verdict == pawl.Applied.String())
			}
		}
		for _, e := range b.Events {
			caused += count(e.TaskID == op.TaskID && e.Verdict == pawl.Applied.String())
		}
		f.that(reads == int(op.StatusReads), "ledger.json: %s counts %d status reads, and %d are listed", op.ID, op.StatusReads, reads)
		f.that(!state.Terminal() || caused > 0, "ledger.json: %s is %s, and nothing that was applied says so", op.ID, op.State)
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// judgeVersions: creation is version 1, each later one has one event; an end is
// emitted once, and only by an operation that has ended so (7-rules §3).
func (b book) judgeVersions(f *findings, op bookOperation, state pawl.State) {
	version, ends := int64(1), 0
	for _, e := range b.Emitted {
		if e.TaskID != op.TaskID || e.Type == pawl.TypeProgress {
			continue
		}
		f.that(e.Version == version+1, "ledger.json: %s: version %d follows %d", op.ID, e.Version, version)
		version = e.Version
		for s := pawl.Succeeded; s <= pawl.Expired; s++ {
			if e.Type == pawl.TypeOf(s) {
				ends++
				f.that(s == state, "ledger.json: %s is %s and emitted %s", op.ID, op.State, e.Type)
			}
		}
	}
	f.that(version == op.Version, "ledger.json: %s is at version %d, and its latest event of %d", op.ID, op.Version, version)
	f.that(ends == count(state.Terminal()), "ledger.json: %s is %s and emitted %d ends", op.ID, op.State, ends)
}

// judgeEvents: a key is taken once, and a duplicate has a first time.
func (b book) judgeEvents(f *findings) {
	taken := make(map[[2]string]bool)
	for _, e := range b.Events {
		key := [2]string{e.TaskID, e.ID}
		v, known := pawl.ParseVerdict(e.Verdict)
		f.that(known, "ledger.json: event %q: %q is no verdict", e.ID, e.Verdict)
		if v == pawl.Duplicate {
			f.that(taken[key], "ledger.json: event %q is a duplicate of nothing", e.ID)
			continue
		}
		f.that(!taken[key] || !v.TakesKey(), "ledger.json: event %q was taken twice", e.ID)
		taken[key] = taken[key] || v.TakesKey()
	}
}

// judgeCrash compares a crash with the main operation of its task and with what
// went over the wire: the same bytes twice, one outcome.
func (b book) judgeCrash(f *findings, c bookCrash, wire []exchange) {
	at := slices.IndexFunc(b.Operations, func(op bookOperation) bool { return op.TaskID == c.TaskID })
	f.that(at >= 0, "ledger.json: crash %s: its task is unknown", c.Case)
	var sent []exchange
	ids := make(map[string]bool)
	bodies := make(map[string]bool)
	for _, x := range wire {
		switch {
		case x.Phase == c.Case && x.Kind == callback:
			sent = append(sent, x)
		case x.Phase == c.Case && x.Kind == delivery:
			id := x.Request.Headers["webhook-id"]
			ids[id], bodies[x.Request.Body] = true, true
			f.that(slices.Contains(c.Outcomes, id), "wire/: crash %s: an outcome was delivered that ledger.json lacks", c.Case)
		}
	}
	f.that(len(ids) == 1 && len(bodies) == 1 && len(c.Outcomes) == 1, "crash %s: %d outcomes were delivered, expected one", c.Case, len(ids))
	f.that(len(sent) == 2, "wire/: crash %s: the event was sent %d times, expected twice", c.Case, len(sent))
	f.that(c.StoredEvents == 1 && c.Repeats == 1, "ledger.json: crash %s: the event must be stored once and met once", c.Case)
	if len(sent) != 2 {
		return
	}
	a, again := sent[0], sent[1]
	f.that(a.Request.Body == again.Request.Body && a.EventID == again.EventID && a.Request.Headers["webhook-id"] == again.Request.Headers["webhook-id"],
		"wire/: crash %s: the repeat is another event", c.Case)
	f.that(statusOf(a) == c.FirstAnswer && statusOf(again) == c.RepeatAnswer && statusOf(again) == 200, "wire/: crash %s: the answers are not those of ledger.json", c.Case)
	f.that((a.Answer == nil) == (c.Case == stopAfterCommit), "wire/: crash %s: the first answer was lost, or not, against its name", c.Case)
}

func statusOf(x exchange) int {
	if x.Answer == nil {
		return 0
	}
	return x.Answer.Status
}
