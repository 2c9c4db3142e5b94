package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
)

// surface is the API over a ledger in memory, for one key that may everything.
type surface struct {
	handler Handler
	driver  *memory.Store
	secret  string
	calls   int
}

func newSurface(f *testing.F) *surface {
	f.Helper()
	s := &surface{driver: memory.New(memory.Options{})}
	committer := store.NewCommitter(s.driver, store.Options{})
	f.Cleanup(func() { _ = committer.Close() })
	sealer, err := vault.New(f.Context(), vault.URL(vault.NewKey()))
	if err != nil {
		f.Fatal(err)
	}
	if s.secret, err = NewKeySecret(); err != nil {
		f.Fatal(err)
	}
	for _, cmd := range []ledger.Command{
		ledger.EnsureTenant{Header: head(), Name: "acme", Currency: "USD", Opening: 1 << 50},
		ledger.CreateKey{Header: head(), Key: ledger.APIKey{ID: store.NewID(), Tenant: "acme", Name: "k", Hash: hashKey(s.secret), Scopes: ledger.ScopeAdmin | allScopes}},
	} {
		if out, err := committer.Do(f.Context(), cmd); err != nil || out.Err != nil {
			f.Fatal(err, out.Err)
		}
	}
	spec, ok := upstream.Preset("media-v2")
	settings := config.DefaultUpstream()
	settings.BaseURL, settings.Owner = "https://studio.example.com", "media team"
	price := pawl.Amount(1)
	settings.Models = map[string]config.Model{"m": {Price: &price}}
	up, err := upstream.New("studio", spec, settings)
	policy, err2 := egress.NewPolicy()
	if !ok || err != nil || err2 != nil {
		f.Fatal(ok, err, err2)
	}
	s.handler = New(Options{
		Store: committer, Reader: s.driver, Upstreams: upstream.Set{"studio": up}, Egress: policy, Vault: sealer,
		Rewrap: &vault.Rewrapper{Vault: sealer, Commands: committer, Reader: s.driver},
	})
	return s
}

// do sends a request. Whatever was sent, the answer is JSON, says what is wrong
// in a problem with a reason, and is none of a fault.
func (s *surface) do(t *testing.T, method, target string, at *url.URL, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL, r.RequestURI = at, ""
	r.Header.Set("Authorization", "Bearer "+s.secret)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code >= 500 {
		t.Fatalf("%s %q with %q: HTTP %d %s", method, target, body, w.Code, w.Body)
	}
	if w.Code == http.StatusNoContent {
		return w
	}
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil && w.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%s %q: HTTP %d, %v in %q", method, target, w.Code, err, w.Body)
	}
	if reason, _ := v["reason"].(string); w.Code >= 400 && (reason == "" || w.Header().Get("Content-Type") != "application/problem+json") {
		t.Fatalf("%s %q: HTTP %d without a reason: %q", method, target, w.Code, w.Body)
	}
	return w
}

// FuzzQuery: whatever is asked of whichever list or row.
func FuzzQuery(f *testing.F) {
	s := newSurface(f)
	for _, seed := range []string{
		"/v1/operations?state=running&page_size=0&metadata.a=b", "/v1/operations?page_token=AAAA", "/v1/operations?page_size=-1", "/v1/operations/op_01h455vb4pex5vsknk084sn02q",
		"/v1/events?direction=inbound&operation=op_x", "/v1/deliveries?state=dead&endpoint=ep_01h455vb4pex5vsknk084sn02q", "/v1/reviews?open=true&reason=late_success",
		"/v1/endpoints?kind=webhook", "/v1/accounts?tenant=nobody", "/v1/keys", "/v1/tenants", "/v1/nodes", "/v1/status", "/v1/upstreams", "/v1/audit?page_size=300", "/v1/operations?tenant=%zz",
		"/v1/operations?wait=1", "/v1/operations?state=running;x=1", "/v1/openapi.json", "/v1/nothing", "/v1/../v1/operations", "/v1/operations?metadata.=1", "/v1/operations//timeline",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		at, err := url.ParseRequestURI(target)
		// A waiting request would wait.
		if err != nil || !strings.HasPrefix(at.Path, "/v1/") || strings.Contains(at.RawQuery, "wait") {
			return
		}
		w := s.do(t, http.MethodGet, target, at, "")
		if location := w.Header().Get("Location"); location != "" {
			t.Fatalf("%q is led to %q", target, location)
		}
	})
}

