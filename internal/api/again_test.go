package api

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// ended makes an operation directly in the ledger, whatever the API would say to
// it, and lets its upstream refuse it.
func (g *rig) ended(change func(*ledger.Submit)) string {
	g.t.Helper()
	cmd := ledger.Submit{
		Header: head(), Tenant: "acme", APIKey: g.keys["acme"].ID, Key: fmt.Sprint("direct", len(g.secrets), time.Now().UnixNano()), Window: time.Hour,
		Up: g.policy("open"), Model: "m", Input: `{"prompt":"canary-prompt"}`, Metadata: `{"order":7}`, Deadline: pawl.TimeOf(time.Now().Add(time.Hour)),
	}
	change(&cmd)
	op := g.do(cmd).(ledger.Submitted).Operation
	queue := ledger.WorkQueueID(ledger.SubmitQueue, cmd.Up.Name, cmd.Tenant)
	cmd.Up.SubmitAttempts = 5
	for _, l := range g.do(ledger.LeaseWork{Header: head(), Queue: queue, Limit: 100, Up: cmd.Up}).([]ledger.Lease) {
		if l.Operation.ID == op.ID {
			g.do(ledger.RecordCreate{Header: head(), Up: cmd.Up, Operation: op.ID, Fence: l.Fence, Outcome: ledger.CreateRefused, ErrorCode: pawl.FailInvalidRequest})
		}
	}
	return op.ID.Text(pawl.PrefixOperation)
}

func (g *rig) retry(key, id, idempotencyKey, body string) answer {
	g.t.Helper()
	return g.call(key, "POST", "/v1/operations/"+id+"/retry", body, "Idempotency-Key", idempotencyKey)
}

// A retry is a new operation of the same work, linked to the first one, with its
// own key, a deadline counted anew and the price of today (1-product A9).
func TestRetryOperation(t *testing.T) {
	g := newRig(t)
	id := g.ended(func(c *ledger.Submit) {
		c.Up, c.Model, c.CallbackURL, c.CallbackScheme, c.Owner = g.policy("studio"), "kling-2", "https://hooks.example.com/cb", "media-v2", "me"
		c.CorrelationID, c.Metered, c.Price = "order-7", true, pawl.Money{Amount: 1, Currency: "USD"}
	})
	before := time.Now()
	a := g.retry("acme", id, "r1", "").want(202, "")
	for member, want := range map[string]string{
		"retry_of": id, "upstream": "studio", "model": "kling-2", "callback_url": "https://hooks.example.com/cb", "owner": "me",
		"correlation_id": "order-7", "state": "pending",
	} {
		if got := a.text(member); got != want {
			t.Errorf("%s is %q, want %q", member, got, want)
		}
	}
	if cost := a.json["cost"].(map[string]any); cost["amount"] != "0.150000000" {
		t.Errorf("cost %v: want the price of today", cost)
	}
	if got := fmt.Sprint(a.json["metadata"]); got != "map[order:7]" {
		t.Errorf("metadata %s", got)
	}
	deadline, err := time.Parse(time.RFC3339, a.text("deadline"))
	if err != nil || deadline.Before(before.Add(2*time.Hour)) || deadline.After(time.Now().Add(2*time.Hour)) {
		t.Errorf("deadline %s, %v: want 2 h from now", a.text("deadline"), err)
	}
	if loc := a.header.Get("Location"); loc != "/v1/operations/"+a.text("id") {
		t.Errorf("Location %q", loc)
	}
	again := g.retry("acme", id, "r1", "").want(202, "")
	if again.text("id") != a.text("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same key made %s", again.text("id"))
	}
	// The input goes on byte for byte, to whoever may see it.
	shown := g.call("payloads", "GET", "/v1/operations/"+a.text("id"), "").want(200, "")
	if input, _ := json.Marshal(shown.json["input"]); string(input) != `{"prompt":"canary-prompt"}` {
		t.Errorf("input %s", input)
	}
	var kinds []string
	for _, item := range g.call("acme", "GET", "/v1/operations/"+id+"/timeline", "").want(200, "").items() {
		if item["kind"] == "retried" {
			kinds = append(kinds, fmt.Sprint(item["detail"]))
		}
	}
	if len(kinds) != 1 || kinds[0] != a.text("id") {
		t.Errorf("the first one's timeline tells of retries %v", kinds)
	}
	rows, err := g.driver.OperationFacts(t.Context(), pageOf(a.text("id")))
	if err != nil || len(rows) != 1 || len(rows[0].Endpoints) != 1 || rows[0].Endpoints[0].Scheme != "media-v2" {
		t.Errorf("the callback is signed otherwise than before: %+v, %v", rows, err)
	}

	// After its end the repeat is answered 200.
	g.created("studio", ledger.CreateRefused, "")
	g.retry("acme", id, "r1", "").want(200, "")
}

