package api

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/vault"
)

// rows are every row with a secret.
func (g *rig) rows() (keys []ledger.APIKey, endpoints []ledger.Endpoint) {
	g.t.Helper()
	wide := store.Page{Limit: 1000}
	keys, err := g.driver.APIKeys(g.t.Context(), store.APIKeyFilter{}, wide)
	if err != nil {
		g.t.Fatal(err)
	}
	if endpoints, err = g.driver.Endpoints(g.t.Context(), store.EndpointFilter{}, wide); err != nil {
		g.t.Fatal(err)
	}
	return keys, endpoints
}

// What the API shows once, the ledger holds sealed: for the row that it is in,
// and opened it is what was shown.
func TestSecretsAreSealed(t *testing.T) {
	g := newRig(t)
	drawn := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/"}`).want(201, "")
	given := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://b.example.com/","scheme":"media-v2","secret":"marigold"}`).want(201, "")
	rotated := g.call("acme", "POST", "/v1/endpoints/"+drawn.text("id")+"/rotate-secret", "").want(200, "")
	key := g.call("admin", "POST", "/v1/keys", `{"name":"x","scopes":["read"]}`).want(201, "")
	want := map[string][2]string{
		drawn.text("id"): {rotated.text("secret"), drawn.text("secret")}, given.text("id"): {"marigold", ""}, key.text("id"): {key.text("webhook_secret"), ""},
	}
	keys, endpoints := g.rows()
	held := make(map[string]ledger.SealedPair)
	owner := make(map[string]pawl.ID)
	for _, k := range keys {
		id := k.ID.Text(pawl.PrefixKey)
		held[id], owner[id] = ledger.SealedPair{Current: k.WebhookSecret, Former: k.FormerSecret}, k.ID
	}
	for _, e := range endpoints {
		id := e.ID.Text(pawl.PrefixEndpoint)
		held[id], owner[id] = ledger.SealedPair{Current: e.Secret, Former: e.FormerSecret}, e.ID
	}
	for id, secrets := range want {
		for i, s := range []ledger.Sealed{held[id].Current, held[id].Former} {
			got, err := g.vault.Open(t.Context(), owner[id], s)
			if err != nil || got != secrets[i] || secrets[i] != "" && strings.Contains(string(s), secrets[i]) {
				t.Errorf("%s: %q, %v; want %q", id, got, err, secrets[i])
			}
		}
	}
}

// A rotation to the secret that is in force changes nothing, although it would
// be sealed into another text.
func TestRotationToTheSameSecret(t *testing.T) {
	g := newRig(t)
	made := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/","scheme":"media-v2","secret":"marigold"}`).want(201, "")
	path := "/v1/endpoints/" + made.text("id")
	again := g.call("acme", "POST", path+"/rotate-secret", `{"secret":"marigold"}`).want(200, "")
	if again.header.Get("ETag") != made.header.Get("ETag") {
		t.Errorf("%s after %s", again.header.Get("ETag"), made.header.Get("ETag"))
	}
	if _, endpoints := g.rows(); endpoints[0].FormerSecret != "" {
		t.Error("the same secret is the former one too")
	}
	other := g.call("acme", "POST", path+"/rotate-secret", `{"secret":"heron"}`).want(200, "")
	if other.header.Get("ETag") == made.header.Get("ETag") {
		t.Error("another secret changes nothing")
	}
}

// A step for an admin seals everything anew; nobody else may, and a place that
// no step has given is refused.
func TestRewrapSecrets(t *testing.T) {
	g := newRig(t)
	g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/","scheme":"media-v2","secret":"marigold"}`).want(201, "")
	const path = "/v1/secrets/rewrap"
	for _, key := range []string{"acme", "reader", "payloads", "submitter"} {
		g.call(key, "POST", path, `{}`).want(403, "insufficient_scope")
	}
	g.call("admin", "POST", path, `{"after":"op_1"}`).want(400, "invalid_request")
	former, err := vault.New(t.Context(), g.former)
	if err != nil {
		t.Fatal(err)
	}
	g.do(ledger.AddWrappingKey{Header: head(), Name: former.Key(), Root: "root"})
	keys, endpoints := g.rows()
	for _, e := range endpoints {
		was, err := former.Seal(t.Context(), e.ID, "marigold")
		if err != nil {
			t.Fatal(err)
		}
		g.do(ledger.Rewrap{Header: head(), Endpoint: e.ID, Was: ledger.SealedPair{Current: e.Secret}, Now: ledger.SealedPair{Current: was}})
	}
	after, seen, resealed := "", 0, 0
	var last answer
	for steps := 0; last.json["done"] != true && steps < 9; steps++ {
		last = g.call("admin", "POST", path, `{"after":"`+after+`"}`).want(200, "")
		after, seen, resealed = last.text("next"), seen+int(last.json["seen"].(float64)), resealed+int(last.json["resealed"].(float64))
	}
	if after != "" || resealed != 1 || seen != len(keys)+1 || last.text("wrapping_key") != g.vault.Key() || len(last.json["unreadable"].([]any)) != 0 {
		t.Errorf("%d of %d rows sealed anew: %s", resealed, seen, last.body)
	}
	if retired := last.json["retired"].([]any); len(retired) != 1 || retired[0] != former.Key() {
		t.Errorf("%s", last.body)
	}
	_, endpoints = g.rows()
	if name, _, _ := endpoints[0].Secret.Parts(); name != g.vault.Key() {
		t.Errorf("sealed with %s", name)
	}
	if got, err := g.vault.Open(t.Context(), endpoints[0].ID, endpoints[0].Secret); err != nil || got != "marigold" {
		t.Errorf("%q, %v", got, err)
	}
	audit := g.call("admin", "GET", "/v1/audit", "").want(200, "")
	if !strings.Contains(string(audit.body), `"wrapping_key.retire"`) || !strings.Contains(string(audit.body), g.keys["admin"].ID.Text(pawl.PrefixKey)) {
		t.Errorf("the audit does not say who: %s", audit.body)
	}
}
