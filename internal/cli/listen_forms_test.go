package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// sourceNode is a running node with a generic source "shop", whose secret signs as
// Standard Webhooks do.
func sourceNode(t *testing.T) (api string, send func(id, contentType, body string)) {
	t.Helper()
	dir := t.TempDir()
	scheme, _ := webhook.Lookup("standard-webhooks")
	secret, err := scheme.NewSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := scheme.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	settings := "sources:\n  shop: {scheme: standard-webhooks, secrets: [\"" + secret + "\"], tenant: default, content_types: [application/json, text/plain], headers: [X-Shop]}\n"
	if err := os.WriteFile(filepath.Join(dir, "pawl.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	node := &child{T: t, name: "pawl", dir: dir, env: []string{"PAWL_ADMIN_KEY=" + testKey}}
	t.Cleanup(node.kill)
	node.args = []string{"serve", "--config", "pawl.yaml", "--data", "data", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}
	node.start()
	line, err := node.out.ReadBytes('\n')
	var ready struct{ API string }
	if err != nil || json.Unmarshal(line, &ready) != nil {
		t.Fatalf("not ready: %s %v", line, err)
	}
	return ready.API, func(id, contentType, body string) {
		t.Helper()
		header, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: []byte(body)}, key)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, ready.API+"/hooks/shop", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("X-Shop", "north")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusAccepted {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
	}
}

// listened is a request that a listener has posted.
type listened struct {
	header http.Header
	body   string
}

// listenTo runs a listener until so many requests have come.
func (w *world) listenTo(t *testing.T, path string, n int, args ...string) (got []listened, url string) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	w.ctx = ctx
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, listened{r.Header, string(body)}) // One at a time.
		if len(got) == n {
			time.AfterFunc(100*time.Millisecond, end)
		}
	}))
	r := w.run(append([]string{"listen", "--after", "0", "--forward", srv.URL + path}, args...)...)
	srv.Close()
	if r.status != 0 || len(got) != n {
		t.Fatalf("%d of %d, status %d: %s", len(got), n, r.status, r.stderr)
	}
	return got, srv.URL + path
}

// What a listener posts is what would be sent: in the endpoint's own form, with its
// headers, and with a signature in its scheme over that and its own address.
func TestListenForms(t *testing.T) {
	api, send := sourceNode(t)
	w := newWorld(t, api)
	w.now = time.Now()
	endpoint := func(args ...string) string {
		t.Helper()
		r := w.run(append([]string{"endpoint", "create", "--feed", "--json"}, args...)...)
		var ep struct{ ID string }
		if r.status != 0 || json.Unmarshal([]byte(r.stdout), &ep) != nil {
			t.Fatalf("%v: %s", args, r.stderr)
		}
		return ep.ID
	}
	cases := []struct{ scheme, content string }{
		{"standard-webhooks", "native"}, {"standard-webhooks", "original"}, {"rfc9421", "native"}, {"rfc9421", "original"}, {"standard-webhooks-v1a", "native"},
	}
	ids := make([]string, len(cases))
	for i, c := range cases {
		ids[i] = endpoint("--scheme", c.scheme, "--content", c.content)
	}
	bodies := []struct{ contentType, text string }{{"application/json", `{"type":"orders/create", "total": 1.10}`}, {"text/plain", "a line"}}
	for i, b := range bodies {
		send(fmt.Sprint("msg_", i), b.contentType, b.text)
	}
	for i, c := range cases {
		scheme, _ := webhook.Lookup(c.scheme)
		secret, err := scheme.NewSecret(nil)
		if err != nil {
			t.Fatal(err)
		}
		key, err := scheme.ParseKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		got, url := w.listenTo(t, "/hook?shop=1", len(bodies), "--endpoint", ids[i], "--secret", secret)
		for n, g := range got {
			name := fmt.Sprintf("%s %s %d", c.scheme, c.content, n)
			if _, err := scheme.Verify(webhook.Request{URL: url, Header: g.header, Body: []byte(g.body)}, w.now, key); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.HasPrefix(g.header.Get("Pawl-Delivery"), "dlv_") || g.header.Get("Pawl-Endpoint-Sequence") != fmt.Sprint(n+1) || g.header.Get("Pawl-Attempt") != "1" {
				t.Errorf("%s: %v", name, g.header)
			}
			if c.content == "original" {
				if g.body != bodies[n].text || g.header.Get("Content-Type") != bodies[n].contentType || g.header.Get("X-Shop") != "north" {
					t.Errorf("%s: %v %q", name, g.header, g.body)
				}
				continue
			}
			var wrapped struct {
				Source, Type string
				ContentType  string `json:"content_type"`
				Data         json.RawMessage
			}
			if err := json.Unmarshal([]byte(g.body), &wrapped); err != nil || wrapped.Source != "shop" || g.header.Get("Content-Type") != "application/json" || g.header.Get("X-Shop") != "" {
				t.Errorf("%s: %v %q %v", name, g.header, g.body, err)
			}
			want := []string{`{"type":"orders/create","total":1.10}`, `"` + base64.StdEncoding.EncodeToString([]byte("a line")) + `"`}[n]
			if string(wrapped.Data) != want || (wrapped.ContentType == "text/plain") != (n == 1) {
				t.Errorf("%s: %+v, want the data %s", name, wrapped, want)
			}
		}
	}
}

