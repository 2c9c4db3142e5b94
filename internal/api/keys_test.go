package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// make makes an API key of acme and remembers its secret under a name.
func (g *rig) make(name, more string) answer {
	g.t.Helper()
	a := g.call("admin", "POST", "/v1/keys", `{"tenant":"acme","name":"`+name+`","scopes":["submit","read"]`+more+`}`).want(201, "")
	g.secrets[name] = a.text("secret")
	return a
}

func (g *rig) stored(id string) ledger.APIKey {
	g.t.Helper()
	key, err := pawl.ParseID(pawl.PrefixKey, id)
	if err != nil {
		g.t.Fatal(err)
	}
	var rows ledger.Rows
	if err := g.driver.Load(g.t.Context(), &ledger.Keys{APIKeys: []pawl.ID{key}}, &rows); err != nil {
		g.t.Fatal(err)
	}
	k, _ := rows.APIKeys.Get(key)
	return k
}

// A rotation shows a new secret once; the former one is valid as long as was
// said, and what the key has submitted stays its own (1-product A6).
func TestRotateKey(t *testing.T) {
	g := newRig(t)
	id := g.make("ci", "").text("id")
	op := g.call("ci", "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(202, "").text("id")

	a := g.call("admin", "POST", "/v1/keys/"+id+"/rotate", "").want(200, "")
	g.secrets["new"] = a.text("secret")
	if a.text("secret") == g.secrets["ci"] || a.text("id") != id || a.text("webhook_secret") != "" {
		t.Errorf("rotated: %s", a.body)
	}
	if until, err := time.Parse(time.RFC3339, a.text("former_secret_until")); err != nil || time.Until(until) < 23*time.Hour || time.Until(until) > 24*time.Hour {
		t.Errorf("the former one is valid until %s", a.text("former_secret_until"))
	}
	for _, secret := range []string{"ci", "new"} {
		if who := g.call(secret, "GET", "/v1/whoami", "").want(200, "").text("id"); who != id {
			t.Errorf("%s is %s", secret, who)
		}
		replay := g.call(secret, "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(202, "")
		if replay.text("id") != op {
			t.Errorf("%s: the key stands for %s", secret, replay.text("id"))
		}
	}
	if shown := g.call("admin", "GET", "/v1/keys/"+id, "").want(200, ""); shown.text("secret") != "" {
		t.Error("the secret is shown again")
	}

	// At once, and a third secret ends the first.
	b := g.call("admin", "POST", "/v1/keys/"+id+"/rotate", `{"overlap":"0s"}`).want(200, "")
	g.secrets["third"] = b.text("secret")
	g.call("new", "GET", "/v1/whoami", "").want(401, "unauthenticated")
	g.call("ci", "GET", "/v1/whoami", "").want(401, "unauthenticated")
	g.call("third", "GET", "/v1/whoami", "").want(200, "")
	for _, body := range []string{`{"overlap":"-1s"}`, `{"overlap":"721h"}`, `{"until":"2020-01-01T00:00:00Z"}`, `{"overlap":"1h","until":"2099-01-01T00:00:00Z"}`} {
		g.call("admin", "POST", "/v1/keys/"+id+"/rotate", body).want(400, "invalid_request")
	}
	g.call("admin", "DELETE", "/v1/keys/"+id, "").want(204, "")
	g.call("third", "GET", "/v1/whoami", "").want(401, "unauthenticated")
	g.call("admin", "POST", "/v1/keys/"+id+"/rotate", "").want(409, "key_ended")
}

// The webhook secrets overlap too, with dates, and are sealed (7-rules R50).
func TestRotateKeyWebhookSecret(t *testing.T) {
	g := newRig(t)
	made := g.make("ci", "")
	id := made.text("id")
	until := time.Now().Add(90 * time.Minute).UTC().Truncate(time.Second)
	a := g.call("admin", "POST", "/v1/keys/"+id+"/rotate-webhook-secret", `{"until":"`+until.Format(time.RFC3339)+`"}`).want(200, "")
	if a.text("webhook_secret") == "" || a.text("webhook_secret") == made.text("webhook_secret") || a.text("secret") != "" {
		t.Errorf("rotated: %s", a.body)
	}
	k := g.stored(id)
	if k.FormerUntil != pawl.TimeOf(until) {
		t.Errorf("the former one signs until %s, want %s", k.FormerUntil, until)
	}
	for sealed, want := range map[ledger.Sealed]string{k.WebhookSecret: a.text("webhook_secret"), k.FormerSecret: made.text("webhook_secret")} {
		if got, err := g.vault.Open(t.Context(), k.ID, sealed); err != nil || got != want || string(sealed) == want {
			t.Errorf("kept as %q: %q, %v", sealed, got, err)
		}
	}
	g.call("admin", "POST", "/v1/keys/"+id+"/rotate-webhook-secret", `{"overlap":"soon"}`).want(400, "invalid_request")
	g.call("ci", "POST", "/v1/keys/"+id+"/rotate-webhook-secret", "").want(403, "insufficient_scope")
}

// Limits, name and expiry can be changed under the ETag that was read; what is
// left out stays, and null takes the expiry away.
func TestChangeKey(t *testing.T) {
	g := newRig(t)
	made := g.make("ci", `,"expires_at":"2099-01-01T00:00:00Z","limits":{"rate":{"per_second":2.5},"upstreams":["studio","open"]}}`[:len(`,"expires_at":"2099-01-01T00:00:00Z","limits":{"rate":{"per_second":2.5},"upstreams":["studio","open"]}`)])
	id := made.text("id")
	limits := fmt.Sprint(made.json["limits"])
	if limits != "map[rate:map[burst:3 per_second:2.5] upstreams:[studio open]]" {
		t.Errorf("limits %s", limits)
	}
	path := "/v1/keys/" + id
	etag := g.call("admin", "GET", path, "").want(200, "").header.Get("ETag")
	g.call("admin", "PATCH", path, `{}`).want(428, "if_match_missing")
	a := g.call("admin", "PATCH", path, `{"name":"deploy","limits":{"budget":{"amount":"5","currency":"USD"}}}`, "If-Match", etag).want(200, "")
	if a.text("name") != "deploy" || a.text("expires_at") != "2099-01-01T00:00:00.000000Z" ||
		fmt.Sprint(a.json["limits"]) != "map[budget:map[amount:5.000000000 currency:USD used:0.000000000]]" {
		t.Errorf("changed: %s", a.body)
	}
	g.call("admin", "PATCH", path, `{"name":"x"}`, "If-Match", etag).want(412, "version")
	etag = a.header.Get("ETag")
	b := g.call("admin", "PATCH", path, `{"expires_at":null,"limits":{}}`, "If-Match", etag).want(200, "")
	if b.text("expires_at") != "" || len(b.json["limits"].(map[string]any)) != 0 || b.text("name") != "deploy" {
		t.Errorf("cleared: %s", b.body)
	}
	for _, body := range []string{
		`{"name":"a\u0000"}`, `{"expires_at":"2020-01-01T00:00:00Z"}`, `{"expires_at":"soon"}`, `{"limits":{"rate":{"per_second":0}}}`,
		`{"limits":{"rate":{"per_second":10001}}}`, `{"limits":{"rate":{"per_second":1,"burst":-1}}}`, `{"limits":{"budget":{"amount":"-1","currency":"USD"}}}`,
		`{"limits":{"budget":{"amount":"1","currency":"usd"}}}`, `{"limits":{"upstreams":["gone"]}}`, `{"limits":{"upstreams":["open","open"]}}`,
	} {
		g.call("admin", "PATCH", path, body, "If-Match", "*").want(400, "invalid_request")
	}
	g.call("admin", "PATCH", path, `{"expires_at":7}`, "If-Match", "*").want(400, "invalid_json")
	g.call("admin", "DELETE", path, "").want(204, "")
	g.call("admin", "PATCH", path, `{"name":"x"}`, "If-Match", "*").want(409, "key_ended")
	var acts []string
	for _, item := range g.call("reader", "GET", "/v1/audit", "").want(200, "").items() {
		if item["subject"] == id {
			acts = append(acts, item["action"].(string))
		}
	}
	if fmt.Sprint(acts) != "[key.revoke key.change key.change key.create]" {
		t.Errorf("audited %v", acts)
	}
	// Each filter alone and all together find those lines and no others.
	all := g.call("reader", "GET", "/v1/audit", "").items()
	admin := g.keys["admin"].ID.Text(pawl.PrefixKey)
	if n := len(g.call("reader", "GET", "/v1/audit?subject="+id, "").want(200, "").items()); n != 4 {
		t.Errorf("%d of the subject", n)
	}
	at, _ := all[0]["at"].(string)
	for query, want := range map[string]int{
		"action=key.change": 3 /* one of the rig */, "action=key.change&subject=" + id: 2, "subject=" + id + "&action=key.create": 1, "actor=" + admin + "&subject=" + id: 4, "actor=key_nobody": 0,
		"until=2020-01-01T00:00:00Z": 0, "from=2020-01-01T00:00:00Z": len(all), "from=" + at: 1, "until=" + at: len(all) - 1,
		"actor=" + admin + "&subject=" + id + "&action=key.revoke&from=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z": 1,
	} {
		if n := len(g.call("reader", "GET", "/v1/audit?"+query, "").want(200, "").items()); n != want {
			t.Errorf("%s: %d lines, want %d", query, n, want)
		}
	}
	g.call("reader", "GET", "/v1/audit?from=yesterday", "").want(400, "invalid_query")
}

// A key ends when it expires.
func TestKeyExpires(t *testing.T) {
	g := newRig(t)
	at := time.Now().Add(3 * time.Second)
	a := g.make("short", `,"expires_at":"`+at.UTC().Format(time.RFC3339Nano)+`"`)
	g.call("short", "GET", "/v1/whoami", "").want(200, "")
	time.Sleep(time.Until(at) + 10*time.Millisecond)
	g.call("short", "GET", "/v1/whoami", "").want(401, "unauthenticated")
	g.call("admin", "POST", "/v1/keys/"+a.text("id")+"/rotate", "").want(409, "key_ended")
}

// The last use is shown, written beside the requests and once a minute.
func TestLastUse(t *testing.T) {
	g := newRig(t)
	a := g.make("ci", "")
	if a.text("last_used_at") != "" {
		t.Errorf("used before its first use: %s", a.body)
	}
	before := pawl.TimeOf(time.Now())
	for range 20 {
		g.call("ci", "GET", "/v1/whoami", "").want(200, "")
	}
	var used pawl.Time
	for began := time.Now(); used == 0; time.Sleep(time.Millisecond) {
		if used = g.stored(a.text("id")).LastUsedAt; time.Since(began) > 10*time.Second {
			t.Fatal("the use was not noted")
		}
	}
	if used < before {
		t.Errorf("used at %s, before %s", used, before)
	}
	if shown := g.call("admin", "GET", "/v1/keys/"+a.text("id"), "").want(200, ""); shown.text("last_used_at") != used.String() {
		t.Errorf("shown as %s, want %s", shown.text("last_used_at"), used)
	}
	time.Sleep(50 * time.Millisecond)
	if again := g.stored(a.text("id")).LastUsedAt; again != used {
		t.Errorf("noted again within a minute: %s and %s", used, again)
	}
	if g.stored(a.text("id")).Version != 1 {
		t.Error("a use counts as a change")
	}
	rows, err := g.driver.Audits(t.Context(), store.AuditFilter{}, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Action == "key.use" {
			t.Error("a use is audited")
		}
	}
}

// Uses that fail to be noted for want of a slot are noted by a later call, and
// what is remembered is bounded.
func TestKeyUsesAreBounded(t *testing.T) {
	u, now := newKeyUses(), time.Now()
	taken := 0
	for n := range 2 * notesAtOnce {
		if u.take(ledger.APIKey{ID: pawl.NewID(1, uint64(n))}, now) {
			taken++
		}
	}
	if taken != notesAtOnce {
		t.Errorf("%d notes at once, want %d", taken, notesAtOnce)
	}
	last := ledger.APIKey{ID: pawl.NewID(1, 2*notesAtOnce-1)}
	<-u.slots
	if !u.take(last, now) {
		t.Error("a use without a slot is never noted")
	}
	<-u.slots
	if u.take(last, now.Add(59*time.Second)) || !u.take(last, now.Add(time.Minute)) {
		t.Error("want one note a minute")
	}
	known := ledger.APIKey{ID: pawl.NewID(1, 99), LastUsedAt: pawl.TimeOf(now.Add(-30 * time.Second))}
	if u.take(known, now) {
		t.Error("noted half a minute after another node's note")
	}
	for n := range keyLimit + 10 {
		<-u.slots
		u.take(ledger.APIKey{ID: pawl.NewID(2, uint64(n))}, now)
	}
	if len(u.noted) > keyLimit {
		t.Errorf("%d keys are remembered", len(u.noted))
	}
}

// Only a key with a limit is held back, for as long as it is told, and a refused
// call does not count (RL-03).
func TestKeyRate(t *testing.T) {
	rates, now := newKeyRates(), time.Now()
	free := ledger.APIKey{ID: pawl.NewID(1, 1)}
	slow := ledger.APIKey{ID: pawl.NewID(1, 2), Limits: ledger.KeyLimits{Rate: 2000, Burst: 3}}
	for range 1000 {
		if rates.take(free, now) != 0 {
			t.Fatal("a key without a limit is held back")
		}
	}
	for range 3 {
		if wait := rates.take(slow, now); wait != 0 {
			t.Errorf("held back %s within its burst", wait)
		}
	}
	for range 100 {
		if wait := rates.take(slow, now); wait != 500*time.Millisecond {
			t.Errorf("held back %s, want 500 ms", wait)
		}
	}
	if wait := rates.take(slow, now.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("held back %s after the time that it was told", wait)
	}
	slow.Limits.Rate = 10_000
	if wait := rates.take(slow, now.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("held back %s with a new limit", wait)
	}
	for n := range keyLimit + 10 {
		rates.take(ledger.APIKey{ID: pawl.NewID(2, uint64(n)), Limits: slow.Limits}, now)
	}
	if len(rates.of) > keyLimit {
		t.Errorf("%d keys are remembered", len(rates.of))
	}
}

func TestRateLimitedCall(t *testing.T) {
	g := newRig(t)
	g.call("slow", "GET", "/v1/whoami", "").want(200, "")
	a := g.call("slow", "GET", "/v1/whoami", "").want(429, "rate_limited")
	if after := a.header.Get("Retry-After"); after != "1000" && after != "999" {
		t.Errorf("Retry-After %q at one call in 1000 s", after)
	}
	g.call("acme", "GET", "/v1/whoami", "").want(200, "")
}
