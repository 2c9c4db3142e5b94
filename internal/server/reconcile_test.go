package server

import (
	"net/http"
	"testing"
	"time"
)

// What could not be read at its deadline is read on, rarely and without
// creating anything; when the upstream is back, its word closes the review
// (1-product E2).
func TestReadsGoOnAfterTheDeadline(t *testing.T) {
	deadline := 10 * time.Second
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		w.provider.script(nil, func(int, string) *answer { return &answer{status: http.StatusServiceUnavailable} })
		op := w.submit("k")
		w.pass(deadline + time.Minute)
		w.review(op, "deadline_unread")
		w.pass(100 * time.Minute)
		if n := len(w.provider.readAt()); n != 4 {
			w.Errorf("%d reads within two hours of the deadline, want three at it and one after an hour", n)
		}
		w.now(op, "running")
		w.provider.script(nil, nil)
		w.provider.say(done("task-1"))
		w.pass(3 * time.Hour)
		w.now(op, "succeeded")
		w.review(op)
		w.money("99.4", "0")
		if n := len(w.provider.created()); n != 1 {
			w.Errorf("%d creates", n)
		}
		w.told(op, "operation.running", "operation.review.opened", "operation.succeeded", "operation.review.closed")
	}, reading(time.Hour, time.Hour, deadline))
}
