package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Why something is done goes into the audit, beside what it was; a reason that
// cannot be read stops it.
func TestReasonsGoIntoTheAudit(t *testing.T) {
	g := newRig(t)
	detail := func(subject string) string {
		t.Helper()
		rows, err := g.driver.Audits(t.Context(), store.AuditFilter{Subject: subject}, store.Page{Limit: 1})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return rows[0].Action + " " + rows[0].Detail
	}
	id := g.submit("k", openBody)
	path := "/v1/operations/" + id
	g.call("acme", "POST", path+"/cancel", "", "Pawl-Reason", "one", "Pawl-Reason", "two").want(400, "invalid_request")
	g.call("acme", "POST", path+"/cancel", "", "Pawl-Reason", "\xff").want(400, "invalid_request")
	g.call("reader", "GET", path, "", "Pawl-Reason", "\xff").want(200, "") // Where nothing is changed nothing needs a reason.
	g.call("acme", "POST", path+"/cancel", "", "Pawl-Reason", "falsches Bild – zurück").want(202, "")
	if got := detail(id); got != "operation.cancel falsches Bild – zurück" {
		t.Errorf("audit %q", got)
	}
	g.call("admin", "POST", "/v1/upstreams/studio/pause", `{"reason":"down"}`, "Pawl-Reason", "down").want(200, "")
	if got := detail("studio"); got != "upstream.pause down" {
		t.Errorf("a reason that is said twice is told twice: %q", got)
	}
	g.call("admin", "POST", "/v1/upstreams/studio/resume", "", "Pawl-Reason", "ticket 7").want(200, "")
	if got := detail("studio"); got != "upstream.resume ticket 7" {
		t.Errorf("audit %q", got)
	}
}

// A read that somebody asks for, and what a credit says itself of why, are in the
// audit too. The note of a decision is not: it goes with the operation's erasure.
func TestNotesAndReadsAreInTheAudit(t *testing.T) {
	g := newRig(t)
	detail := func(action string) string {
		t.Helper()
		rows, err := g.driver.Audits(t.Context(), store.AuditFilter{Action: action}, store.Page{Limit: 2})
		if err != nil || len(rows) != 1 {
			t.Fatal(action, rows, err)
		}
		return rows[0].Detail
	}
	id := g.submit("k", openBody)
	g.created("open", ledger.CreateAccepted, "job_1")
	for range 2 { // The second finds it due and changes nothing.
		g.call("acme", "POST", "/v1/operations/"+id+"/reconcile", "", "Pawl-Reason", "the customer asks").want(202, "")
	}
	if got := detail("operation.read"); got != "the customer asks" {
		t.Errorf("read: %q", got)
	}
	lost := g.submit("k2", openBody)
	g.created("open", ledger.CreateUnknown, "")
	g.call("acme", "POST", "/v1/operations/"+lost+"/resolve", `{"decision":"failed","note":"Ann has not got it"}`, "Pawl-Reason", "ticket 6").want(200, "")
	if got := detail("operation.resolve"); got != "failed: ticket 6" {
		t.Errorf("resolve: %q", got)
	}
	g.call("acme", "POST", "/v1/operations/"+lost+"/resolve", `{"decision":"succeeded","from":"failed","note":"it was there"}`, "Pawl-Reason", "ticket 7").want(200, "")
	if got := detail("operation.correct"); got != "failed to succeeded: by_operator: ticket 7" {
		t.Errorf("correct: %q", got)
	}
	account := g.call("admin", "POST", "/v1/accounts?tenant=acme", `{"currency":"EUR"}`).want(201, "").text("id")
	g.call("admin", "POST", "/v1/accounts/"+account+"/credit", `{"amount":"1","note":"invoice 8"}`, "Idempotency-Key", "c").want(200, "")
	if got := detail("account.credit"); got != "1.000000000 EUR: invoice 8" {
		t.Errorf("credit: %q", got)
	}
}

// A visitor may what its API key may, uses payloads only where it says so, and
// ends with the secret that it showed.
func TestVisitors(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	if _, ok, err := g.h.Enter(t.Context(), "pawl_sk_"+strings.Repeat("x", 43), "console.login"); ok || err != nil {
		t.Errorf("a guess enters: %v", err)
	}
	v, ok, err := g.h.Enter(t.Context(), g.secrets["payloads"], "console.login")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	get := func(path string, payloads bool) (int, string) {
		r := httptest.NewRequestWithContext(As(t.Context(), v, payloads), http.MethodGet, path, nil)
		w := httptest.NewRecorder()
		g.h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, payloads := range []bool{false, true} {
		if status, body := get("/v1/operations/"+id, payloads); status != 200 || strings.Contains(body, "canary-prompt") != payloads {
			t.Errorf("with payloads %v: %d %s", payloads, status, body)
		}
	}
	if status, _ := get("/v1/tenants", true); status != 403 {
		t.Errorf("a call for admin keys answers %d", status)
	}
	p, ok, err := g.h.Person(t.Context(), v)
	if want := (Person{g.keys["payloads"].ID.Text(pawl.PrefixKey), "payloads", "acme", ledger.ScopeRead | ledger.ScopePayloads}); !ok || err != nil || p != want {
		t.Errorf("person %+v, %v %v", p, ok, err)
	}
	g.call("admin", "DELETE", "/v1/keys/"+p.Key, "").want(204, "")
	if status, _ := get("/v1/operations/"+id, false); status != 401 {
		t.Errorf("after the end of the key: %d", status)
	}
	if _, ok, err := g.h.Person(t.Context(), v); ok || err != nil {
		t.Errorf("a person of an ended key: %v", err)
	}
}
