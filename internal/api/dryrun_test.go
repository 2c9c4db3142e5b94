package api

import (
	"fmt"
	"testing"
	"time"
)

// A dry run judges everything and records nothing (LR-13).
func TestDryRun(t *testing.T) {
	g := newRig(t)
	const path, studio = "/v1/operations?dry_run=true", `{"upstream":"studio","model":"kling-2","input":{},"correlation_id":"c"}`
	before := g.everything()
	a := g.call("acme", "POST", path, studio, "Idempotency-Key", "k").want(200, "")
	for member, want := range map[string]any{
		"dry_run": true, "outcome": "create", "idempotency_key": "new", "upstream": "studio", "model": "kling-2", "metered": true,
		"available_after": "99.850000000", "adapter": "media-v2/1",
	} {
		if a.json[member] != want {
			t.Errorf("%s is %v, want %v", member, a.json[member], want)
		}
	}
	if price := fmt.Sprint(a.json["price"]); price != "map[amount:0.150000000 currency:USD]" {
		t.Errorf("price %s", price)
	}
	account := g.call("acme", "GET", "/v1/accounts", "").want(200, "").items()[0]
	if a.text("account_id") != account["id"] || account["reserved"] != "0.000000000" {
		t.Errorf("%s would pay; the account is %v", a.text("account_id"), account)
	}
	if at, err := time.Parse(time.RFC3339, a.text("deadline")); err != nil || time.Until(at) < 119*time.Minute || time.Until(at) > 2*time.Hour {
		t.Errorf("deadline %s", a.text("deadline"))
	}
	unmetered := g.call("acme", "POST", path, openBody, "Idempotency-Key", "k").want(200, "")
	if unmetered.json["metered"] != false || unmetered.json["price"] != nil || unmetered.json["available_after"] != nil {
		t.Errorf("unmetered: %s", unmetered.body)
	}

	for _, tc := range []struct {
		body, key string
		status    int
		reason    string
	}{
		{`{"upstream":"gone","model":"m","input":{}}`, "k", 422, "unknown_upstream"},
		{`{"upstream":"open","model":"m","input":{},"expected_cost":{"amount":"101","currency":"USD"}}`, "k", 402, "insufficient_credit"},
		{`{"upstream":"open","model":"m","input":{},"callback_url":"http://10.0.0.1/"}`, "k", 400, "url_refused"},
		{`{"upstream":"open"}`, "k", 400, "invalid_request"},
		{openBody, "", 400, "idempotency_key_missing"},
	} {
		headers := []string{"Idempotency-Key", tc.key}
		if tc.key == "" {
			headers = nil
		}
		g.call("acme", "POST", path, tc.body, headers...).want(tc.status, tc.reason)
	}
	g.call("reader", "POST", path, openBody, "Idempotency-Key", "k").want(403, "insufficient_scope")
	g.call("acme", "POST", "/v1/operations?dry_run=perhaps", openBody, "Idempotency-Key", "k").want(400, "invalid_query")
	if after := g.everything(); after != before {
		t.Errorf("something was recorded:\n%s\nbecame\n%s", before, after)
	}

	// What is done already would be replayed.
	id := g.call("acme", "POST", "/v1/operations?dry_run=false", studio, "Idempotency-Key", "k").want(202, "").text("id")
	for key, known := range map[string]string{"k": "known", "other": "new"} {
		a := g.call("acme", "POST", path, studio, "Idempotency-Key", key).want(200, "")
		if a.text("outcome") != "replay" || a.text("operation_id") != id || a.text("idempotency_key") != known {
			t.Errorf("under %s: %s", key, a.body)
		}
	}
	g.call("acme", "POST", path, openBody, "Idempotency-Key", "k").want(422, "idempotency_mismatch")
	g.call("sibling", "POST", path, studio, "Idempotency-Key", "k").want(409, "idempotency_key_in_use")
	late := `{"upstream":"studio","model":"kling-2","input":{},"correlation_id":"c","deadline":"2020-01-01T00:00:00Z"}`
	if a := g.call("acme", "POST", path, late, "Idempotency-Key", "k").want(200, ""); a.text("operation_id") != id {
		t.Errorf("a repeat whose deadline has passed: %s", a.body)
	}
}

// everything is what lists show of acme's ledger, but for its API keys' last use.
func (g *rig) everything() (text string) {
	g.t.Helper()
	for _, list := range []string{"operations", "events", "deliveries", "endpoints", "reviews", "accounts", "audit"} {
		text += string(g.call("reader", "GET", "/v1/"+list, "").want(200, "").body)
	}
	return text
}
