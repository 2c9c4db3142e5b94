package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// account is acme's.
func (s *story) account() string {
	s.t.Helper()
	rows, err := s.driver.Accounts(s.t.Context(), "acme", store.Page{Limit: 10})
	if err != nil || len(rows) != 1 {
		s.t.Fatal(rows, err)
	}
	return rows[0].ID.Text(pawl.PrefixAccount)
}

func (s *story) keyID(name string) string { return s.keys[name].ID.Text(pawl.PrefixKey) }

// events are those of an operation.
func (s *story) events(operation string) []string {
	s.t.Helper()
	op, err := pawl.ParseID(pawl.PrefixOperation, operation)
	if err != nil {
		s.t.Fatal(err)
	}
	rows, err := s.driver.Events(s.t.Context(), store.EventFilter{Operation: op}, store.Page{Limit: 50})
	if err != nil || len(rows) < 2 {
		s.t.Fatal(rows, err)
	}
	var ids []string
	for _, e := range rows {
		ids = append(ids, e.ID.Text(pawl.PrefixEvent))
	}
	return ids
}

// webhook is an endpoint of acme's that was made through the page, and the secret
// that was shown.
func (s *story) webhook(v visitor) (id, secret string) {
	s.t.Helper()
	p := v.post("/console/endpoints", url.Values{
		"url": {"https://hooks.example.com/two"}, "types": {"operation.succeeded, operation.failed"}, "owner": {"web team"}, "reason": {"second receiver"},
	}).want(200).shows("never again")
	return secretShown(s.t, p, `ep_[0-9a-z]+`), secretShown(s.t, p, `whsec_[A-Za-z0-9+/=]+`)
}

func secretShown(t *testing.T, p page, pattern string) string {
	t.Helper()
	// The template escapes + in text.
	found := regexp.MustCompile(pattern).FindString(strings.ReplaceAll(p.body, "&#43;", "+"))
	if found == "" {
		t.Fatalf("%s shows nothing like %s: %s", p.what, pattern, p.body)
	}
	return found
}

