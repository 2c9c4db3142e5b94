package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

type vector struct {
	ID                string            `json:"id"`
	Provider          string            `json:"provider"`
	Secret            string            `json:"secret"`
	AdditionalSecrets []string          `json:"additional_secrets"`
	Headers           map[string]string `json:"headers"`
	Body              []byte            `json:"body_base64"`
	NowUnix           int64             `json:"now_unix"`
	Expect            string            `json:"expect"`
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Vectors
}

func (v vector) verify(t *testing.T) (webhook.Verified, error) {
	t.Helper()
	s := lookup(t, v.Provider)
	var keys []webhook.Key
	for _, secret := range append([]string{v.Secret}, v.AdditionalSecrets...) {
		// The vectors of v1a name the provider too: their keys tell them apart.
		k, err := s.ForSecret(secret).ParseKey(secret)
		if err != nil {
			return webhook.Verified{}, err
		}
		keys = append(keys, k)
	}
	h := http.Header{}
	for name, value := range v.Headers {
		h.Set(name, value)
	}
	return s.Verify(webhook.Request{Header: h, Body: v.Body}, time.Unix(v.NowUnix, 0), keys...)
}

func TestVectors(t *testing.T) {
	vectors := readVectors(t)
	if len(vectors) != 78 {
		t.Fatalf("%d vectors, want 78", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) {
			_, err := v.verify(t)
			if got := err == nil; got != (v.Expect == "valid") {
				t.Fatalf("want %s, got error %v", v.Expect, err)
			}
		})
	}
}

// The vectors say only valid or invalid; the reason must be the right one too.
func TestVectorReasons(t *testing.T) {
	want := map[string]webhook.Reason{
		"standard-webhooks/tampered-body":            webhook.ReasonNoMatch,
		"standard-webhooks/future-timestamp":         webhook.ReasonFutureTimestamp,
		"standard-webhooks/missing-signature-header": webhook.ReasonMissingHeader,
		"standard-webhooks/v1a-only":                 webhook.ReasonNoMatch,
		"standard-webhooks-v1a/tampered-body":        webhook.ReasonNoMatch,
		"standard-webhooks-v1a/stale-timestamp":      webhook.ReasonStaleTimestamp,
		"media-v2/reserialised-body":                 webhook.ReasonNoMatch,
		"media-v2/offset-301":                        webhook.ReasonStaleTimestamp,
		"media-v2/offset+301":                        webhook.ReasonFutureTimestamp,
		"media-v2/timestamp-not-a-number":            webhook.ReasonMalformedTimestamp,
		"media-v2/timestamp-milliseconds":            webhook.ReasonMalformedTimestamp,
		"media-v2/empty-secret":                      webhook.ReasonMalformedKey,
		"media-v2/other-task-signed":                 webhook.ReasonNoMatch,
		"media-v2/not-json":                          webhook.ReasonMalformedBody,
		"body-timestamp/timestamp-plus":              webhook.ReasonMalformedTimestamp,
		"body-timestamp/no-signature":                webhook.ReasonMissingHeader,
		"body-timestamp/empty-signature":             webhook.ReasonNoMatch,
		"body-timestamp/no-prefix":                   webhook.ReasonNoMatch,
		"stripe/tampered-body":                       webhook.ReasonNoMatch,
		"stripe/v0-only":                             webhook.ReasonNoMatch,
		"stripe/no-timestamp":                        webhook.ReasonMalformedHeader,
		"stripe/timestamp-changed":                   webhook.ReasonNoMatch,
		"github/wrong-secret":                        webhook.ReasonNoMatch,
		"github/missing-sha256-header":               webhook.ReasonMissingHeader,
		"slack/stale-timestamp":                      webhook.ReasonStaleTimestamp,
		"slack/unknown-version":                      webhook.ReasonNoMatch,
		"zoom/tampered-body":                         webhook.ReasonNoMatch,
	}
	seen := 0
	for _, v := range readVectors(t) {
		reason, ok := want[v.ID]
		if !ok {
			continue
		}
		seen++
		if _, err := v.verify(t); !errors.Is(err, reason) {
			t.Errorf("%s: got %v, want %s", v.ID, err, reason)
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d vectors found", seen, len(want))
	}
}

// V1 to V3 are the examples of the Standard Webhooks and Svix documentation
// (4-standards §20); of V3 the specification prints the keys and the signature.
func TestStandardWebhooksPublishedExamples(t *testing.T) {
	for _, tt := range []struct {
		scheme, secret, id string
		timestamp          int64
		body, want         string
	}{
		{
			"standard-webhooks", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553,
			`{"email":"test@example.com","username":"test_user"}`,
			"v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
		},
		{
			"standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
			`{"test": 2432232314}`,
			"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
		{
			"standard-webhooks-v1a", publishedSigningKey, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
			`{"test": 2432232314}`,
			"v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
		},
	} {
		s := lookup(t, tt.scheme)
		key := parse(t, s, tt.secret)
		m := webhook.Message{ID: tt.id, Timestamp: tt.timestamp, Body: []byte(tt.body)}
		h, err := s.Sign(m, key)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Get("webhook-signature"); got != tt.want {
			t.Errorf("%s: signature %s, want %s", tt.id, got, tt.want)
		}
		v, err := s.Verify(webhook.Request{Header: h, Body: m.Body}, time.Unix(tt.timestamp, 0), key)
		if err != nil || v.ID != tt.id || v.Timestamp.Unix() != tt.timestamp {
			t.Errorf("%s: verified %+v, error %v", tt.id, v, err)
		}
	}
}
