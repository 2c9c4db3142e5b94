package sender_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/webhook"
)

const (
	plainSecret  = "plain-secret"
	strictSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	signingKey   = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
)

var now = time.Unix(1_790_000_000, 0)

func secretFor(scheme string) string {
	switch scheme {
	case "standard-webhooks", "rfc9421":
		return strictSecret
	case "standard-webhooks-v1a":
		return signingKey
	}
	return plainSecret
}

// build makes the source "s" of settings in YAML.
func build(t testing.TB, yaml string) (sender.Sender, error) {
	t.Helper()
	cfg, err := config.Parse("s.yaml", []byte("sources: {s: {"+yaml+"}}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	set, err := sender.Build(cfg)
	return set["s"], err
}

func mustBuild(t testing.TB, yaml string) sender.Sender {
	t.Helper()
	s, err := build(t, yaml)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// called is the address that every request of these tests came to.
const called = "https://pawl.example/hooks/s?x=1"

func signed(t testing.TB, scheme, body string) http.Header {
	t.Helper()
	s, _ := webhook.Lookup(scheme)
	key, err := s.ParseKey(secretFor(scheme))
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Sign(webhook.Message{ID: "msg_1", Timestamp: now.Unix(), Body: []byte(body), URL: called}, key)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Every scheme has its own places for the event's id and type, and its events are
// read the same when they are judged anew.
func TestSchemes(t *testing.T) {
	digest := func(body string) string {
		sum := sha256.Sum256([]byte(body))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	tests := map[string]struct{ body, id, kind, header string }{
		"standard-webhooks":     {`{"type":"user.created"}`, "msg_1", "user.created", ""},
		"standard-webhooks-v1a": {`{"type":"user.created"}`, "msg_1", "user.created", ""},
		"rfc9421":               {`{"type":"user.created"}`, "msg_1", "user.created", ""},
		"media-v2":              {`{"code":200,"request_id":"whd_1","data":{"taskId":"job_1"}}`, "whd_1", "event", ""},
		"body-timestamp":        {`{"id":"evt_1","type":"ai.task.completed"}`, "evt_1", "ai.task.completed", ""},
		"stripe":                {`{"id":"evt_1","type":"invoice.paid"}`, "evt_1", "invoice.paid", ""},
		"github":                {`{"ref":"x"}`, digest(`{"ref":"x"}`), "push", "X-GitHub-Event: push"},
		"slack":                 {`{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}`, "Ev1", "app_mention", ""},
		"zoom":                  {`{"event":"meeting.started"}`, digest(`{"event":"meeting.started"}`), "meeting.started", ""},
		"websub":                {`{"version":"1"}`, digest(`{"version":"1"}`), "event", ""},
	}
	if got, want := len(tests), len(webhook.Names()); got != want {
		t.Fatalf("%d of %d schemes", got, want)
	}
	for scheme, tt := range tests {
		t.Run(scheme, func(t *testing.T) {
			s := mustBuild(t, fmt.Sprintf("scheme: %s, secrets: [%q], tenant: t, owner: o", scheme, secretFor(scheme)))
			h := signed(t, scheme, tt.body)
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				h.Set(name, value)
			}
			proof, reason := s.Verify(webhook.Request{Header: h, Body: []byte(tt.body), URL: called}, now)
			if reason != "" {
				t.Fatal(reason)
			}
			c := s.Event(h, []byte(tt.body), proof)
			if c.Event != tt.id || c.Type != tt.kind || c.Preset != 0 || !c.Up.Generic || c.Up.Name != "s" || c.Up.Tenant != "t" || c.Up.Owner != "o" || c.Obs.Task != "" {
				t.Errorf("read as %+v", c)
			}
			stored := `{"webhook-id":"msg_1","x-github-event":"push","x-webhook-payload-version":"2"}`
			if again := s.Reread(ledger.Event{Headers: stored}, []byte(tt.body)); again.Event != tt.id || again.Type != tt.kind || again.Preset != 0 {
				t.Errorf("read anew as %+v", again)
			}
			if _, reason := s.Verify(webhook.Request{Header: h, Body: []byte(tt.body + " "), URL: called}, now); reason != "no_match" {
				t.Errorf("another body: %q", reason)
			}
			if printed := fmt.Sprintf("%v %+v %#v %v %#v", s, s, s, proof, proof); strings.Contains(printed, secretFor(scheme)) {
				t.Errorf("prints its secret: %s", printed)
			}
		})
	}
}

// What the settings say goes before the scheme's own places.
func TestPlaces(t *testing.T) {
	const body = `{"id":"a","n":18014398509481985,"kind":"x.y","type":"t","event_id":"e"}`
	for _, tt := range []struct {
		yaml, id, kind, reason string
		verdict                pawl.Verdict
	}{
		{"", "a", "t", "", 0},
		{"event: /n", "18014398509481985", "t", "", 0},
		{"event: /event_id, type: /kind", "e", "x.y", "", 0},
		{"event: /gone", "", "t", "missing_event_id", pawl.Rejected},
		{"type: /gone", "a", "", "missing_type", pawl.Rejected},
		{`type: "header:X-Kind"`, "a", "from-header", "", 0},
		{`type: "header:X-Two"`, "a", "", "missing_type", pawl.Rejected},
		{"types: [t, u]", "a", "t", "", 0},
		{"types: [u]", "a", "t", "unknown_type", pawl.UnknownType},
		{"types: [u], event: /gone", "", "t", "unknown_type", pawl.UnknownType},
	} {
		s := mustBuild(t, "scheme: stripe, secrets: [x], "+tt.yaml)
		c := s.Event(http.Header{"X-Kind": {"from-header"}, "X-Two": {"a", "b"}}, []byte(body), sender.Proof{})
		if c.Event != tt.id || c.Type != tt.kind || c.Preset != tt.verdict || c.Reason != tt.reason {
			t.Errorf("%s: id %q, type %q, %s %s", tt.yaml, c.Event, c.Type, c.Preset, c.Reason)
		}
	}
	for yaml, key := range map[string]string{
		"scheme: stripe":                                                                                        "secrets",
		"scheme: rot13, secrets: [x]":                                                                           "scheme",
		"scheme: standard-webhooks, secrets: [short]":                                                           "secrets[0]",
		"scheme: stripe, secrets: [x], event: id":                                                               "event",
		"scheme: github, secrets: [x], event: signed-id":                                                        "event",
		"scheme: stripe, secrets: [x], type: type":                                                              "type",
		`scheme: stripe, secrets: [x], type: "header:a b"`:                                                      "type",
		"scheme: stripe, secrets: [x], handshake: {kind: slack}":                                                "handshake.kind",
		`scheme: stripe, secrets: [x], read: {url: "https://{/host}/x"}`:                                        "read.url",
		`scheme: stripe, secrets: [x], read: {url: "https://a.example.com{/path}"}`:                             "read.url",
		`scheme: stripe, secrets: [x], read: {url: "https://u:p@a.example.com/{/id}"}`:                          "read.url",
		`scheme: stripe, secrets: [x], read: {url: "https://a.example.com/{id}"}`:                               "read.url",
		`scheme: stripe, secrets: [x], read: {url: "https://a.example.com/{/id"}`:                               "read.url",
		`scheme: stripe, secrets: [x], list: {url: "https://u:p@a.example.com/x", fields: {event: /id}}`:        "list.url",
		`scheme: stripe, secrets: [x], list: {url: "ftp://a.example.com/x", fields: {event: /id}}`:              "list.url",
		`scheme: stripe, secrets: [x], list: {url: "https://a.example.com/x"}`:                                  "list.fields.event",
		`scheme: github, secrets: [x], list: {url: "https://a.example.com/x", fields: {event: /id}}`:            "list.fields.event",
		`scheme: stripe, secrets: [x], list: {url: "https://a.example.com/x", fields: {event: /id, task: /t}}`:  "list.fields.task",
		`scheme: stripe, secrets: [x], list: {url: "https://a.example.com/x", fields: {event: /id, state: /s}}`: "list.fields.state",
		`scheme: stripe, secrets: [x], list: {url: "https://a.example.com/x", fields: {event: id}}`:             "list",
		`scheme: stripe, secrets: [x], read: {url: "ftp://a.example.com/{/id}"}`:                                "read.url",
		`scheme: stripe, secrets: [x], read: {url: "https://a.example.com/x#{/id}"}`:                            "read.url",
	} {
		_, err := build(t, yaml)
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Key != "sources.s."+key || problems[0].Line != 1 {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

// The record's address is made of what the event says, and leads nowhere else.
func TestCurrent(t *testing.T) {
	s := mustBuild(t, `scheme: stripe, secrets: [x], read: {url: "https://api.example.com/v1/{/kind}/{/id}?q={/q}", key: k, header: X-Api-Key, format: "Key {key}", timeout: 2s}`)
	if timeout, ok := s.Reads(); !ok || timeout != 2*time.Second {
		t.Errorf("reads: %v %v", timeout, ok)
	}
	for body, want := range map[string]string{
		`{"kind":"orders","id":7,"q":"a&b=c"}`:   "https://api.example.com/v1/orders/7?q=a%26b%3Dc",
		`{"kind":"a/../b","id":"?x#y","q":"%"}`:  "https://api.example.com/v1/a%2F..%2Fb/%3Fx%23y?q=%25",
		`{"kind":"..","id":"1","q":"x"}`:         "",
		`{"kind":"orders","id":"","q":"x"}`:      "",
		`{"kind":"a b","id":"é/ü","q":"ü b"}`:    "https://api.example.com/v1/a%20b/%C3%A9%2F%C3%BC?q=%C3%BC+b", // RFC 3986 §2.5
		`{"kind":"orders","id":"a\nb","q":"x"}`:  "",
		`{"kind":"a","id":".","q":"x"}`:          "",
		`{"kind":"orders","id":{"a":1},"q":"x"}`: "",
		`{"kind":"orders","q":"x"}`:              "",
		`{`:                                      "",
	} {
		r, err := s.Current(ledger.Event{}, []byte(body))
		switch {
		case want == "" && !errors.Is(err, sender.ErrNoRecord):
			t.Errorf("%s: %v %v", body, r, err)
		case want != "" && (err != nil || r.URL.String() != want || r.Method != http.MethodGet || r.Header.Get("X-Api-Key") != "Key k"):
			t.Errorf("%s: %v %v", body, r, err)
		}
	}
}

// What an event lacks is said by the place, never by a value.
func TestCurrentSaysWhere(t *testing.T) {
	s := mustBuild(t, `scheme: stripe, secrets: [x], read: {url: "https://api.example.com/v1/{/kind}/{/id}"}`)
	_, err := s.Current(ledger.Event{}, []byte(`{"kind":"canary","id":"canary\n"}`))
	if err == nil || !strings.Contains(err.Error(), "at /id it has no text") || strings.Contains(err.Error(), "canary") {
		t.Errorf("it says %v", err)
	}
}

// FuzzHub: whatever is asked, what is said back is a challenge that was asked for
// together with the token, bounded and printable.
func FuzzHub(f *testing.F) {
	f.Add("hub.mode=subscribe&hub.verify_token=tok&hub.challenge=1158201444")
	f.Add("hub.mode=subscribe&hub.verify_token=tok&hub.challenge=%3Cb%3E&hub.topic=x")
	f.Add("hub.mode=denied")
	f.Add("hub.mode=subscribe&hub.verify_token=toc&hub.challenge=1158201444")
	f.Add("hub.mode=subscribe;hub.verify_token=tok&hub.challenge=1")
	f.Add("hub.mode=unsubscribe&hub.verify_token=%74ok&hub.challenge=a&hub.challenge=b")
	s := mustBuild(f, "scheme: github, secrets: [x], handshake: {kind: hub, verify_token: tok}")
	f.Fuzz(func(t *testing.T, query string) {
		a, ok := s.Hub(query)
		if !ok {
			t.Fatal("not configured")
		}
		if a.Status != http.StatusOK || len(a.Body) == 0 {
			return
		}
		// Another reading: by hand, pair by pair.
		said, token := 0, 0
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			switch unescape(name) {
			case "hub.challenge":
				said++
				if unescape(value) != string(a.Body) {
					t.Fatalf("%q says %q", query, a.Body)
				}
			case "hub.verify_token":
				token++
				if unescape(value) != "tok" {
					t.Fatalf("%q is answered", query)
				}
			}
		}
		if said != 1 || token != 1 || len(a.Body) > 1024 || strings.ContainsFunc(string(a.Body), func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q: %q", query, a.Body)
		}
		if a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%v", a.Header)
		}
	})
}

// unescape reads the escapes of a query by hand.
func unescape(text string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '+' {
			out = append(out, ' ')
		} else if b, err := hex.DecodeString(text[min(i+1, len(text)):min(i+3, len(text))]); text[i] == '%' && err == nil && len(b) == 1 {
			out = append(out, b[0])
			i += 2
		} else {
			out = append(out, text[i])
		}
	}
	return string(out)
}

// FuzzEvent: whatever the body, a usable event has an id and a type of bounded
// visible text, and the same body is read the same.
func FuzzEvent(f *testing.F) {
	f.Add(`{"id":"evt_1","type":"invoice.paid"}`, "application/json")
	f.Add(`{"id":1e400,"type":[]}`, "")
	f.Add("a=b", "application/x-www-form-urlencoded")
	f.Add(`{"ID":"x","id":"y"}`, "application/problem+json")
	s := mustBuild(f, "scheme: stripe, secrets: [x], content_types: [application/json, application/problem+json, application/x-www-form-urlencoded]")
	good := func(text string, most int) bool {
		return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
	}
	f.Fuzz(func(t *testing.T, body, contentType string) {
		if !s.Takes(contentType) {
			return
		}
		h := http.Header{"Content-Type": {contentType}}
		if contentType == "" {
			h = http.Header{}
		}
		c := s.Event(h, []byte(body), sender.Proof{})
		if c.Preset == 0 && (!good(c.Event, 255) || !good(c.Type, 128) || strings.Contains(c.Type, ",")) {
			t.Fatalf("%q: id %q, type %q", body, c.Event, c.Type)
		}
		if c.Preset != 0 && c.Preset != pawl.Rejected || (c.Preset != 0) != (c.Reason != "") {
			t.Fatalf("%q: %s %q", body, c.Preset, c.Reason)
		}
		if again := s.Event(h, []byte(body), sender.Proof{}); again != c {
			t.Fatalf("%q is read in two ways", body)
		}
	})
}
