package upstream

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/webhook"
)

// rotating is the sim upstream with the keys old, until t, and new, from t on.
func rotating(t *testing.T, from, until time.Time) Upstream {
	t.Helper()
	spec, ok := Preset("body-timestamp")
	if !ok {
		t.Fatal("no preset")
	}
	settings := config.DefaultUpstream()
	settings.BaseURL = "https://provider.example"
	settings.WebhookKeys = []config.DatedSecret{
		{Key: secret(t, "old"), Until: until},
		{Key: secret(t, "new"), From: from},
	}
	u, err := New("up", spec, settings)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// callback is signed at a moment with a text.
func callback(t *testing.T, u Upstream, at time.Time, text string) (http.Header, []byte) {
	t.Helper()
	body := []byte(`{"id":"evt_1","type":"ai.task.completed","data":{"task_id":"t","status":"succeeded","version":2}}`)
	key, err := u.scheme.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	h, err := u.scheme.Sign(webhook.Message{ID: "evt_1", Timestamp: at.Unix(), Body: body}, key)
	if err != nil {
		t.Fatal(err)
	}
	return h, body
}

// A key verifies from its first moment on and no longer at its last one
// (1-product C1). The timestamp of the request changes nothing: what counts is
// when it is received.
func TestKeysVerifyWithinTheirDates(t *testing.T) {
	from, until := signedAt, signedAt.Add(time.Minute)
	u := rotating(t, from, until)
	for _, tt := range []struct {
		name     string
		at       time.Time
		old, new bool
	}{
		{"a nanosecond before from", from.Add(-1), true, false},
		{"at from", from, true, true},
		{"a nanosecond before until", until.Add(-1), true, true},
		{"at until", until, false, true},
		{"after until", until.Add(time.Second), false, true},
	} {
		for text, want := range map[string]bool{"old": tt.old, "new": tt.new} {
			h, body := callback(t, u, signedAt, text)
			c, rejection := u.ParseCallback(h, body, tt.at)
			if want != (rejection == nil) || want && c.EventID != "evt_1" {
				t.Errorf("%s, key %s: %+v", tt.name, text, rejection)
			}
			if rejection != nil && (rejection.Kind != RejectSignature || rejection.Reason != string(webhook.ReasonNoMatch)) {
				t.Errorf("%s, key %s: %+v", tt.name, text, rejection)
			}
		}
	}
}

// Between two keys nothing verifies, and callbacks are not counted on.
func TestNoActiveKey(t *testing.T) {
	until, from := signedAt, signedAt.Add(time.Minute)
	u := rotating(t, from, until)
	for _, tt := range []struct {
		at   time.Time
		want bool
	}{
		{until.Add(-1), true}, {until, false}, {from.Add(-1), false}, {from, true},
	} {
		if got := u.activeKeys(tt.at); (len(got) > 0) != tt.want {
			t.Errorf("at %v: %d active keys", tt.at, len(got))
		}
		h, body := callback(t, u, signedAt, map[bool]string{true: "old", false: "new"}[tt.at.Before(until)])
		_, rejection := u.ParseCallback(h, body, tt.at)
		if tt.want != (rejection == nil) {
			t.Errorf("at %v: %+v", tt.at, rejection)
		}
		if rejection != nil && (rejection.Kind != RejectSignature || rejection.Reason != ReasonNoActiveKey) {
			t.Errorf("at %v: %+v", tt.at, rejection)
		}
	}
	// Both dates are long past or yet to come, so there is nothing to count on now.
	gone := rotating(t, time.Now().Add(time.Hour), time.Now().Add(-time.Hour))
	if gone.Policy().Callbacks {
		t.Error("callbacks are asked for that nobody could verify")
	}
	if now := rotating(t, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)); !now.Policy().Callbacks {
		t.Error("callbacks are not asked for")
	}
}
