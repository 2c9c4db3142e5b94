package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/webhook"
)

// taken keeps the commands that reach the store.
type taken struct{ commands []ledger.Command }

func (s *taken) Do(_ context.Context, c ledger.Command) (ledger.Outcome, error) {
	s.commands = append(s.commands, c)
	return ledger.Outcome{Reason: "applied", Value: ledger.Received{Verdict: pawl.Applied}}, nil
}

func (s *taken) DoAll(context.Context, ...ledger.Command) []store.Result { return nil }

const fuzzSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

var fuzzNow = time.Unix(1_790_000_000, 0)

func fuzzHandler(f testing.TB, s store.Commands) (*Handler, upstream.Callbacks) {
	f.Helper()
	spec, ok := upstream.Preset("body-timestamp")
	secret, err := config.NewSecret(fuzzSecret)
	if !ok || err != nil {
		f.Fatal(ok, err)
	}
	settings := config.DefaultUpstream()
	settings.BaseURL, settings.WebhookKeys = "https://up.example.com", []config.DatedSecret{{Key: secret}}
	up, err := upstream.New("studio", spec, settings)
	if err != nil {
		f.Fatal(err)
	}
	callbacks := upstream.NewCallbacks("https://pawl.example.com", []byte("key"))
	return New(Options{
		Store: s, Upstreams: upstream.Set{"studio": up}, Callbacks: callbacks, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return fuzzNow },
	}), callbacks
}

// FuzzHooks: whatever comes, the answer is one of those of 2-contracts §1, in
// JSON and without what was sent; only what is signed reaches the ledger, and
// that with its body as received and the operation of its token.
func FuzzHooks(f *testing.F) {
	s := &taken{}
	h, callbacks := fuzzHandler(f, s)
	operation := pawl.NewID(1_760_000_000_000_000, 7)
	token := callbacks.Token("studio", operation)
	body := `{"id":"evt_1","type":"ai.task.progress","data":{"task_id":"t","status":"running","version":3}}`
	f.Add("/hooks/studio", "application/json", body, true)
	f.Add("/hooks/studio", "application/json", body, false)
	f.Add("/hooks/studio/"+token, "", body, true)
	f.Add("/hooks/studio/"+strings.ToUpper(token), "", body, true)
	f.Add("/hooks/studio/../studio/"+token, "application/json; charset=utf-8", `{`, true)
	f.Add("/hooks/nobody", "text/plain", "", true)
	f.Add("/hooks//studio", "application/json;", body, true)
	f.Add("/hooks/studio/%2e%2e", "application/JSON", `[]`, true)
	scheme, _ := webhook.Lookup("body-timestamp")
	key, err := scheme.ParseKey(fuzzSecret)
	if err != nil {
		f.Fatal(err)
	}
	statuses := []int{200, 202, 400, 401, 404, 405, 413, 415}
	f.Fuzz(func(t *testing.T, path, contentType, body string, signed bool) {
		at, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") || at.Host != "" {
			return
		}
		s.commands = nil
		r := &http.Request{Method: http.MethodPost, URL: at, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), RemoteAddr: "192.0.2.1:1"}
		if signed {
			if r.Header, err = scheme.Sign(webhook.Message{ID: "evt_1", Timestamp: fuzzNow.Unix(), Body: []byte(body)}, key); err != nil {
				t.Fatal(err)
			}
		}
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !slices.Contains(statuses, w.Code) || w.Code < 405 && w.Code != 404 && !json.Valid(w.Body.Bytes()) || w.Header().Get("Location") != "" {
			t.Fatalf("%q: HTTP %d, %q", path, w.Code, w.Body)
		}
		if len(s.commands) == 0 {
			return
		}
		c, ok := s.commands[0].(ledger.ReceiveEvent)
		if !ok || len(s.commands) > 1 || !signed || c.Body != body {
			t.Fatalf("%q, signed %v: %+v", path, signed, s.commands)
		}
		called, _ := strings.CutPrefix(at.Path, "/hooks/studio")
		if (called != "") != (c.Token == operation) || c.Token == (pawl.ID{}) != (called == "") {
			t.Fatalf("%q: token of %v", path, c.Token)
		}
	})
}

// FuzzKeptHeaders: what is kept of the headers is JSON, bounded and without
// credentials.
func FuzzKeptHeaders(f *testing.F) {
	f.Add("X-Request-Id", "1", "Content-Type", "application/json")
	f.Add("X-Api-Key", "S3KRIT", "Webhook-Id", "evt_1")
	f.Add("Webhook-Signature", "v1,S3KRIT", "X-Forwarded-Uri", "https://h/hooks/studio/S3KRIT")
	f.Add("X-Long", strings.Repeat("x", 9<<10), "Webhook-Id", strings.Repeat("y", 255))
	f.Fuzz(func(t *testing.T, name, value, other, otherValue string) {
		h := http.Header{}
		h.Add(name, value)
		h.Add(other, otherValue)
		h.Set("Authorization", "Bearer S3KRIT")
		h.Set("X-Forwarded-Uri", "/hooks/studio/S3KRIT")
		h.Set("Webhook-Id", "evt_1")
		text := keptHeaders(h, []string{"Webhook-Id", "Webhook-Timestamp"})
		var kept map[string]string
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// JSON may write a byte of a value in six.
		if len(text) > 6*maxHeaders+1024 || kept["webhook-id"] != "evt_1" {
			t.Fatalf("%d bytes: %.200q", len(text), text)
		}
		for low := range kept {
			if config.SecretHeader(low) || low != strings.ToLower(low) {
				t.Fatalf("%q is kept", low)
			}
		}
		if !strings.Contains(name+value+other+otherValue, "S3KRIT") && bytes.Contains([]byte(text), []byte("S3KRIT")) {
			t.Fatalf("%.300q", text)
		}
	})
}
