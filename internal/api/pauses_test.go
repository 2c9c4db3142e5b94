package api

import (
	"fmt"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

func (g *rig) upstream(key, name string) map[string]any {
	g.t.Helper()
	for _, item := range g.call(key, "GET", "/v1/upstreams", "").want(200, "").items() {
		if item["name"] == name {
			return item
		}
	}
	g.t.Fatalf("no upstream %s", name)
	return nil
}

// An upstream is paused by hand for everybody, shows why, and is resumed by hand
// (1-product I7).
func TestPauseUpstream(t *testing.T) {
	g := newRig(t)
	g.submit("k", openBody)
	a := g.call("admin", "POST", "/v1/upstreams/open/pause", `{"reason":"quota talks"}`).want(200, "")
	for _, paused := range []any{a.json["paused"], g.upstream("acme", "open")["paused"], g.upstream("other", "open")["paused"]} {
		if fmt.Sprint(paused) != "[map[reason:quota talks work:submit]]" {
			t.Errorf("paused %v", paused)
		}
	}
	if paused := g.upstream("acme", "studio")["paused"]; fmt.Sprint(paused) != "[]" {
		t.Errorf("another upstream: %v", paused)
	}
	lease := ledger.LeaseWork{Header: head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, "open", "acme"), Limit: 1, Up: g.policy("open")}
	if n := len(g.do(lease).([]ledger.Lease)); n != 0 {
		t.Errorf("%d creates while paused", n)
	}
	again := g.call("admin", "POST", "/v1/upstreams/open/pause", "").want(200, "")
	if fmt.Sprint(again.json["paused"]) != "[map[reason:by_hand work:submit]]" {
		t.Errorf("without a reason: %v", again.json["paused"])
	}
	b := g.call("admin", "POST", "/v1/upstreams/open/resume", "").want(200, "")
	if fmt.Sprint(b.json["paused"]) != "[]" {
		t.Errorf("resumed: %v", b.json["paused"])
	}
	g.call("admin", "POST", "/v1/upstreams/open/resume", "").want(200, "")
	g.lease("open")
	g.call("admin", "POST", "/v1/upstreams/gone/pause", "").want(404, "not_found")
	g.call("admin", "POST", "/v1/upstreams/gone/resume", "").want(404, "not_found")
	g.call("admin", "POST", "/v1/upstreams/private/pause?tenant=acme", "").want(404, "not_found")
	g.call("admin", "POST", "/v1/upstreams/open/pause", `{"reason":"a\u0007"}`).want(400, "invalid_request")
	var acts []string
	for _, item := range g.call("admin", "GET", "/v1/audit", "").want(200, "").items() {
		if item["subject"] == "open" {
			acts = append(acts, fmt.Sprint(item["action"], " ", item["detail"], " ", item["actor"]))
		}
	}
	by := g.keys["admin"].ID.Text(pawl.PrefixKey)
	if want := fmt.Sprintf("[upstream.resume <nil> %s upstream.pause by_hand %s upstream.pause quota talks %s]", by, by, by); fmt.Sprint(acts) != want {
		t.Errorf("audited %v\nwant %s", acts, want)
	}
}

// Resuming by hand also ends the pauses after refused credentials, of whatever
// tenant's reads.
func TestResumeAfterRefusedCredentials(t *testing.T) {
	g := newRig(t)
	g.submit("k", openBody)
	g.created("open", ledger.CreateAccepted, "job_1")
	reads := ledger.WorkQueueID(ledger.ReadQueue, "open", "acme")
	g.submit("k2", openBody)
	g.created("open", ledger.CreateUnauthorized, "")
	op := g.do(ledger.ReadNow{Header: head(), Operation: g.operationOf("k"), Up: g.policy("open")}).(ledger.Operation)
	l := g.do(ledger.LeaseWork{Header: head(), Queue: reads, Limit: 1, Up: g.policy("open")}).([]ledger.Lease)[0]
	g.do(ledger.ObserveStatus{Header: head(), Up: g.policy("open"), Operation: op.ID, Fence: l.Fence, Outcome: ledger.ReadUnauthorized})
	paused := g.upstream("acme", "open")["paused"].([]any)
	if len(paused) != 2 {
		t.Fatalf("paused %v", paused)
	}
	for i, work := range []string{"submit", "read"} {
		p := paused[i].(map[string]any)
		if p["work"] != work || p["reason"] != "upstream_unauthorized" || p["until"] == nil {
			t.Errorf("paused %v", p)
		}
	}
	if a := g.call("admin", "POST", "/v1/upstreams/open/resume", "").want(200, ""); fmt.Sprint(a.json["paused"]) != "[]" {
		t.Errorf("resumed: %v", a.json["paused"])
	}
	if still := g.upstream("acme", "open")["paused"]; fmt.Sprint(still) != "[]" {
		t.Errorf("the tenant sees %v", still)
	}
}

func (g *rig) operationOf(key string) pawl.ID {
	g.t.Helper()
	items := g.call("acme", "GET", "/v1/operations?idempotency_key="+key, "").want(200, "").items()
	id, err := pawl.ParseID(pawl.PrefixOperation, items[0]["id"].(string))
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

// Limits, models and prices are shown (2-contracts §1).
func TestUpstreamsShowTheirLimits(t *testing.T) {
	g := newRig(t)
	limits := g.upstream("acme", "capped")["limits"].(map[string]any)
	want := "map[concurrency:16 reads_per_second:10 spending:map[amount:0.200000000 currency:USD per:day] submit_attempts:10]"
	if got := fmt.Sprint(limits); got != want {
		t.Errorf("limits %s, want %s", got, want)
	}
	if models := fmt.Sprint(g.upstream("acme", "capped")["models"]); models != "[map[name:m price:0.150000000]]" {
		t.Errorf("models %s", models)
	}
}
