package webhook_test

import (
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/webhook"
)

func TestLookup(t *testing.T) {
	want := []string{"standard-webhooks", "standard-webhooks-v1a", "media-v2", "body-timestamp", "stripe", "github", "slack", "zoom", "websub", "rfc9421"}
	if got := webhook.Names(); !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	webhook.Names()[0] = "changed"
	for _, name := range want {
		if s, ok := webhook.Lookup(name); !ok || s.Name() != name {
			t.Errorf("lookup %q: %q, %v", name, s.Name(), ok)
		}
	}
	for _, name := range []string{"", "Standard-Webhooks", "standard-webhooks "} {
		if _, ok := webhook.Lookup(name); ok {
			t.Errorf("lookup %q succeeds", name)
		}
	}
}

func TestSignAgreesWithFormula(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect, s webhook.Scheme, k webhook.Key) {
		got, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt, Body: []byte(d.body)}, k)
		if want := d.fresh().Header; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
		// Proxies drop other names (O-038).
		for name := range got {
			if !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(name) || http.CanonicalHeaderKey(name) != name {
				t.Errorf("header name %q", name)
			}
		}
	})
}

// A list carries one signature for each key; elsewhere the first key signs.
func TestSignSeveralKeys(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect, s webhook.Scheme, k webhook.Key) {
		secret, err := s.NewSecret(nil)
		if err != nil {
			t.Fatal(err)
		}
		next := parse(t, s, secret)
		h, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt, Body: []byte(d.body)}, k, next)
		if err != nil {
			t.Fatal(err)
		}
		r := webhook.Request{Header: h, Body: []byte(d.body)}
		if _, err := s.Verify(r, now, k); err != nil {
			t.Errorf("first key: %v", err)
		}
		_, err = s.Verify(r, now, next)
		if (err == nil) != (d.list || d.joined) {
			t.Errorf("second key: %v", err)
		}
		if _, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt, Body: []byte(d.body)},
			slices.Repeat([]webhook.Key{k}, 17)...); !errors.Is(err, webhook.ReasonMalformedKey) {
			t.Errorf("seventeen keys: %v", err)
		}
	})
}

func TestSignRefuses(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect, s webhook.Scheme, k webhook.Key) {
		good := webhook.Message{ID: "evt_1", Timestamp: signedAt, Body: []byte(d.body)}
		for _, timestamp := range []int64{0, -1, signedAt * 1000, 100_000_000_000, 1<<63 - 1, -1 << 63} {
			m := good
			m.Timestamp = timestamp
			if _, err := s.Sign(m, k); !errors.Is(err, webhook.ReasonMalformedMessage) && !d.timeless {
				t.Errorf("timestamp %d: %v", timestamp, err)
			}
		}
		if _, err := s.Sign(good); !errors.Is(err, webhook.ReasonNoKey) {
			t.Errorf("no key: %v", err)
		}
		if _, err := s.Sign(good, webhook.Key{}); !errors.Is(err, webhook.ReasonNoKey) {
			t.Errorf("zero key: %v", err)
		}
		for _, id := range []string{"", "evt.1", "evt 1", "evt:1", "évt", "evt\n", strings.Repeat("a", 256)} {
			m := good
			m.ID = id
			_, err := s.Sign(m, k)
			if !slices.Contains([]string{"standard-webhooks", "standard-webhooks-v1a", "body-timestamp", "github"}, d.name) { // no id header
				if err != nil {
					t.Errorf("id %q: %v", id, err)
				}
			} else if !errors.Is(err, webhook.ReasonMalformedMessage) {
				t.Errorf("id %q: %v", id, err)
			}
		}
	})
	if _, err := (webhook.Scheme{}).Sign(webhook.Message{}); !errors.Is(err, webhook.ReasonUnknownScheme) {
		t.Errorf("zero scheme: %v", err)
	}
}

func TestSignTask(t *testing.T) {
	d := dialectOf("media-v2")
	s := lookup(t, d.name)
	k := parse(t, s, d.secret)
	m := webhook.Message{Timestamp: signedAt, TaskID: "job_9", Body: []byte(d.body)}
	if _, err := s.Sign(m, k); err != nil {
		t.Errorf("the body's task: %v", err)
	}
	m.TaskID = "job_8"
	if _, err := s.Sign(m, k); !errors.Is(err, webhook.ReasonMalformedMessage) {
		t.Errorf("another task: %v", err)
	}
	m.Body = []byte(`{"data":{}}`)
	if _, err := s.Sign(m, k); !errors.Is(err, webhook.ReasonMalformedBody) {
		t.Errorf("no task in the body: %v", err)
	}
}
