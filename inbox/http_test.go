package inbox_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/webhook"
)

// An event in each scheme is taken, and one with another body is refused, at an
// address that has a query.
func TestSignedInEveryScheme(t *testing.T) {
	const address, body = "https://app.example.com/hooks?shop=1", `{"data":{"taskId":"job_1","task_id":"job_1"},"taskId":"job_1"}`
	taken := 0
	for _, name := range webhook.Names() {
		scheme, _ := webhook.Lookup(name)
		secret, err := scheme.NewSecret(nil)
		if err != nil {
			t.Fatal(name, err)
		}
		key, err := scheme.ParseKey(secret)
		if err != nil {
			t.Fatal(name, err)
		}
		header, err := scheme.Sign(webhook.Message{ID: "evt_1", Timestamp: time.Now().Unix(), URL: address, Body: []byte(body)}, key)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		id := func(webhook.Verified, []byte) (string, error) { return "evt_1", nil }
		take := func(_ context.Context, e inbox.Event) (inbox.Outcome, error) {
			if e.Source != "pawl" || e.ID != "evt_1" || string(e.Body) != body {
				t.Errorf("%s: %+v", name, e)
			}
			taken++
			return inbox.Outcome{}, nil
		}
		post := func(verify inbox.Verify, body string) int {
			r := httptest.NewRequest(http.MethodPost, "http://10.0.0.7:8080/internal", strings.NewReader(body)) // Behind a proxy.
			r.Header = header
			w := httptest.NewRecorder()
			inbox.Handler(verify, take).ServeHTTP(w, r)
			return w.Code
		}
		if got := post(inbox.SignedAt(address, "pawl", scheme, id, key), body); got != http.StatusOK {
			t.Errorf("%s: %d", name, got)
		}
		if got := post(inbox.SignedAt(address, "pawl", scheme, id, key), body+" "); got != http.StatusUnauthorized {
			t.Errorf("%s with another body: %d", name, got)
		}
		want := http.StatusOK
		if name == "rfc9421" {
			want = http.StatusInternalServerError
			if got := post(inbox.SignedAt(address+"0", "pawl", scheme, id, key), body); got != http.StatusUnauthorized {
				t.Errorf("%s at another address: %d", name, got)
			}
		}
		if got := post(inbox.Signed("pawl", scheme, id, key), body); got != want {
			t.Errorf("%s without the address: %d, want %d", name, got, want)
		}
	}
	if n := len(webhook.Names()); taken != 2*n-1 {
		t.Errorf("%d of %d events were taken", taken, 2*n-1)
	}
}
