package api

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/upstream"
)

// The bytes that were received are another way to a held result: also where they
// came to the address of another operation, or before theirs was known (1-product
// G4).
func TestBodiesOfHeldResults(t *testing.T) {
	set := testUpstreams(t)
	spec, _ := upstream.Preset("media-v2")
	for name, change := range map[string]func(*config.Upstream){
		"holds": func(u *config.Upstream) { u.Release = config.ReleaseHold },
		"partly": func(u *config.Upstream) {
			u.Models = map[string]config.Model{"m": {Release: config.ReleaseHold}, "plain": {}}
		},
	} {
		settings := set["open"].Settings()
		change(&settings)
		up, err := upstream.New(name, spec, settings)
		if err != nil {
			t.Fatal(err)
		}
		set[name] = up
	}
	g := newRigOf(t, set)
	event := func(source, id, task string, token pawl.ID, preset pawl.Verdict) string {
		t.Helper()
		up := set[source].Policy()
		up.Tenant = "acme"
		got := g.do(ledger.ReceiveEvent{
			Header: head(), Up: up, Token: token, Event: id, Obs: ledger.Observation{Task: task, State: pawl.Succeeded, Word: "success", Progress: -1},
			Preset: preset, Reason: preset.String(), Body: `{"result":"SECRET"}`,
		}).(ledger.Received)
		return "/v1/events/" + got.Event.Text(pawl.PrefixEvent)
	}
	shows := func(what, path string, want bool) {
		t.Helper()
		if a := g.call("full", "GET", path, "").want(200, ""); (a.json["body"] != nil) != want {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	g.submit("plain", openBody)
	a := g.created("open", ledger.CreateAccepted, "job_a")
	held := g.submit("held", strings.TrimSuffix(openBody, "}")+`,"release":"hold"}`)
	b := g.created("open", ledger.CreateAccepted, "job_b")
	if a.Held() || !b.Held() {
		t.Fatal(a, b)
	}
	misrouted := event("open", "e1", "job_b", a.ID, 0)
	shows("the held one's result at another's address", misrouted, false)
	shows("another's result at the held one's address", event("open", "e2", "job_a", b.ID, 0), false)
	shows("a body without a task at the held one's address", event("open", "e3", "", b.ID, pawl.Rejected), false)
	own := event("open", "e4", "job_a", a.ID, 0)
	shows("one that is not held", own, true)
	shows("a task that nobody knows, at an upstream that does not hold", event("open", "e5", "job_x", pawl.ID{}, 0), true)

	for _, source := range []string{"holds", "partly"} {
		shows(source+": parked", event(source, "e1", "job_x", pawl.ID{}, 0), false)
		shows(source+": malformed", event(source, "e2", "", pawl.ID{}, pawl.Rejected), false)
		shows(source+": rejected", event(source, "e3", "job_y", pawl.ID{}, pawl.Rejected), false)
	}

	// An address says where a body came to, not whose it is.
	g.submit("beside", strings.NewReplacer(`"open"`, `"partly"`, `"m"`, `"plain"`).Replace(openBody))
	c := g.created("partly", ledger.CreateAccepted, "job_c")
	shows("a body without a task, where others are held", event("partly", "e4", "", c.ID, pawl.Rejected), false)
	shows("its own, where others are held", event("partly", "e5", "job_c", c.ID, 0), true)

	// Once it is released its bytes are no secret either.
	ended := event("open", "e6", "job_b", b.ID, 0)
	shows("its own, held", ended, false)
	g.call("acme", "POST", "/v1/operations/"+held+"/release", "{}").want(200, "")
	shows("its own, released", ended, true)
	shows("misrouted, released", misrouted, true)
}