// A retry is refused as a submission is, and where there is nothing to try again.
func TestRetryRefusals(t *testing.T) {
	g := newRig(t)
	g.limitedKey("poor", ledger.KeyLimits{Budget: 1, Currency: "USD"})
	g.limitedKey("elsewhere", ledger.KeyLimits{Upstreams: "studio"})
	plain := g.ended(func(*ledger.Submit) {})
	usd := func(amount string) string { return `{"expected_cost":{"amount":"` + amount + `","currency":"USD"}}` }
	capped := func(c *ledger.Submit) {
		c.Up, c.Model, c.Metered, c.Price = g.policy("capped"), "m", true, pawl.Money{Amount: 1, Currency: "USD"}
		c.Day = ledger.DayOf(pawl.TimeOf(time.Now()))
	}
	spent := g.ended(capped)
	g.call("acme", "POST", "/v1/operations", `{"upstream":"capped","model":"m","input":{}}`, "Idempotency-Key", "fill").want(202, "")
	correlated := g.ended(func(c *ledger.Submit) { c.CorrelationID = "busy" })
	g.call("acme", "POST", "/v1/operations", `{"upstream":"open","model":"other","input":{},"correlation_id":"busy"}`, "Idempotency-Key", "busy").want(202, "")
	g.retry("sibling", plain, "taken", "").want(202, "")
	unfinished := g.submit("unfinished", openBody)
	for _, tc := range []struct {
		name, key, id, idempotencyKey, body string
		status                              int
		reason                              string
	}{
		{"no key", "acme", plain, "", "", 400, "idempotency_key_missing"},
		{"bad deadline", "acme", plain, "k", `{"deadline":"soon"}`, 400, "invalid_request"},
		{"bad cost", "acme", plain, "k", usd("-1"), 400, "invalid_request"},
		{"address", "acme", g.ended(func(c *ledger.Submit) { c.CallbackURL, c.CallbackScheme = "http://10.0.0.1/", defaultScheme }), "k", "", 400, "url_refused"},
		{"credit", "acme", plain, "k", usd("1000"), 402, "insufficient_credit"},
		{"key budget", "poor", plain, "k", usd("1"), 402, "key_budget"},
		{"spending limit", "acme", spent, "k", "", 402, "spending_limit"},
		{"forbidden upstream", "elsewhere", plain, "k", "", 403, "upstream_forbidden"},
		{"unknown account", "acme", plain, "k", `{"account":"acct_00000000000000000000000001","expected_cost":{"amount":"1","currency":"USD"}}`, 404, "not_found"},
		{"correlation", "acme", correlated, "k", "", 409, "correlation_id_in_use"},
		{"a sibling's key", "acme", plain, "taken", "", 409, "idempotency_key_in_use"},
		{"unfinished", "acme", unfinished, "k", "", 409, "not_retryable"},
		{"currency", "acme", plain, "k", `{"expected_cost":{"amount":"1","currency":"EUR"}}`, 422, "currency"},
		{"the key of a submission", "acme", plain, "unfinished", "", 422, "idempotency_mismatch"},
		{"no account", "other", g.ended(func(c *ledger.Submit) { c.Tenant, c.APIKey = "other", g.keys["other"].ID }), "k", usd("1"), 422, "no_account"},
		{"no price", "poor", plain, "k", "", 422, "price_missing"},
		{"unknown model", "acme", g.ended(func(c *ledger.Submit) { c.Up, c.Model = g.policy("studio"), "gone" }), "k", "", 422, "unknown_model"},
		{"unknown upstream", "acme", g.ended(func(c *ledger.Submit) { c.Up.Name = "gone" }), "k", "", 422, "unknown_upstream"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g.t = t
			headers := []string{"Idempotency-Key", tc.idempotencyKey}
			if tc.idempotencyKey == "" {
				headers = nil
			}
			g.call(tc.key, "POST", "/v1/operations/"+tc.id+"/retry", tc.body, headers...).want(tc.status, tc.reason)
		})
	}
	g.t = t
	// A refusal left the key free, and what was asked for anew is reserved.
	a := g.retry("acme", plain, "k", usd("2")).want(202, "")
	if cost := a.json["cost"].(map[string]any); cost["amount"] != "2.000000000" {
		t.Errorf("cost %v", cost)
	}
	// Without a price of today, what was reserved before is reserved again.
	dear := g.ended(func(c *ledger.Submit) {
		c.Metered, c.Price = true, pawl.Money{Amount: 3 * pawl.AmountScale, Currency: "USD"}
	})
	a = g.retry("acme", dear, "k2", "").want(202, "")
	if cost := a.json["cost"].(map[string]any); cost["amount"] != "3.000000000" {
		t.Errorf("cost %v", cost)
	}
}