// FuzzSubmit: an operation is what was asked for, its input byte for byte, and
// the same request again is the same operation.
func FuzzSubmit(f *testing.F) {
	s := newSurface(f)
	for _, seed := range []string{
		`{"upstream":"studio","model":"m","input":{"prompt":"x"}}`, `{"upstream":"studio","model":"m","input":{ "n" : 1.0e0 },"metadata":{"a":1,"b":true}}`,
		`{"upstream":"studio","model":"m","input":{},"expected_cost":{"amount":"0.5","currency":"USD"},"deadline":"2099-01-01T00:00:00Z"}`,
		`{"upstream":"studio","model":"m","input":{},"callback_url":"https://127.0.0.1/","owner":"o","correlation_id":"c"}`, `{"upstream":"nobody","model":"m","input":{}}`,
		`{"input":{"a":1,"a":2}}`, `[]`, ``, `{"upstream":"studio","model":"m","input":[]}`, `{"upstream":"studio","model":"m","input":{},"deadline":"1970-01-01T00:00:00Z"}`,
	} {
		f.Add(seed, "application/json", "key")
	}
	f.Add(`{"upstream":"studio","model":"m","input":{}}`, "text/plain", "key")
	f.Add(`{"upstream":"studio","model":"m","input":{}}`, "application/json; charset=latin1", `"quoted \" key"`)
	f.Add(`{"upstream":"studio","model":"m","input":{}}`, "", "")
	at := &url.URL{Path: "/v1/operations"}
	f.Fuzz(func(t *testing.T, body, contentType, key string) {
		s.calls++
		key = fmt.Sprint(key, s.calls)
		w := s.do(t, http.MethodPost, at.Path, at, body, "Content-Type", contentType, "Idempotency-Key", key)
		if w.Code >= 400 {
			return
		}
		var op struct{ ID string }
		var asked struct{ Input json.RawMessage }
		if err := json.Unmarshal(w.Body.Bytes(), &op); err != nil || json.Unmarshal([]byte(body), &asked) != nil {
			t.Fatal(err, w.Body)
		}
		id, err := pawl.ParseID(pawl.PrefixOperation, op.ID)
		if err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		payload := ledger.PayloadID{Owner: id, Kind: ledger.InputPayload}
		kept, err := s.driver.Payloads(t.Context(), payload)
		if err != nil || !bytes.Equal(asked.Input, []byte(kept[payload])) {
			t.Fatalf("%q is kept as %q, %v", asked.Input, kept[payload], err)
		}
		again := s.do(t, http.MethodPost, at.Path, at, body, "Content-Type", contentType, "Idempotency-Key", key)
		var same struct{ ID string }
		if err := json.Unmarshal(again.Body.Bytes(), &same); err != nil || same.ID != op.ID {
			t.Fatalf("%q again: HTTP %d %s", body, again.Code, again.Body)
		}
	})
}

// FuzzBodies: whatever is sent to whatever takes a body, but for submissions.
func FuzzBodies(f *testing.F) {
	s := newSurface(f)
	paths := []string{
		"/v1/endpoints", "/v1/keys", "/v1/tenants", "/v1/events", "/v1/accounts/acct_01h455vb4pex5vsknk084sn02q/credit", "/v1/keys/key_01h455vb4pex5vsknk084sn02q/rotate",
		"/v1/operations/op_01h455vb4pex5vsknk084sn02q/resolve", "/v1/reviews/rev_01h455vb4pex5vsknk084sn02q/resolve", "/v1/upstreams/studio/pause", "/v1/events/reprocess",
	}
	for i, good := range []string{
		`{"url":"https://example.com/hook","scheme":"standard-webhooks","policy":{"attempts":3,"schedule":["0s","5s"]},"types":["operation.succeeded"]}`,
		`{"name":"x","scopes":["read"],"expires_at":"2099-01-01T00:00:00Z","limits":{"rate":{"per_second":0.001},"budget":{"amount":"1.5","currency":"USD"}}}`,
		`{"name":"new","currency":"USD"}`, `{"type":"order.paid","id":"a","data":{"b":1}}`, `{"amount":"1.5","note":"x"}`, `{"overlap":"1h"}`, `{"decision":"x","reason":"y"}`,
		`{"decision":"x","reason":"y"}`, `{"reason":"x"}`, `{"source":"studio"}`,
	} {
		f.Add(uint(i), good)
		f.Add(uint(i), `{}`)
	}
	f.Fuzz(func(t *testing.T, path uint, body string) {
		s.calls++
		at := &url.URL{Path: paths[path%uint(len(paths))]}
		s.do(t, http.MethodPost, at.Path, at, body, "Idempotency-Key", fmt.Sprint(s.calls))
	})
}

// FuzzIfNoneMatch: a tag is matched only where the list has it, weakly or not, or
// a star.
func FuzzIfNoneMatch(f *testing.F) {
	for _, line := range []string{`"7"`, `W/"7"`, `"6", "7"`, `*`, `7`, `"7`, `""`, `w/"7"`, `"a,"7"`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if matchesWeakly([]string{line}, `"7"`) && !strings.Contains(line, `"7"`) && !strings.Contains(line, "*") {
			t.Errorf("%q matches", line)
		}
		if matchesWeakly([]string{line}, `"7"`) && !matchesWeakly([]string{`"1"`, line}, `"7"`) {
			t.Errorf("%q matches alone and not in a list", line)
		}
	})
}

// FuzzScopes: scopes are their words, each once and none beside.
func FuzzScopes(f *testing.F) {
	for _, seed := range []string{"submit,read", "read,read", "", "admin", "Admin", "submit,,read", "all"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		words := strings.Split(list, ",")
		scopes, ok := parseScopes(words)
		if !ok {
			if scopes != 0 {
				t.Errorf("%q gives %v", words, scopes)
			}
			return
		}
		back := wordsOf(scopes)
		slices.Sort(back)
		slices.Sort(words)
		if !slices.Equal(back, words) {
			t.Errorf("%q gives %q", words, back)
		}
	})
}
