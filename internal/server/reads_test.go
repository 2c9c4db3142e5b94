package server

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// reading sets the schedule of reads and the deadline.
func reading(first, most, deadline time.Duration) settings {
	return func(_ *config.Config, u *config.Upstream) {
		u.Read.First, u.Read.Max, u.Deadline = first, most, deadline
	}
}

// near reports whether a wait is as long as wanted, within the jitter of ±10 %
// and what a commit and a call take.
func near(got, want time.Duration) bool {
	return got >= want*9/10 && got <= want*11/10+50*time.Millisecond
}

// A callback that never comes is made up for by reads at 2 s, then ×1.5 up to
// 15 s, and no more after the end (1-product E1, 7-rules R23).
func TestMissingCallback(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		accepted := time.Now()
		op := w.submit("k")
		w.pass(45 * time.Second)
		w.now(op, "running")
		w.provider.say(done("task-1"))
		w.pass(20 * time.Second)
		w.now(op, "succeeded")
		reads := w.provider.readAt()
		want := []time.Duration{2000, 3000, 4500, 6750, 10125, 15000, 15000}
		if len(reads) < 6 || len(reads) > len(want) {
			w.Fatalf("%d reads in 65 s", len(reads))
		}
		for i, last := 0, accepted; i < len(reads); i++ {
			if gap := reads[i].Sub(last); !near(gap, want[i]*time.Millisecond) {
				w.Errorf("read %d came after %s, want %s", i+1, gap, want[i]*time.Millisecond)
			}
			last = reads[i]
		}
		w.line(op, "read applied state", 1)
		w.told(op, "operation.running", "operation.succeeded")
		w.money("99.4", "0")
		w.pass(20 * time.Second)
		if n := len(w.provider.readAt()); n != len(reads) {
			w.Errorf("%d reads after the end", n-len(reads))
		}
	}, func(_ *config.Config, u *config.Upstream) { u.Read = config.DefaultUpstream().Read })
}

// Reads that fail say nothing of the task (O-057, O-058), nor does one that
// names another task or a word that nobody knows (1-product C7, O-052, R15).
func TestO057FailingReads(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		odd := answer{status: 200, body: envelope("r", map[string]any{"taskId": "task-1", "state": "PAUSED_FOR_REVIEW"})}
		answers := []answer{
			{cut: true}, {status: 502}, {status: 429, retryAfter: "7"}, {hang: true},
			{status: 200, body: envelope("r", map[string]any{"taskId": "task-9", "state": "succeeded", "cost": "1", "settled": true})},
			odd, odd, {status: 200, body: "no task at all"},
		}
		w.provider.script(nil, func(n int, _ string) *answer {
			if n > len(answers) {
				return nil
			}
			return &answers[n-1]
		})
		op := w.submit("k")
		w.pass(25 * time.Second)
		if n := len(w.provider.readAt()); n < len(answers)+1 {
			w.Fatalf("%d reads in 25 s", n)
		}
		reads := w.provider.readAt()
		if gap := reads[3].Sub(reads[2]); gap < 7*time.Second || gap > 8*time.Second {
			w.Errorf("after Retry-After: 7 the next read came after %s", gap)
		}
		if gap := reads[4].Sub(reads[3]); gap < 5*time.Second || gap > 7*time.Second {
			w.Errorf("after a read that hung, with a limit of 5 s, the next came after %s", gap)
		}
		w.now(op, "running")
		// The cut one was repeated at once by the transport: it had been sent on
		// a connection that was kept, and a read may be.
		w.line(op, "read unreachable", len(answers)-4)
		w.line(op, "read rejected task_mismatch", 1)
		w.line(op, "read unknown_state unknown_state", 2)
		w.review(op, "unknown_state")
		w.provider.say(done("task-1"))
		w.pass(3 * time.Second)
		w.now(op, "succeeded")
		w.money("99.4", "0")
		w.told(op, "operation.running", "operation.review.opened", "operation.succeeded", "operation.review.closed")
		w.review(op)
	}, reading(time.Second, time.Second, time.Hour))
}

// Three answers "unknown task" over a minute make a review; a good read
// withdraws it (7-rules R24, O-062).
func TestO062TaskUnknown(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		gone := &answer{status: http.StatusNotFound}
		w.provider.script(nil, func(n int, _ string) *answer {
			if n == 3 {
				return nil // running: what came before does not count
			}
			return gone
		})
		op := w.submit("k")
		w.pass(69 * time.Second) // reads at about 15, 30, 45 (good), 60
		w.now(op, "running")
		w.review(op)
		w.pass(45 * time.Second) // 75, 90, 105: four, but not over a minute
		w.review(op)
		w.pass(35 * time.Second)
		w.review(op, "task_unknown")
		w.now(op, "running")
		w.money("100", "1")
		w.provider.script(nil, nil)
		w.provider.say(done("task-1"))
		w.pass(17 * time.Second)
		w.now(op, "succeeded")
		w.review(op)
		w.money("99.4", "0")
	}, reading(15*time.Second, 15*time.Second, time.Hour))
}

