package cli

import (
	"net/http"
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		stderr string
	}{
		{
			"problem", http.StatusForbidden,
			`{"title":"The API key lacks a scope","status":403,"detail":"ask for submit","reason":"insufficient_scope","instance":"urn:pawl:request:r1"}`,
			"pawl: insufficient_scope: ask for submit (request r1)\n",
		},
		{
			"mismatch names the operation", http.StatusUnprocessableEntity,
			`{"title":"T","status":422,"detail":"another request","reason":"idempotency_mismatch","operation_id":"op_7"}`,
			"pawl: idempotency_mismatch: another request, operation op_7\n",
		},
		{"no detail", http.StatusNotFound, `{"title":"Nothing is here","status":404,"reason":"not_found"}`, "pawl: not_found: Nothing is here\n"},
		{"not ours", http.StatusBadGateway, `<html>`, "pawl: status 502: the answer is not one of Pawl's API; check the address of the server (the API is at listen, not at admin_listen)"},
		{"hostile", http.StatusNotFound, `{"title":"x","detail":"a\u001b[2Jb\u202e","reason":"r"}`, `pawl: r: a\x1b[2Jb\u202e` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, tt.status, tt.body) }))
			w.run("op", "get", "op_1").want(t, ExitFailed, "", tt.stderr)
		})
	}
}

// Why something is done is told with every call, as it is, and is one line.
func TestWhyIsTold(t *testing.T) {
	w := newWorld(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Pawl-Reason"); got != "falsch – zurück" {
			t.Errorf("%s %s: told %q", r.Method, r.URL.Path, got)
		}
		reply(w, http.StatusOK, `{"id":"op_1"}`)
	}))
	for _, command := range []string{"op cancel op_1", "upstream resume studio", "key revoke key_1"} {
		w.run(append(strings.Fields(command), "--why", "falsch – zurück")...).want(t, ExitDone, "", "")
	}
	w.run("op", "cancel", "op_1", "--why", "two\nlines").want(t, ExitUsage, "", "--why is one line")
}

// A redirect would take the key elsewhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := fake(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	w := newWorld(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	}))
	w.run("op", "get", "op_1").want(t, ExitFailed, "", "status 307")
}

func TestCutAnswerIsUnreachable(t *testing.T) {
	w := newWorld(t, fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		reply(w, http.StatusOK, `{"id":`)
	}))
	w.run("op", "get", "op_1").want(t, ExitUnreachable, "", "did not answer")
}

