package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/internal/ledger"
)

func TestReadAnswers(t *testing.T) {
	nothing := ledger.Observation{}
	cases := []struct {
		name, preset string
		status       int
		body         string
		want         ledger.ReadOutcome
		reason       string
	}{
		{"unauthorized", "sim", 401, `{}`, ledger.ReadUnauthorized, ""},
		{"forbidden", "sim", 403, `{}`, ledger.ReadUnauthorized, ""},
		{"forbidden by envelope", "media-v2", 200, `{"code":403}`, ledger.ReadUnauthorized, ""},
		{"not found", "body-timestamp", 404, `{"error":"task not found"}`, ledger.ReadNotFound, ""},
		{"gone is no 404", "sim", 410, `{}`, ledger.ReadUnreachable, ReasonStatus},
		{"redirect", "sim", 302, ``, ledger.ReadUnreachable, ReasonStatus},
		{"rate limited", "sim", 429, ``, ledger.ReadUnreachable, ReasonStatus},
		{"down", "sim", 502, `<html>`, ledger.ReadUnreachable, ReasonStatus},
		{"down by envelope", "media-v2", 200, `{"code":500,"data":{"taskId":"job","state":"failed"}}`, ledger.ReadUnreachable, ReasonStatus},
		{"404 that claims success", "media-v2", 404, `{"code":200,"data":{"taskId":"job","state":"succeeded"}}`, ledger.ReadUnreachable, ReasonContradiction},
		{"not JSON", "sim", 200, `<html>`, ledger.ReadUnreachable, ReasonMalformedJSON},
		{"empty", "sim", 204, ``, ledger.ReadUnreachable, ReasonMalformedJSON},
		{"a name twice", "sim", 200, `{"task":"job","state":"queued","state":"succeeded"}`, ledger.ReadUnreachable, ReasonMalformedJSON},
		{"no task", "sim", 200, `{"state":"succeeded"}`, ledger.ReadUnreachable, ReasonMissingTask},
		{"no state", "sim", 200, `{"task":"job"}`, ledger.ReadUnreachable, ReasonMissingState},
		{"bad version", "body-timestamp", 200, `{"task_id":"job","status":"running","version":"x"}`, ledger.ReadUnreachable, ReasonBadVersion},
		{"bad cost", "sim", 200, `{"task":"job","state":"succeeded","cost":{}}`, ledger.ReadUnreachable, ReasonBadCost},
		{"cost too long", "sim", 200, `{"task":"job","state":"succeeded","cost":0.00000000000000000000000000000000000000000000000000000000000000001}`, ledger.ReadUnreachable, ReasonBadCost},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			got := testUpstream(t, c.preset, server.URL).Read(t.Context(), newClient(t), "job")
			if got.Outcome != c.want || got.Reason != c.reason || got.RetryAfter != 3*time.Second {
				t.Errorf("%v %q %v, want %v %q 3s", got.Outcome, got.Reason, got.RetryAfter, c.want, c.reason)
			}
			if diff := cmp.Diff(nothing, got.Observation); diff != "" {
				t.Errorf("something was observed:\n%s", diff)
			}
		})
	}
}

// O-057: a failure to ask is no answer.
func TestReadOnABadWire(t *testing.T) {
	cut, _ := rawServer(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n{")
		_ = c.Close()
	})
	if got := testUpstream(t, "sim", cut).Read(t.Context(), newClient(t), "job"); got.Outcome != ledger.ReadUnreachable || got.Reason != ReasonCut {
		t.Errorf("cut answer: %+v", got)
	}
	hold := make(chan struct{})
	slow, _ := rawServer(t, func(net.Conn) { <-hold })
	defer close(hold)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := testUpstream(t, "sim", slow).Read(ctx, newClient(t), "job"); got.Outcome != ledger.ReadUnreachable || got.Reason != "timeout" {
		t.Errorf("slow answer: %+v", got)
	}
}

func TestAskingForWhatCannotBeAsked(t *testing.T) {
	client := newClient(t)
	u := testUpstream(t, "media-v2", "https://up.example.com")
	if got := u.Cancel(t.Context(), client, "job"); got.Outcome != ledger.CancelRefused || got.Read.Reason != ReasonUnsupported {
		t.Errorf("cancel at a provider without: %+v", got)
	}
	if got := u.Lookup(t.Context(), client, "op"); got.Reason != ReasonUnsupported {
		t.Errorf("lookup at a provider without: %+v", got)
	}
	for _, task := range []string{"", ".", "..", "a\nb"} {
		if got := u.Read(t.Context(), client, task); got.Reason != ReasonUnsupported {
			t.Errorf("read of task %q: %+v", task, got)
		}
	}
}