// At its deadline an operation is read: unfinished, it expires and its money is
// released; what finished just before is taken (1-product D4, O-059, O-060).
func TestO059O060Deadline(t *testing.T) {
	deadline := 30 * time.Second
	t.Run("unfinished", func(t *testing.T) {
		inVirtualTime(t, "media-v2", func(w *world) {
			w.endpoint()
			op := w.submit("k")
			w.pass(deadline - time.Second)
			w.now(op, "running")
			w.pass(2 * time.Second)
			w.now(op, "expired")
			w.money("100", "0")
			w.told(op, "operation.running", "operation.expired")
			w.line(op, "read applied progress", 1)
			// A success that comes after all is shown, and changes nothing.
			w.want(http.StatusOK, w.callback(w.provider.created()[0].callback, event{id: "late", said: done("task-1")}))
			w.now(op, "expired")
			w.review(op, "late_success")
			w.money("100", "0")
		}, reading(time.Hour, time.Hour, deadline))
	})
	t.Run("O-059 finished", func(t *testing.T) {
		inVirtualTime(t, "media-v2", func(w *world) {
			op := w.submit("k")
			w.pass(deadline - time.Second)
			w.provider.say(done("task-1"))
			w.pass(2 * time.Second)
			w.now(op, "succeeded")
			w.money("99.4", "0")
		}, reading(time.Hour, time.Hour, deadline))
	})
	t.Run("late success is accepted", func(t *testing.T) {
		inVirtualTime(t, "media-v2", func(w *world) {
			w.endpoint()
			op := w.submit("k")
			w.pass(deadline + time.Second)
			w.now(op, "expired")
			w.want(http.StatusAccepted, w.callback(w.provider.created()[0].callback, event{id: "late", said: done("task-1")}))
			w.now(op, "succeeded")
			w.money("99.4", "0")
			w.review(op)
			w.told(op, "operation.running", "operation.expired", "operation.succeeded")
		}, reading(time.Hour, time.Hour, deadline), func(_ *config.Config, u *config.Upstream) { u.LateSuccess = config.LateAccept })
	})
}

// What cannot be read at its deadline is never expired by the clock: after
// three tries within a minute a person decides, and the money is held
// (1-product D4, O-066, O-052).
func TestO058DeadlineUnread(t *testing.T) {
	deadline := 10 * time.Second
	for name, tc := range map[string]struct {
		answer  answer
		reviews []string
	}{
		"unreachable":  {answer{hang: true}, []string{"deadline_unread"}},
		"server error": {answer{status: 503}, []string{"deadline_unread"}},
		"not found":    {answer{status: 404}, []string{"deadline_unread"}},
		"unknown word": {answer{status: 200, body: envelope("r", map[string]any{"taskId": "task-1", "state": "odd"})}, []string{"unknown_state", "deadline_unread"}},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, "media-v2", func(w *world) {
				w.provider.script(nil, func(int, string) *answer { return &tc.answer })
				op := w.submit("k")
				w.pass(deadline + 60*time.Second)
				w.now(op, "running")
				w.review(op, tc.reviews...)
				w.money("100", "1")
				if n := len(w.provider.readAt()); n != 3 {
					w.Errorf("%d reads at the deadline, want 3", n)
				}
				w.pass(30 * time.Second)
				if n := len(w.provider.readAt()); n != 3 {
					w.Errorf("%d reads while a person is to decide", n)
				}
				decide := func(decision string) {
					reviews := w.get("/v1/reviews?open=true&reason=deadline_unread").items()
					if len(reviews) != 1 {
						w.Fatalf("%d reviews", len(reviews))
					}
					w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+reviews[0].at("id")+"/resolve", map[string]string{"decision": decision}))
				}
				if name != "unreachable" {
					decide("expired")
					w.now(op, "expired")
					w.money("100", "0")
					return
				}
				w.provider.script(nil, nil)
				w.provider.say(done("task-1"))
				decide("read")
				w.pass(time.Second)
				w.now(op, "succeeded")
				w.money("99.4", "0")
				w.review(op)
			}, reading(time.Hour, time.Hour, deadline))
		})
	}
}

// An operation that never reached the provider expires by the clock
// (7-rules §1).
func TestDeadlineOfPending(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.provider.script(func(int, create) *answer { return &answer{status: 429, retryAfter: "3600"} }, nil)
		op := w.submit("k")
		w.pass(9 * time.Second)
		w.now(op, "pending")
		w.pass(2 * time.Second)
		w.now(op, "expired")
		w.money("100", "0")
		if n := len(w.provider.created()); n != 1 {
			w.Errorf("%d creates", n)
		}
	}, reading(time.Hour, time.Hour, 10*time.Second))
}

// An operator may have a task read now (contracts §1).
func TestReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	w.provider.say(done(c.task))
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations/"+op+"/reconcile", nil))
	w.state(op, "succeeded")
	if n := len(w.provider.readAt()); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
	if lines := w.timeline(op); !slices.Contains(lines, "read_requested") {
		t.Errorf("timeline: %v", lines)
	}
}