func TestPatience(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	w := newWorld(t, fake(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	w.run("op", "get", "op_1", "--patience", "50ms").want(t, ExitUnreachable, "", "did not answer")
}

// Each command makes one call: method, path with query, body.
func TestCalls(t *testing.T) {
	for _, tt := range []struct{ args, call, body string }{
		{"op get op_1", "GET /v1/operations/op_1", ""},
		{"op get a/../b", "GET /v1/operations/a%2F..%2Fb", ""},
		{"op list --state running --upstream u --task t --correlation c --metadata k=v=w --page-size 7 --page-token p --tenant x", "GET /v1/operations?correlation_id=c&metadata.k=v%3Dw&page_size=7&page_token=p&state=running&task_id=t&tenant=x&upstream=u", ""},
		{"op timeline op_1", "GET /v1/operations/op_1/timeline", ""},
		{"op retry op_1", "POST /v1/operations/op_1/retry", "{}"},
		{"op retry op_1 --deadline 2030-01-02T15:04:05Z --expected-cost 0.12:USD --account acct_1", "POST /v1/operations/op_1/retry",
			`{"deadline":"2030-01-02T15:04:05.000000Z","expected_cost":{"amount":"0.120000000","currency":"USD"},"account":"acct_1"}`},
		{"op submit --upstream u --model m --input {} --dry-run", "POST /v1/operations?dry_run=true", `{"input":{},"upstream":"u","model":"m"}`},
		{"op cancel op_1", "POST /v1/operations/op_1/cancel", ""},
		{"op resolve op_1 succeeded --from failed --charge 0.5:USD --note n", "POST /v1/operations/op_1/resolve", `{"decision":"succeeded","from":"failed","charge":{"amount":"0.500000000","currency":"USD"},"note":"n"}`},
		{"op reconcile op_1", "POST /v1/operations/op_1/reconcile", ""},
		{"op resolve op_1 created --task t --note n", "POST /v1/operations/op_1/resolve", `{"decision":"created","task_id":"t","note":"n"}`},
		{"op resolve op_1 not_created", "POST /v1/operations/op_1/resolve", `{"decision":"not_created"}`},
		{"endpoint create https://a.example/x --types a,b --scheme media-v2", "POST /v1/endpoints", `{"url":"https://a.example/x","types":["a","b"],"scheme":"media-v2"}`},
		{"endpoint create https://a.example/?a=1&b=2", "POST /v1/endpoints", `{"url":"https://a.example/?a=1&b=2"}`},
		{"endpoint create https://a.example/x --tenant acme", "POST /v1/endpoints?tenant=acme", `{"url":"https://a.example/x"}`},
		{"endpoint list", "GET /v1/endpoints?page_size=50", ""},
		{"endpoint get ep_1", "GET /v1/endpoints/ep_1", ""},
		{"endpoint list --kind callback", "GET /v1/endpoints?kind=callback&page_size=50", ""},
		{"endpoint delete ep_1", "DELETE /v1/endpoints/ep_1", ""},
		{"endpoint rotate-secret ep_1", "POST /v1/endpoints/ep_1/rotate-secret", ""},
		{"endpoint rotate-secret ep_1 --overlap 48h", "POST /v1/endpoints/ep_1/rotate-secret", `{"overlap":"48h"}`},
		{"endpoint rotate-secret ep_1 --until 2030-01-02T15:04:05Z --scheme standard-webhooks-v1a", "POST /v1/endpoints/ep_1/rotate-secret", `{"until":"2030-01-02T15:04:05Z","scheme":"standard-webhooks-v1a"}`},
		{"endpoint enable ep_1", "POST /v1/endpoints/ep_1/enable", ""},
		{"endpoint pause ep_1", "POST /v1/endpoints/ep_1/pause", ""},
		{"delivery list --state dead --endpoint ep_1", "GET /v1/deliveries?endpoint=ep_1&page_size=50&state=dead", ""},
		{"delivery get dlv_1", "GET /v1/deliveries/dlv_1", ""},
		{"delivery attempts dlv_1", "GET /v1/deliveries/dlv_1/attempts", ""},
		{"delivery retry dlv_1", "POST /v1/deliveries/dlv_1/retry", "{}"},
		{"account create EUR --tenant acme", "POST /v1/accounts?tenant=acme", `{"currency":"EUR"}`},
		{"account list", "GET /v1/accounts?page_size=50", ""},
		{"account entries acct_1 --page-size 5", "GET /v1/accounts/acct_1/entries?page_size=5", ""},
		{"account credit acct_1 --note n -- -2.5:EUR", "POST /v1/accounts/acct_1/credit", `{"amount":"-2.500000000","currency":"EUR","note":"n"}`},
		{"key create ci --tenant t --scopes read", "POST /v1/keys", `{"tenant":"t","name":"ci","scopes":["read"]}`},
		{"key create ci", "POST /v1/keys", `{"name":"ci","scopes":["submit","read"]}`},
		{"key create p --rate 2.5 --burst 9 --budget 50:USD --upstream a --upstream b --expires 2030-01-02T15:04:05Z", "POST /v1/keys",
			`{"name":"p","scopes":["submit","read"],"expires_at":"2030-01-02T15:04:05.000000Z","limits":{"rate":{"per_second":2.5,"burst":9},"budget":{"amount":"50.000000000","currency":"USD"},"upstreams":["a","b"]}}`},
		{"key get key_1", "GET /v1/keys/key_1", ""},
		{"key rotate key_1", "POST /v1/keys/key_1/rotate", "{}"},
		{"key rotate key_1 --overlap 0s", "POST /v1/keys/key_1/rotate", `{"overlap":"0s"}`},
		{"key rotate-webhook-secret key_1 --overlap 48h", "POST /v1/keys/key_1/rotate-webhook-secret", `{"overlap":"48h"}`},
		{"key list", "GET /v1/keys?page_size=50", ""},
		{"key revoke key_1", "DELETE /v1/keys/key_1", ""},
		{"review list", "GET /v1/reviews?open=true&page_size=50", ""},
		{"review list --no-open --reason orphan", "GET /v1/reviews?page_size=50&reason=orphan", ""},
		{"review show rev_1", "GET /v1/reviews/rev_1", ""},
		{"review assign rev_1 bea", "POST /v1/reviews/rev_1/assign", `{"owner":"bea"}`},
		{"review resolve rev_1 attach --to op_1", "POST /v1/reviews/rev_1/resolve", `{"decision":"attach","operation_id":"op_1"}`},
		{"review resolve rev_1 retry --note n", "POST /v1/reviews/rev_1/resolve", `{"decision":"retry","note":"n"}`},
		{"event list --direction inbound --source s --verdict orphan --type t --task k --operation op_1", "GET /v1/events?direction=inbound&operation=op_1&page_size=50&source=s&task_id=k&type=t&verdict=orphan", ""},
		{"event show evt_1", "GET /v1/events/evt_1", ""},
		{"nodes", "GET /v1/nodes", ""},
		{"status", "GET /v1/status", ""},
		{"tenant list", "GET /v1/tenants", ""},
		{"tenant create acme --credit 100:USD", "POST /v1/tenants", `{"name":"acme","account":{"currency":"USD","credit":"100.000000000"}}`},
		{"upstream list", "GET /v1/upstreams", ""},
		{"upstream pause studio --reason why", "POST /v1/upstreams/studio/pause", `{"reason":"why"}`},
		{"upstream pause a/b", "POST /v1/upstreams/a%2Fb/pause", "{}"},
		{"upstream resume studio", "POST /v1/upstreams/studio/resume", ""},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var call, body string
			w := newWorld(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := readAll(r.Body)
				call, body = r.Method+" "+r.RequestURI, string(text)
				if r.Header.Get("Authorization") != "Bearer "+testKey {
					t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
				}
				reply(w, http.StatusOK, `{"items":[{"id":"x_1"}],"id":"x_1"}`)
			}))
			w.run(append(strings.Fields(tt.args), "--json")...)
			if strings.Contains(tt.args, " -- ") {
				w.run(strings.Fields(tt.args)...)
			}
			if call != tt.call || body != tt.body {
				t.Errorf("call %s %s\nwant %s %s", call, body, tt.call, tt.body)
			}
		})
	}
}

// An update is for the version that was read.
func TestEndpointUpdate(t *testing.T) {
	var match, body string
	w := newWorld(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"4"`)
		if r.Method == http.MethodPatch {
			text, _ := readAll(r.Body)
			match, body = r.Header.Get("If-Match"), string(text)
		}
		reply(w, http.StatusOK, `{"id":"ep_1","version":5}`)
	}))
	w.run("endpoint", "update", "ep_1", "--owner", "", "--policy", `{"attempts":3}`).want(t, ExitDone, "version  5", "")
	if match != `"4"` || body != `{"owner":"","policy":{"attempts":3}}` {
		t.Errorf("If-Match %s, body %s", match, body)
	}
}

func TestJSONIsPassedOn(t *testing.T) {
	const body = `{"items":[ {"id":"op_1","n":1.0} ],"next_page_token":"p2"}`
	w := newWorld(t, fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, body+"\n") }))
	r := w.run("op", "list", "--json")
	if r.status != ExitDone || r.stdout != body+"\n" {
		t.Errorf("status %d, stdout %q", r.status, r.stdout)
	}
	w.run("op", "list").want(t, ExitDone, "op_1", "--page-token p2")
}
