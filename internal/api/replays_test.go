package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Replays are begun once per key, of the caller's own rows, and can be paused,
// resumed and ended (1-product H6, 7-rules R52).
func TestReplaysOfMany(t *testing.T) {
	g := newRig(t)
	endpoint, _, row := g.deliverTo()
	const path = "/v1/replays"
	begin := func(key, body, idempotencyKey string) answer {
		return g.call(key, "POST", path, body, "Idempotency-Key", idempotencyKey)
	}
	g.call("acme", "POST", path, "{}").want(400, "idempotency_key_missing")
	for _, body := range []string{
		`{"what":"jobs"}`, `{"rate":1001}`, `{"filter":{"state":"pending"}}`, `{"filter":{"source":"studio"}}`, `{"what":"events","filter":{"state":"dead"}}`,
		`{"what":"events","force":true}`, `{"filter":{"from":"yesterday"}}`, `{"filter":{"endpoint":"op_1"}}`, `{"what":"events","filter":{"verdict":"odd"}}`,
	} {
		begin("acme", body, "bad").want(400, "invalid_request")
	}
	begin("reader", "{}", "k").want(403, "insufficient_scope")
	begin("other", `{"filter":{"endpoint":"`+endpoint+`"}}`, "k").want(404, "not_found")
	body := `{"filter":{"endpoint":"` + endpoint + `"},"rate":7}`
	a := begin("acme", body, "k").want(202, "")
	if a.text("state") != "counting" || a.json["rate"] != 7.0 || a.header.Get("Location") != path+"/"+a.text("id") {
		t.Errorf("%s", a.body)
	}
	if again := begin("acme", body, "k").want(202, ""); again.text("id") != a.text("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again.body)
	}
	g.refusedKeys("acme", "full", "POST", path, body, "k", "for-delivery")
	one := path + "/" + a.text("id")
	g.call("other", "GET", one, "").want(404, "not_found")
	g.call("other", "POST", one+"/pause", "").want(404, "not_found")
	// What was asked for once is not done again after somebody has asked for
	// something else (7-rules R52).
	keyed := func(word string) answer {
		return g.call("acme", "POST", one+"/"+word, "", "Idempotency-Key", "act-"+word)
	}
	keyed("pause").want(200, "")
	if got := keyed("resume").want(200, ""); got.text("state") != "counting" {
		t.Errorf("resumed: %s", got.body)
	}
	if got := keyed("pause").want(200, ""); got.text("state") != "counting" || got.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repeat of the pause: %s", got.body)
	}
	g.call("acme", "POST", one+"/cancel", "", "Idempotency-Key", "act-pause").want(422, "idempotency_mismatch")
	for _, word := range []string{"pause", "resume", "cancel"} {
		g.refusedKeys("acme", "full", "POST", one+"/"+word, "", "act-resume", "for-delivery")
	}
	for _, act := range []struct{ word, state string }{{"pause", "paused"}, {"resume", "counting"}, {"cancel", "canceled"}} {
		if got := g.call("acme", "POST", one+"/"+act.word, "").want(200, ""); got.text("state") != act.state {
			t.Errorf("%s: %s", act.word, got.body)
		}
	}
	g.call("acme", "POST", one+"/cancel", "").want(200, "")
	g.call("acme", "POST", one+"/pause", "").want(409, "replay_finished")
	g.call("acme", "POST", one+"/resume", "").want(409, "replay_finished")
	begin("acme", "{}", "all").want(202, "")
	if n := len(g.call("reader", "GET", path, "").want(200, "").items()); n != 2 {
		t.Errorf("%d replays", n)
	}
	g.call("reader", "GET", one, "").want(200, "")

	feed := g.call("acme", "POST", "/v1/endpoints", `{"kind":"feed"}`).want(201, "").text("id")
	begin("acme", `{"filter":{"endpoint":"`+feed+`"}}`, "feed").want(409, "endpoint_feed")
	g.call("acme", "POST", "/v1/endpoints/"+endpoint+"/pause", "").want(200, "")
	begin("acme", `{"filter":{"endpoint":"`+endpoint+`"}}`, "disabled").want(409, "endpoint_disabled")
	begin("acme", `{"filter":{"endpoint":"`+endpoint+`"},"force":true}`, "forced").want(202, "")
	retry := "/v1/deliveries/" + row.ID.Text("dlv") + "/retry"
	g.call("acme", "POST", retry, `{"force":1}`).want(400, "invalid_json")
	g.call("acme", "POST", retry, `{"force":true}`).want(409, "never_sent")
	counted := begin("acme", `{"dry_run":true}`, "counted").want(202, "").text("id")
	id, err := pawl.ParseID(pawl.PrefixReplay, counted)
	if err != nil {
		t.Fatal(err)
	}
	leased := g.do(ledger.LeaseReplay{Header: head(), ID: id, For: time.Minute}).(ledger.Replay)
	g.do(ledger.RestReplay{Header: head(), ID: id, Fence: leased.Lease, End: true})
	g.call("acme", "POST", path+"/"+counted+"/cancel", "").want(409, "replay_finished")
}

