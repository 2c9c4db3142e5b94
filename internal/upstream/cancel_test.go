package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// What a cancel came to: only a 2xx about the task is a yes, only a plain
// refusal a no, and whatever may be otherwise the next time is sent again.
func TestCancelAnswers(t *testing.T) {
	const canceled = `{"task":"job","state":"canceled","cost":"0.25","settled":true}`
	cases := []struct {
		name, preset string
		status       int
		body         string
		want         ledger.CancelOutcome
		read         ledger.ReadOutcome
	}{
		{"taken, and how it is", "sim", 200, canceled, ledger.CancelTaken, ledger.ReadObserved},
		{"taken, nothing said", "sim", 202, ``, ledger.CancelTaken, ledger.ReadUnreachable},
		{"taken, no state", "sim", 202, `{"task":"job"}`, ledger.CancelTaken, ledger.ReadUnreachable},
		{"taken, unknown word", "sim", 202, `{"task":"job","state":"stopping"}`, ledger.CancelTaken, ledger.ReadUnknownState},
		{"another task", "sim", 200, `{"task":"other","state":"canceled"}`, ledger.CancelRefused, ledger.ReadOtherTask},
		{"over already", "sim", 409, `{"error":{"code":"not_cancelable"}}`, ledger.CancelRefused, ledger.ReadUnreachable},
		{"unknown task", "sim", 404, `{}`, ledger.CancelRefused, ledger.ReadNotFound},
		{"no such call", "sim", 405, ``, ledger.CancelRefused, ledger.ReadUnreachable},
		{"redirect", "sim", 302, ``, ledger.CancelRefused, ledger.ReadUnreachable},
		{"rate limited", "sim", 429, ``, ledger.CancelUnreachable, ledger.ReadUnreachable},
		{"unauthorized", "sim", 401, ``, ledger.CancelUnreachable, ledger.ReadUnauthorized},
		{"down", "sim", 503, ``, ledger.CancelUnknown, ledger.ReadUnreachable},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.Path != "/cancel/job" {
					t.Errorf("asked %s %s", r.Method, r.URL.Path)
				}
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			got := testUpstream(t, c.preset, server.URL).Cancel(t.Context(), newClient(t), "job")
			if got.Outcome != c.want || got.Read.Outcome != c.read || got.Read.RetryAfter != 3*time.Second {
				t.Errorf("%v, read %v, after %v, want %v, %v, 3s", got.Outcome, got.Read.Outcome, got.Read.RetryAfter, c.want, c.read)
			}
		})
	}
}

// A cancel without an answer: it matters whether anybody can have read it.
func TestCancelOnABadWire(t *testing.T) {
	cut, _ := rawServer(t, func(c net.Conn) { _ = c.Close() })
	hold := make(chan struct{})
	slow, _ := rawServer(t, func(net.Conn) { <-hold })
	defer close(hold)
	for _, c := range []struct {
		name, address string
		want          ledger.CancelOutcome
	}{
		{"cut", cut, ledger.CancelUnknown}, {"slow", slow, ledger.CancelUnknown},
		{"nobody there", "http://127.0.0.1:1", ledger.CancelUnreachable},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if got := testUpstream(t, "sim", c.address).Cancel(ctx, newClient(t), "job"); got.Outcome != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, got.Outcome, got.Read.Reason, c.want)
		}
		cancel()
	}
}
