package upstream

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pawlhq/pawl/internal/config"
)

// given is what an exchange starts from.
type given struct {
	Prefix      string          `json:"prefix"`
	Model       string          `json:"model"`
	Input       json.RawMessage `json:"input"`
	CallbackURL string          `json:"callback_url"`
	ClientRef   string          `json:"client_ref"`
	Key         string          `json:"key"`
	Task        string          `json:"task"`
}

// TestExchanges runs every recorded exchange: the request must go out as
// recorded, and the recorded answer must be understood as written beside it.
func TestExchanges(t *testing.T) {
	files, err := filepath.Glob("testdata/exchanges/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges: %v", err)
	}
	for _, file := range files {
		preset := filepath.Base(filepath.Dir(file))
		t.Run(preset+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runExchange(t, preset, txtar.Parse(data))
		})
	}
}

func runExchange(t *testing.T, preset string, a *txtar.Archive) {
	parts := map[string]string{}
	for _, f := range a.Files {
		parts[f.Name] = string(f.Data)
	}
	want := parseRecorded(t, parts["request"])
	kind, _, _ := strings.Cut(string(a.Comment), ":")
	var got any
	if kind == "callback" {
		got = replayCallback(testUpstream(t, preset, "https://up.example.com"), want)
	} else {
		var g given
		if err := json.Unmarshal([]byte(parts["given"]), &g); err != nil {
			t.Fatal(err)
		}
		recorded := parseRecorded(t, parts["answer"])
		status, err := strconv.Atoi(recorded.first)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			want.compare(t, r)
			for name, values := range recorded.header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, recorded.body)
		}))
		defer server.Close()
		got = replayCall(t, testUpstream(t, preset, server.URL+g.Prefix), kind, g)
	}
	var expected any
	if err := json.Unmarshal([]byte(parts["expect"]), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, plain(t, got)); diff != "" {
		t.Errorf("understood otherwise (-want +got):\n%s", diff)
	}
}

func replayCall(t *testing.T, u Upstream, kind string, g given) any {
	ctx, client := t.Context(), newClient(t)
	switch kind {
	case "create":
		return u.Create(ctx, client, CreateRequest{ClientRef: g.ClientRef, Model: g.Model, Input: g.Input,
			CallbackURL: g.CallbackURL, IdempotencyKey: g.Key})
	case "read":
		return u.Read(ctx, client, g.Task)
	case "cancel":
		return u.Cancel(ctx, client, g.Task)
	case "lookup":
		return u.Lookup(ctx, client, g.ClientRef)
	}
	t.Fatalf("an exchange of kind %q", kind)
	return nil
}

func replayCallback(u Upstream, r recorded) any {
	callback, rejection := u.ParseCallback(r.header, []byte(r.body), signedAt)
	if rejection != nil {
		return rejection
	}
	return callback
}

// signedAt is when the recorded callbacks were signed.
var signedAt = time.Unix(1790000000, 0)

// recorded is a request or an answer of a file.
type recorded struct {
	first  string
	header http.Header
	body   string
}

func parseRecorded(t *testing.T, text string) recorded {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	r := recorded{first: lines[0], header: http.Header{}, body: body}
	if name, value, isHeader := strings.Cut(lines[0], ": "); isHeader { // a callback has no first line
		r.header.Add(name, value)
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("not a header: %q", line)
		}
		r.header.Add(name, strings.TrimSpace(value))
	}
	return r
}

func (want recorded) compare(t *testing.T, r *http.Request) {
	if got := r.Method + " " + r.URL.RequestURI(); got != want.first {
		t.Errorf("sent %s, want %s", got, want.first)
	}
	for name := range want.header {
		if got := r.Header.Get(name); got != want.header.Get(name) {
			t.Errorf("sent %s: %q, want %q", name, got, want.header.Get(name))
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(strings.TrimSuffix(want.body, "\n"), string(body)); diff != "" {
		t.Errorf("sent another body (-want +got):\n%s", diff)
	}
}

// plain gives a result as JSON would, without its zero values.
func plain(t *testing.T, result any) any {
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var tree any
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return dropZero(tree)
}

func dropZero(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for name, member := range object {
		switch member = dropZero(member); {
		case member == nil, member == "", member == false, member == 0.0:
			delete(object, name)
		case name == "Settled":
			object[name] = map[float64]string{1: "no", 2: "yes"}[member.(float64)]
		default:
			object[name] = member
			// An observation that says nothing has no progress either.
			if inner, ok := member.(map[string]any); ok && len(inner) == 0 {
				delete(object, name)
			}
		}
	}
	return object
}

// testKeys are the secrets that the recorded callbacks are signed with.
var testKeys = map[string]string{
	"media-v2":       "key-for-media-v2",
	"body-timestamp": "key-for-body-timestamp",
	"sim":            "whsec_a2V5LWZvci1zaW0tb2YtdGhpcnR5LXR3by1ieXRlcyE=",
}

func testUpstream(t testing.TB, preset, address string) Upstream {
	t.Helper()
	spec, ok := Preset(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	settings := config.DefaultUpstream()
	settings.Preset, settings.BaseURL, settings.Currency = preset, address, "EUR"
	settings.Key = secret(t, "sk-test")
	if key, signs := testKeys[preset]; signs {
		settings.WebhookKeys = []config.DatedSecret{{Key: secret(t, key)}}
	}
	u, err := New("up", spec, settings)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func secret(t testing.TB, text string) config.Secret {
	t.Helper()
	s, err := config.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
