package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// hostile is what strangers may write: it must be seen and do nothing. Callers of
// the API may write the markup, and no control characters.
const (
	markup  = "\"'><img src=x onerror=\"window.owned=1\"></script><script>window.owned=1</script>{{.}}=1+1"
	hostile = markup + "\x1b[2J\u202egnp.exe"
	// echoed is a receiver's: what we sent would be left out of its answer.
	echoed = "<p><img src=x onerror=\"window.owned=2\"></p></script>\x1b[2J=2+2\u202efdp.exe"
)

// hostileProvider accepts every create and is called back for by the test.
type hostileProvider struct {
	mu       sync.Mutex
	callback string
}

func (p *hostileProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost {
		var in struct {
			Callback string `json:"callback_url"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &in)
		p.mu.Lock()
		p.callback = in.Callback
		p.mu.Unlock()
		_, _ = io.WriteString(w, `{"task":"task-1","state":"queued"}`)
		return
	}
	_, _ = io.WriteString(w, `{"task":"task-1","state":"processing"}`)
}

func (p *hostileProvider) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callback
}

// Text of callbacks, rejected and accepted, of a receiver's answer and of whoever
// submits is text on every page: nothing runs, nothing is loaded, and nothing
// turns round what stands beside it (field case O-135).
func TestO135HostileTextIsInert(t *testing.T) {
	t.Parallel()
	secret, err := webhook.NewSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := new(hostileProvider)
	provider := httptest.NewServer(p)
	t.Cleanup(provider.Close)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, echoed)
	}))
	t.Cleanup(receiver.Close)
	w := newTown(t, fmt.Sprintf(`egress: {allow: [127.0.0.0/8]}
upstreams:
  studio: {preset: sim, base_url: %q, key: provider-key, webhook_keys: [%q], deadline: 1h, owner: %q, read: {first: 1h, max: 1h}}
`, provider.URL, secret, "<img src=x onerror=window.owned=1>"))
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ep := w.call(http.MethodPost, "/v1/endpoints", text(map[string]any{"url": receiver.URL, "description": markup, "owner": markup, "types": []string{"operation.failed"}}))["id"].(string)
	op := w.call(http.MethodPost, "/v1/operations", text(map[string]any{
		"upstream": "studio", "model": "<img src=x onerror=window.owned=1>", "input": map[string]string{"prompt": hostile}, "metadata": map[string]string{"a": hostile}, "correlation_id": "<script>window.owned=1</script>",
	}), "Idempotency-Key", "k")["id"].(string)
	w.until("it is not created", func() bool { return w.call(http.MethodGet, "/v1/operations/"+op, "")["state"] == "running" })
	callback := func(id string, body map[string]any) {
		w.Helper()
		body["id"], body["type"], body["task"] = id, "task.updated", "task-1"
		w.signed(p.address(), secret, id, []byte(text(body)))
	}
	callback("evt_rejected", map[string]any{"state": hostile, "progress": 1})
	callback("evt_accepted", map[string]any{"state": "failed", "error": map[string]string{"code": hostile, "message": hostile}})
	w.until("it did not fail", func() bool { return w.call(http.MethodGet, "/v1/operations/"+op, "")["state"] == "failed" })
	w.until("no letter is dead", func() bool {
		items, _ := w.call(http.MethodGet, "/v1/deliveries?state=dead", "")["items"].([]any)
		return len(items) == 1
	})
	review := w.first("/v1/reviews?reason=dead_letter")["id"].(string)
	w.call(http.MethodPost, "/v1/reviews/"+review+"/notes", text(map[string]string{"note": markup}))
	delivery := w.first("/v1/deliveries?state=dead")["id"].(string)
	tab := w.operator()
	for _, path := range []string{
		"/console", "/console/operations", "/console/operations/" + op, "/console/operations/" + op + "/input", "/console/events", "/console/endpoints", "/console/endpoints/" + ep, "/console/deliveries",
		"/console/deliveries/" + delivery, "/console/reviews", "/console/reviews/" + review, "/console/upstreams", "/console/audit", "/console/replays?endpoint=" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.owned%3D1%3E",
		"/console/search?q=%3Cscript%3Ewindow.owned%3D1%3C%2Fscript%3E",
	} {
		w.inert(tab, path)
	}
	events, _ := w.call(http.MethodGet, "/v1/events?direction=inbound", "")["items"].([]any)
	if len(events) != 2 {
		t.Fatalf("%d events are kept, want the rejected and the accepted one", len(events))
	}
	for _, e := range events {
		id := e.(map[string]any)["id"].(string)
		w.inert(tab, "/console/events/"+id)
		w.inert(tab, "/console/events/"+id+"/raw")
		if shown := tab.Text("#main"); !strings.Contains(shown, "onerror") {
			t.Errorf("the bytes are not shown as text: %s", shown)
		}
	}
	tab.Open("/console/deliveries/" + delivery)
	if shown := tab.Text("#attempts"); !strings.Contains(shown, `<img src=x onerror="window.owned=2">`) {
		t.Errorf("the receiver's answer is not shown as text: %s", shown)
	}
	if isolated := Ask[string](tab, "getComputedStyle(document.querySelector('#attempts td code')).unicodeBidi"); isolated != "isolate" {
		t.Errorf("what turns text round reaches what stands beside it: unicode-bidi is %s", isolated)
	}
}

// signed sends a callback as a provider does.
func (w *town) signed(address, secret, id string, body []byte) {
	w.Helper()
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		w.Fatal(err)
	}
	h, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: body}, key)
	if err != nil {
		w.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, address, strings.NewReader(string(body)))
	if err != nil {
		w.Fatal(err)
	}
	r.Header = h
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	_ = answer.Body.Close()
}

// inert opens a page and holds that nothing of a stranger's became part of it. A
// script that was kept from running, and a picture that was asked for, are
// complaints of the browser besides.
func (w *town) inert(tab *Tab, path string) {
	w.Helper()
	tab.Open(path)
	if Ask[bool](tab, "window.owned !== undefined") {
		w.Errorf("%s: a stranger's script ran", path)
	}
	if n := tab.Count("#main script, #main img, #main iframe, #main [onerror], #main style"); n != 0 {
		w.Errorf("%s: %d elements of a stranger's", path, n)
	}
	policy := Ask[string](tab, "fetch(location.href).then(r => r.headers.get('content-security-policy'))")
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "img-src 'self'", "form-action 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, rule) {
			w.Errorf("%s: the policy %q lacks %s", path, policy, rule)
		}
	}
}