// An endpoint of the installation is an admin's, takes its own types alone, and is
// no tenant's business.
func TestInstallationEndpoint(t *testing.T) {
	g := newRig(t)
	const body = `{"url":"https://pager.example.com/pawl","installation":true,"types":["review.opened"]}`
	g.call("acme", "POST", "/v1/endpoints", body).want(403, "insufficient_scope")
	for _, wrong := range []string{
		`{"url":"https://p.example.com/","installation":true,"types":["operation.succeeded"]}`,
		`{"url":"https://p.example.com/","installation":true,"scheme":"media-v2"}`,
		`{"url":"https://p.example.com/","types":["review.opened"]}`,
	} {
		g.call("admin", "POST", "/v1/endpoints", wrong).want(400, "invalid_request")
	}
	a := g.call("admin", "POST", "/v1/endpoints", body).want(201, "")
	if a.json["installation"] != true || a.text("tenant") != "" {
		t.Errorf("%s", a.body)
	}
	g.call("acme", "GET", "/v1/endpoints/"+a.text("id"), "").want(404, "not_found")
	g.oneOfEach() // opens a review of acme's dead letter
	items := g.call("admin", "GET", "/v1/deliveries?endpoint="+a.text("id"), "").want(200, "").items()
	if len(items) != 1 {
		t.Fatalf("%d notifications", len(items))
	}
	if n := len(g.call("acme", "GET", "/v1/deliveries?endpoint="+a.text("id"), "").want(200, "").items()); n != 0 {
		t.Errorf("a tenant sees %d notifications", n)
	}
}

// A review says what each decision does and by when it is due, and keeps notes.
func TestReviewNotes(t *testing.T) {
	g := newRig(t)
	one := "/v1/reviews/" + g.oneOfEach()["reviews"]
	a := g.call("reader", "GET", one, "").want(200, "")
	if len(a.json["choices"].([]any)) != 2 || a.text("runbook") != "docs/reviews.md#dead_letter" || a.json["overdue"] != false || a.text("first") == "" {
		t.Errorf("%s", a.body)
	}
	note := func(text, key string) answer {
		return g.call("acme", "POST", one+"/notes", fmt.Sprintf(`{"note":%q}`, text), "Idempotency-Key", key)
	}
	note("", "k").want(400, "invalid_request")
	note("asked the receiver", "k").want(200, "")
	note("asked the receiver", "k").want(200, "")
	g.refusedKeys("acme", "full", "POST", one+"/notes", `{"note":"asked the receiver"}`, "k", "for-delivery")
	for n := 1; n < 50; n++ {
		note(fmt.Sprint("note ", n), fmt.Sprint(n)).want(200, "")
	}
	note("one more", "more").want(409, "too_many_notes")
	if notes := g.call("reader", "GET", one, "").want(200, "").json["notes"].([]any); len(notes) != 50 {
		t.Errorf("%d notes", len(notes))
	}
	if n := len(g.call("reader", "GET", "/v1/reviews?overdue=true", "").want(200, "").items()); n != 0 {
		t.Errorf("%d are overdue", n)
	}
	g.call("acme", "POST", one+"/resolve", `{"decision":"discard"}`).want(200, "")
	note("too late", "late").want(409, "already_decided")
}
