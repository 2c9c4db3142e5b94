package server

import (
	"net/http"
	"testing"
	"time"
)

// A create that is answered 429 until its last attempt fails as what it is, at
// once after that answer (1-product B4, D5).
func TestRateLimitedToTheEnd(t *testing.T) {
	for status, want := range map[int]string{http.StatusTooManyRequests: "rate_limited", http.StatusPaymentRequired: "upstream_unavailable"} {
		t.Run(want, func(t *testing.T) {
			inVirtualTime(t, "sim", func(w *world) {
				w.provider.script(func(int, create) *answer {
					return &answer{status: status, body: map[string]any{"error": map[string]string{"code": "busy", "message": "come back"}}}
				}, nil)
				op := w.submit("k")
				w.pass(time.Hour)
				r := w.now(op, "failed")
				if r.at("error.code") != want || r.at("error.message") != "come back" || r.at("error.upstream_code") != "busy" {
					w.Errorf("HTTP %d: %s", status, r.body)
				}
				all := w.provider.created()
				if len(all) != 10 {
					w.Fatalf("%d creates, want 10", len(all))
				}
				finished, err := time.Parse(time.RFC3339Nano, r.at("finished_at"))
				if after := finished.Sub(all[9].at); err != nil || after < 0 || after > time.Second {
					w.Errorf("it failed %s after the last create, %v", after, err)
				}
				w.money("100", "0")
			}, reading(time.Second, time.Second, 2*time.Hour))
		})
	}
}

// The provider's word in the answer to a create is kept (1-product D1), before
// anything is read.
func TestFirstWordIsKept(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.provider.script(func(int, create) *answer {
			return &answer{status: http.StatusOK, body: map[string]any{"task": "task-1", "state": "queued"}}
		}, nil)
		op := w.submit("k")
		w.pass(time.Second)
		if r := w.now(op, "running"); r.at("upstream_state") != "queued" || r.at("task_id") != "task-1" {
			w.Errorf("%s", r.body)
		}
	}, reading(time.Hour, time.Hour, 2*time.Hour))
}
