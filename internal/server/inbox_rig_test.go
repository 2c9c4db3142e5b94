package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/webhook"
)

const (
	sourceSecret = "whsec_source_secret"
	nextSecret   = "whsec_next_secret"
)

// sources are settings that add generic sources of the default tenant, each
// written as YAML without its scheme's secret.
func sources(t *testing.T, byName map[string]string) settings {
	t.Helper()
	var text strings.Builder
	text.WriteString("sources:\n")
	for name, yaml := range byName {
		if !strings.Contains(yaml, "tenant:") {
			yaml += ", tenant: default"
		}
		if !strings.Contains(yaml, "secrets:") {
			yaml += fmt.Sprintf(", secrets: [%q]", sourceSecret)
		}
		fmt.Fprintf(&text, "  %s: {%s}\n", name, yaml)
	}
	cfg, err := config.Parse("sources.yaml", []byte(text.String()), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return func(c *config.Config, _ *config.Upstream) { c.Sources = cfg.Sources }
}

// payments is a source that signs as Stripe does.
func payments(t *testing.T, more string) settings {
	return sources(t, map[string]string{"payments": "scheme: stripe, owner: money team" + more})
}

// post sends a body to a source, signed in a scheme with a secret.
func (w *world) post(source, scheme, secret string, body []byte, header ...string) reply {
	w.Helper()
	s, _ := webhook.Lookup(scheme)
	key, err := s.ForSecret(secret).ParseKey(secret)
	if err != nil {
		w.Fatal(err)
	}
	id := "msg_1"
	if len(header) > 1 && header[0] == "id" {
		id, header = header[1], header[2:]
	}
	h, err := s.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: body}, key)
	if err != nil {
		w.Fatal(err)
	}
	h.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return w.send(http.MethodPost, w.node.APIURL()+"/hooks/"+source, body, h)
}

// paid sends an event of the source "payments".
func (w *world) paid(event string) reply {
	w.Helper()
	return w.post("payments", "stripe", sourceSecret, paidBody(event))
}

func paidBody(event string) []byte {
	return []byte(`{"id":"` + event + `","type":"invoice.paid","data":{"object":{"id":"in_1"}}}`)
}

// took sends a new event and gives its id once it is stored.
func (w *world) took(event string) string {
	w.Helper()
	return w.want(http.StatusAccepted, w.paid(event)).at("event_id")
}

// inbox waits until an event has come so far.
func (w *world) inbox(event, state string) reply {
	w.Helper()
	var r reply
	w.eventually("event "+event+" was never "+state, func() bool {
		r = w.get("/v1/events/" + event)
		return r.at("state") == state
	})
	return r
}

// handed are the deliveries of an event.
func (w *world) handed(event string) []reply {
	w.Helper()
	return w.get("/v1/deliveries?event=" + event).items()
}

// tape is a receiver that keeps what it gets and answers by a script.
type tape struct {
	mu     sync.Mutex
	got    []taped
	answer func(n int) int
}

type taped struct {
	header http.Header
	body   []byte
	at     time.Time
}

// ServeHTTP implements [http.Handler].
func (s *tape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.got = append(s.got, taped{r.Header, body, time.Now()})
	n, answer := len(s.got), s.answer
	s.mu.Unlock()
	if answer != nil {
		w.WriteHeader(answer(n))
	}
}

func (s *tape) all() []taped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]taped(nil), s.got...)
}

// genuine fails unless a delivery is signed with the receiver's secret under the
// event's id.
func (w *world) genuine(d taped, event string) {
	w.Helper()
	s, _ := webhook.Lookup("standard-webhooks")
	key, err := s.ParseKey(sinkSecret)
	if err != nil {
		w.Fatal(err)
	}
	v, err := s.Verify(webhook.Request{Header: d.header, Body: d.body}, d.at, key)
	if err != nil || v.ID != event {
		w.Errorf("delivery of %q, want %s: %v", v.ID, event, err)
	}
}

// at sends a request without a body to a source's address.
func (w *world) at(method, target string, header http.Header) reply {
	w.Helper()
	return w.send(method, w.node.APIURL()+"/hooks/"+target, nil, header)
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %.200q, want %.200q", what, got, want)
	}
}
