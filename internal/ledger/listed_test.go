package ledger

import (
	"testing"

	"github.com/pawlhq/pawl"
)

// What an entry of a provider's list comes to (1-product E3, 7-rules R25).
func TestCompare(t *testing.T) {
	up := upstream()
	w := stage(t)
	running := w.running(up, "a", 0)
	done := w.running(up, "b", 0)
	w.event(up, done.ID, "e1", obs("task-b", pawl.Succeeded))
	w.event(up, pawl.ID{}, "e2", obs("task-parked", pawl.Succeeded))
	rows := new(Rows)
	for id, key := range w.keys {
		rows.EventKeys.Loaded(id, key, true)
	}
	for id, task := range w.tasks {
		rows.Tasks.Loaded(id, task, true)
	}
	for id, op := range w.ops {
		rows.Operations.Loaded(id, op, true)
	}
	for name, c := range map[string]struct {
		listed Listed
		want   Compared
	}{
		"as it is":                      {Listed{Task: "task-a", State: pawl.Running}, Compared{Matched, "known_state", running.ID}},
		"no word of its state":          {Listed{Task: "task-a"}, Compared{Matched, "known_task", running.ID}},
		"an end that never came":        {Listed{Task: "task-a", State: pawl.Failed}, Compared{Missing, "end", running.ID}},
		"an event that never came":      {Listed{Task: "task-a", Event: "e9"}, Compared{Missing, "event", running.ID}},
		"the end of such an event":      {Listed{Task: "task-a", Event: "e9", State: pawl.Succeeded}, Compared{Missing, "end", running.ID}},
		"an event that came":            {Listed{Task: "task-b", Event: "e1", State: pawl.Succeeded}, Compared{Matched, "arrived", done.ID}},
		"one whose end is known":        {Listed{Task: "task-b", Event: "e9", State: pawl.Succeeded}, Compared{Matched, "known_state", done.ID}},
		"an old word of what has ended": {Listed{Task: "task-b", Event: "e9", State: pawl.Running}, Compared{Matched, "known_state", done.ID}},
		"another end":                   {Listed{Task: "task-b", State: pawl.Failed}, Compared{Missing, "other_end", done.ID}},
		"the event of another task":     {Listed{Task: "task-a", Event: "e1"}, Compared{Missing, "event", running.ID}},
		"nobody's task":                 {Listed{Task: "task-z", State: pawl.Running}, Compared{ForeignTask, "unknown_task", pawl.ID{}}},
		"a parked orphan's":             {Listed{Task: "task-parked", State: pawl.Running}, Compared{ForeignTask, "parked", pawl.ID{}}},
		"generic, missing":              {Listed{Generic: true, Event: "e1"}, Compared{Missing, "event", pawl.ID{}}},
	} {
		c.listed.Source = up.Name
		expect(t, name, c.listed.Compare(rows), c.want)
		other := c.listed
		if other.Source = "other"; other.Task != "" {
			expect(t, name+" at another source", other.Compare(rows).Finding, ForeignTask)
		}
	}
	rows.EventKeys.Loaded(EventKeyID{"gen", "", "g1"}, EventKey{ID: EventKeyID{"gen", "", "g1"}}, true)
	expect(t, "generic", Listed{Source: "gen", Generic: true, Event: "g1"}.Compare(rows).Finding, Matched)
}

// A read of what is missing leaves a line; what has ended is not read.
func TestReadMissed(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	miss := ReadMissed{ReadNow: ReadNow{Operation: op.ID, Tenant: tenant, Up: up}, Event: "e9", Reason: "end"}
	expect(t, "due", w.do(miss).Reason, "due")
	expect(t, "due at once", w.ops[op.ID].DueAt, w.now)
	expect(t, "state", w.ops[op.ID].State, pawl.Running)
	last := w.history[len(w.history)-1]
	expect(t, "line", [4]string{last.Kind, last.Reason, last.Detail, last.Verdict.String()}, [4]string{"missed", "end", "e9", ""})
	w.event(up, op.ID, "e1", obs("task-a", pawl.Succeeded))
	lines := len(w.history)
	expect(t, "finished", w.do(miss).Reason, "finished")
	expect(t, "no line", len(w.history), lines)
	w.sound()
}
