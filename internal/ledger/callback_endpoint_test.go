package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestRemoveCallback: an address is removed only if no submit has named it since
// the look for those that need it began (4-standards PR-05).
func TestRemoveCallback(t *testing.T) {
	const url = "https://app.example/done"
	w := stage(t)
	submit := func(key string) Operation {
		t.Helper()
		return w.do(Submit{
			Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: upstream(), Model: "m", Input: "{}",
			Deadline: deadline, CallbackURL: url, CallbackScheme: "standard",
		}).Value.(Submitted).Operation
	}
	remove := func(id pawl.ID, unused bool, want string) {
		t.Helper()
		expect(t, "the answer", w.do(RemoveCallback{Endpoint: id, Unused: unused}).Reason, want)
	}
	id := submit("a").Callback
	remove(hookID, false, "gone")
	remove(id, true, "used")
	remove(id, false, "looking")
	submit("b")
	remove(id, true, "used")
	expect(t, "the address", w.endpoints[id].URL, url)
	remove(id, false, "looking")
	remove(id, true, "removed")
	expect(t, "the address", w.endpoints[id].URL, "")
	expect(t, "deleted", w.endpoints[id].DeletedAt, w.now)
	remove(id, false, "gone")
	expect(t, "named anew", submit("c").Callback, id)
	expect(t, "the address", w.endpoints[id].URL, url)
	expect(t, "deleted", w.endpoints[id].DeletedAt, 0)
	w.sound()
}