// A key that may not read payloads takes nothing as done that it has not seen.
func TestListenWithheld(t *testing.T) {
	api, send := sourceNode(t)
	w := newWorld(t, api)
	w.now = time.Now()
	r := w.run("key", "create", "listener", "--tenant", "default", "--scopes", "read,operate", "--json")
	var key struct{ Secret string }
	if r.status != 0 || json.Unmarshal([]byte(r.stdout), &key) != nil {
		t.Fatal(r.stderr)
	}
	w.env["PAWL_KEY"] = key.Secret
	if r := w.run("listen", "--print-secret"); r.status != 0 {
		t.Fatal(r.stderr)
	}
	send("msg_1", "application/json", `{"type":"paid"}`)
	posted := fake(t, func(http.ResponseWriter, *http.Request) { t.Error("it was posted") })
	for range 2 { // The place stays before it.
		w.run("listen", "--forward", posted).want(t, 1, "", "give a key with that scope")
	}
}

// The dialects' bodies are the server's too, and are signed as they came; what
// cannot be sent is left out, and said.
func TestListenDialect(t *testing.T) {
	const body = `{"code":200,"msg":"success","data":{"taskId":"job_1","state":"succeeded"},"request_id":"whd_1"}`
	api := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/events":
			reply(w, http.StatusOK, `{"id":"ep_1","scheme":"media-v2"}`)
			return
		case r.URL.Query().Get("after") == "2":
			<-r.Context().Done()
			return
		}
		w.Header().Set("Pawl-Endpoint-Sequence", "2")
		reply(w, http.StatusOK, fmt.Sprintf(`{"items":[{"id":"evt_1","sequence":1,"unsendable":"it is lost"},
			{"id":"evt_2","sequence":2,"delivery_id":"dlv_2","rendered":{"headers":{"Content-Type":"application/json"},"body":"%s"}}]}`,
			base64.StdEncoding.EncodeToString([]byte(body))))
	})
	scheme, _ := webhook.Lookup("media-v2")
	key, err := scheme.ParseKey("a secret of many characters")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, api)
	got, _ := w.listenTo(t, "/", 1, "--endpoint", "ep_1", "--secret", "a secret of many characters")
	if v, err := scheme.Verify(webhook.Request{Header: got[0].header, Body: []byte(body)}, w.now, key); err != nil || got[0].body != body || v.TaskID != "job_1" {
		t.Errorf("%+v: %v %v", got[0], v, err)
	}
}