// The bytes of an event are shown on a page of their own, to those who may, and
// each reading is in the audit (4-standards PR-07).
func TestReceivedBytesAreReadUnderAudit(t *testing.T) {
	s := newStory(t)
	page := "/console/events/" + s.event
	read := func() int {
		rows, err := s.driver.Audits(t.Context(), store.AuditFilter{Action: "event.body"}, store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	s.as("reader").get(page + "/raw").want(404)
	admin := s.as("admin")
	admin.get(page).want(200).shows("orphan", `href="`+page+`/raw"`).hides(`{&#34;a&#34;:1}`)
	if n := read(); n != 0 {
		t.Fatalf("looking at the page read %d bodies", n)
	}
	inert(t, admin.get(page+"/raw").want(200).shows(`{&#34;a&#34;:1}`, "7 bytes"))
	if n := read(); n != 1 {
		t.Errorf("reading a body is %d lines of the audit", n)
	}
}

// A secret is shown by the answer to the form that made it, and by no page after
// that; it is kept by no browser (PR-09).
func TestSecretsAreShownOnce(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	id, secret := s.webhook(v)
	page := "/console/endpoints/" + id
	v.get(page).want(200).shows("web team", "https://hooks.example.com/two").hides(secret)
	p := v.post(page+"/rotate", url.Values{"overlap": {"1h"}, "reason": {"yearly"}}).want(200).shows("goes on until")
	if cache := p.header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("Cache-Control of a secret: %q", cache)
	}
	second := secretShown(t, p, `whsec_[A-Za-z0-9+/=]+`)
	if second == secret {
		t.Error("the secret stayed")
	}
	v.get(page).want(200).shows("signs beside the present one until").hides(secret, second)
	if rows, err := s.driver.Audits(t.Context(), store.AuditFilter{Subject: id}, store.Page{Limit: 10}); err != nil || len(rows) != 2 {
		t.Errorf("%d lines of the audit, want those of making and rotating: %v", len(rows), err)
	}
	if strings.Contains(s.log.String(), secret) || strings.Contains(s.log.String(), second) {
		t.Error("a secret is in the log")
	}
	v.post(page+"/rotate", url.Values{"once": {"again"}, "overlap": {"forever"}, "reason": {"x"}}).want(400).shows("overlap").hides("whsec_")
	v.post(page+"/rotate", url.Values{"overlap": {"1h"}}).want(400).shows("A reason is missing")
}

// A key that is made on the page logs in, and is shut out when it is revoked.
func TestKeysAreMadeRotatedAndRevoked(t *testing.T) {
	s := newStory(t)
	admin := s.as("admin")
	p := admin.post("/console/keys", url.Values{"tenant": {"acme"}, "name": {"night shift"}, "scope": {"read", "operate"}, "reason": {"on call"}}).want(200)
	s.secrets["night"] = secretShown(t, p, `pawl_sk_[A-Za-z0-9_-]+`)
	id := secretShown(t, p, `key_[0-9a-z]+`)
	night := s.as("night")
	night.get("/console/keys/"+id).want(200).shows("night shift", "read, operate").hides(s.secrets["night"], "/revoke")
	night.post("/console/keys/"+id+"/revoke", url.Values{"reason": {"x"}}).want(403)
	night.post("/console/keys", url.Values{"once": {"n"}, "scope": {"admin"}, "reason": {"x"}}).want(403)
	admin.post("/console/keys", url.Values{"once": {"again"}, "reason": {"x"}}).want(400).shows("scopes")
	p = admin.post("/console/keys/"+id+"/rotate", url.Values{"overlap": {"0s"}, "reason": {"leaked"}}).want(200)
	former := s.secrets["night"]
	s.secrets["night"] = secretShown(t, p, `pawl_sk_[A-Za-z0-9_-]+`)
	if former == s.secrets["night"] {
		t.Error("the secret stayed")
	}
	if to := night.get("/console").want(303).header.Get("Location"); !strings.HasPrefix(to, "/console/login") {
		t.Errorf("the session of the former secret goes to %q", to)
	}
	night = s.as("night")
	admin.post("/console/keys/"+id+"/revoke", url.Values{"reason": {"left"}}).want(303)
	night.get("/console").want(303)
	admin.get("/console/keys/" + id).want(200).shows("revoked")
	admin.get("/console/audit?subject="+id).want(200).shows("key.revoke", "left")
}

// The journal is added up line by line, and what disagrees is said.
func TestJournalIsChecked(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	page := "/console/accounts/" + s.account()
	v.get(page).want(200).shows("Journal").hides("add up")
	v.get(page + "?check").want(200).shows("entries add up to what the account says")
	v.post(page+"/credit", url.Values{"amount": {"5"}, "reason": {"x"}}).want(403)
	admin := s.as("admin")
	admin.post(page+"/credit", url.Values{"amount": {"5.25"}, "currency": {"USD"}, "once": {"c1"}, "reason": {"goodwill"}}).want(303)
	v.get(page+"?check").want(200).shows("5.25", "goodwill", "entries add up to what the account says")
	visit := &visit{Console: s.console, session: &session{}}
	visit.session.visitor, _, _ = s.api.Enter(t.Context(), s.secrets["admin"], "console.login")
	visit.r, _ = http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	got, err := visit.addUp(accountItem{ID: s.account(), Available: "1.000000000", Reserved: "0.000000000"})
	if err != nil || got.Agrees || !got.Whole {
		t.Errorf("an account that says something else: %+v %v", got, err)
	}
}

// What an endpoint's page does, from a pause to its end.
func TestEndpointIsRunFromItsPage(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	page := "/console/endpoints/" + s.endpoint
	v.get(page).want(200).shows("1 dead", "hooks.example.com").hides(hostile)
	v.post(page+"/pause", url.Values{"reason": {"their outage"}}).want(303)
	v.get(page).want(200).shows("paused", "Send to it again")
	v.post(page+"/test", url.Values{"reason": {"x"}, "once": {"t0"}}).want(409)
	v.post(page+"/enable", url.Values{"reason": {"they are back"}}).want(303)
	v.post(page+"/test", url.Values{"reason": {"x"}, "once": {"t1"}}).want(303)
	v.get(page).want(200).shows("enabled", "pending")
	v.get("/console/deliveries?state=dead").want(200).shows("Dead letters", s.delivery)
	v.post("/console/deliveries/"+s.delivery+"/retry", url.Values{"reason": {"they are back"}, "once": {"r1"}, "back": {"/console/deliveries?state=dead"}}).want(303)
	v.get("/console/deliveries/" + s.delivery).want(200).shows("Attempts")
	v.post(page+"/delete", url.Values{"reason": {"moved"}}).want(303)
	v.get(page).want(404)
	rows, err := s.driver.Audits(t.Context(), store.AuditFilter{Subject: s.endpoint}, store.Page{Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"their outage": "endpoint.pause", "they are back": "endpoint.enable", "moved": "endpoint.delete"}
	for _, row := range rows {
		for reason, action := range want {
			if row.Action == action && strings.Contains(row.Detail, reason) && row.Actor == s.keyID("operator") {
				delete(want, reason)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("the audit lacks %v: %+v", want, rows)
	}
}

// Reprocessing from the page judges a stored event anew, beside its first verdict.
func TestEventIsReprocessedFromItsPage(t *testing.T) {
	s := newStory(t)
	page := "/console/events/" + s.event
	s.as("operator").post(page+"/reprocess", url.Values{"reason": {"x"}}).want(404) // Nobody's orphan is the installation's.
	s.as("admin").post(page+"/reprocess", url.Values{"reason": {"x"}}).want(303)
	s.as("admin").get(page).want(200).shows("Judged anew", "orphan")
}

// An id in a page's address that belongs to another tenant is an unknown one
// (CO-05); so is what a list is filtered by.
func TestMorePagesOfAnotherTenant(t *testing.T) {
	s := newStory(t)
	v := s.as("other")
	for _, path := range []string{
		"/console/events/" + s.event, "/console/events/" + s.event + "/raw", "/console/deliveries/" + s.delivery, "/console/endpoints/" + s.endpoint,
		"/console/accounts/" + s.account(), "/console/accounts/" + s.account() + "?check", "/console/keys/" + s.keyID("operator"),
	} {
		v.get(path).want(404).hides("hooks.example.com", "kling-2")
	}
	for _, path := range []string{
		"/console/events", "/console/deliveries", "/console/endpoints", "/console/accounts", "/console/keys", "/console/audit",
		"/console/deliveries?endpoint=" + s.endpoint, "/console/audit?subject=" + s.endpoint, "/console/audit?actor=" + s.keyID("operator"),
		"/console/events?operation=" + s.succeeded,
	} {
		v.get(path).want(200).hides(s.delivery+`"`, "hooks.example.com", s.account(), "order-1", `title="`+s.keyID("operator"))
	}
	for path := range rotations {
		path = strings.NewReplacer("endpoints/{id}", "endpoints/"+s.endpoint, "keys/{id}", "keys/"+s.keyID("operator")).Replace(path)
		if p := v.post(path, url.Values{"reason": {"x"}}); p.status != 404 && p.status != 403 {
			t.Errorf("%s: %d", path, p.status)
		}
	}
}