// The limits on money and upstreams refuse a submission and leave its key free;
// they are audited where they are about money (7-rules R6).
func TestSubmissionLimits(t *testing.T) {
	g := newRig(t)
	g.limitedKey("poor", ledger.KeyLimits{Budget: 200_000_000, Currency: "USD"})
	g.limitedKey("elsewhere", ledger.KeyLimits{Upstreams: "studio"})
	submit := func(key, idempotencyKey, body string) answer {
		t.Helper()
		return g.call(key, "POST", "/v1/operations", body, "Idempotency-Key", idempotencyKey)
	}
	const studio, capped = `{"upstream":"studio","model":"kling-2","input":{}}`, `{"upstream":"capped","model":"m","input":{}}`
	submit("poor", "a", studio).want(202, "")
	submit("poor", "b", studio).want(402, "key_budget")
	submit("poor", "b", openBody).want(422, "price_missing")
	submit("elsewhere", "c", openBody).want(403, "upstream_forbidden")
	submit("elsewhere", "c", studio).want(202, "")
	submit("acme", "d", capped).want(202, "")
	submit("acme", "e", capped).want(402, "spending_limit")
	submit("acme", "e", studio).want(202, "")
	var refused []string
	for _, item := range g.call("reader", "GET", "/v1/audit", "").want(200, "").items() {
		if item["action"] == "operation.refused" {
			refused = append(refused, fmt.Sprint(item["detail"]))
		}
	}
	if len(refused) != 2 || refused[0] != "spending_limit" || refused[1] != "key_budget" {
		t.Errorf("audited refusals %v", refused)
	}
	key := g.call("admin", "GET", "/v1/keys/"+g.keys["poor"].ID.Text(pawl.PrefixKey), "").want(200, "")
	budget := key.json["limits"].(map[string]any)["budget"].(map[string]any)
	if budget["used"] != "0.150000000" || budget["amount"] != "0.200000000" {
		t.Errorf("budget %v", budget)
	}
}

// An application's own id is one job while it is unfinished (1-product A8).
func TestCorrelationID(t *testing.T) {
	g := newRig(t)
	body := func(model string) string {
		return `{"upstream":"open","model":"` + model + `","input":{},"correlation_id":"order-7"}`
	}
	submit := func(key, idempotencyKey, body string) answer {
		t.Helper()
		return g.call(key, "POST", "/v1/operations", body, "Idempotency-Key", idempotencyKey)
	}
	first := submit("acme", "a", body("m")).want(202, "")
	second := submit("acme", "b", body("m")).want(202, "")
	if second.text("id") != first.text("id") || second.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the second click made %s", second.body)
	}
	list := g.call("acme", "GET", "/v1/operations?idempotency_key=b", "").want(200, "").items()
	if len(list) != 1 || list[0]["id"] != first.text("id") {
		t.Errorf("the second key stands for %v", list)
	}
	if a := submit("acme", "c", body("other")).want(409, "correlation_id_in_use"); a.text("operation_id") != first.text("id") {
		t.Errorf("the refusal names %q", a.text("operation_id"))
	}
	if a := submit("sibling", "d", body("m")).want(409, "correlation_id_in_use"); a.text("operation_id") != "" {
		t.Error("a sibling is told the operation")
	}
	submit("other", "a", body("m")).want(202, "")
	g.created("open", ledger.CreateRefused, "")
	if a := submit("acme", "c", body("other")).want(202, ""); a.text("id") == first.text("id") {
		t.Error("the id is not free after the end")
	}
}
