package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// A provider that mixes up two addresses shows nothing of one tenant to another:
// an event that names the task of another tenant's operation is of neither.
func TestEventOfAnotherTenantsTask(t *testing.T) {
	const elsewhere = "elsewhere"
	w := stage(t)
	w.do(EnsureTenant{Name: elsewhere, Currency: "USD"})
	ours := w.running(upstream(), "ours", 0)
	sibling := w.running(upstream(), "sibling", 0)
	theirs := w.do(Submit{
		Tenant: elsewhere, APIKey: apiKey, Key: "theirs", Fingerprint: digest("theirs"), Window: 24 * time.Hour, Up: upstream(), Model: "m",
		Input: "{}", Deadline: w.now.Add(time.Hour),
	}).Value.(Submitted).Operation
	theirs = w.create(upstream(), theirs.ID, CreateAccepted, "task-theirs")
	for _, c := range []struct {
		what, task string
		token      Operation
		preset     pawl.Verdict
		tenant     string
	}{
		{"theirs at our address", "task-theirs", ours, 0, ""},
		{"theirs at our address, of an unknown type", "task-theirs", ours, pawl.UnknownType, ""},
		{"theirs at our address, unusable", "task-theirs", ours, pawl.Rejected, ""},
		{"ours at theirs", ours.Task, theirs, 0, ""},
		{"a sibling's", sibling.Task, ours, 0, tenant},
		{"a task that nobody knows", "task-new", ours, 0, tenant},
		{"our own, unusable", ours.Task, ours, pawl.Rejected, tenant},
		{"without a task", "", ours, pawl.Rejected, tenant},
	} {
		got := w.do(ReceiveEvent{Up: upstream(), Token: c.token.ID, Event: c.what, Obs: obs(c.task, pawl.Succeeded), Preset: c.preset, Reason: "x", Type: "t"}).Value.(Received)
		e := w.events[got.Event]
		expect(t, c.what+": tenant", e.Tenant, c.tenant)
		expect(t, c.what+": operation", e.Operation, c.token.ID)
	}
	for _, r := range w.reviews {
		if r.Reason == pawl.ReviewUnknownType {
			expect(t, "the review of the type", r.Tenant, "")
		}
	}
	w.sound()
}
