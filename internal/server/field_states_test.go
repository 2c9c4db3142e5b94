package server

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// A word that nobody knows is no state: the operation stays open and is shown
// at once, ends by the next word that is known, or waits for a person at its
// deadline with its money held (O-052, 7-rules R15).
func TestO052UnknownWordUntilTheEnd(t *testing.T) {
	paused := func(w *world) *answer {
		return &answer{status: http.StatusOK, body: w.provider.status(said{task: "task-1", state: "PAUSED_FOR_REVIEW"})}
	}
	t.Run("ten times, then succeeded", func(t *testing.T) {
		inVirtualTime(t, "media-v2", func(w *world) {
			op := w.submit("k")
			w.pass(100 * time.Millisecond)
			w.provider.say(done("task-1"))
			w.provider.script(nil, func(n int, _ string) *answer {
				if n <= 10 {
					return paused(w)
				}
				return nil
			})
			w.pass(1500 * time.Millisecond)
			if r := w.now(op, "running"); r.at("upstream_state") != "PAUSED_FOR_REVIEW" {
				w.Errorf("upstream_state %q after the first such read", r.at("upstream_state"))
			}
			w.review(op, "unknown_state")
			w.pass(15 * time.Second)
			w.now(op, "succeeded")
			w.money("99.4", "0")
			w.review(op)
		}, reading(time.Second, time.Second, time.Hour))
	})
	t.Run("until the deadline", func(t *testing.T) {
		inVirtualTime(t, "media-v2", func(w *world) {
			op := w.submit("k")
			w.provider.script(nil, func(int, string) *answer { return paused(w) })
			w.pass(30*time.Second + time.Minute)
			w.now(op, "running")
			w.review(op, "unknown_state", "deadline_unread")
			w.money("100", "1")
		}, reading(time.Second, time.Second, 30*time.Second))
	})
}

// Twenty of five hundred tasks never answer a read: the others are seen soon
// after their end, and no second holds more reads than the provider takes
// (O-056).
func TestO056SlowReadsDelayNobodyElse(t *testing.T) {
	const n, slow, rate = 500, 20, 10
	inVirtualTime(t, "sim", func(w *world) {
		w.fill(DefaultTenant, n, 24*time.Hour)
		created := w.tasks(n)
		hanging := make(map[string]bool)
		for i := 0; i < slow; i++ {
			hanging[created[i*n/slow].task] = true
		}
		w.provider.script(nil, func(_ int, task string) *answer {
			if hanging[task] {
				return &answer{hang: true}
			}
			return nil
		})
		w.pass(15 * time.Minute)
		before := len(w.provider.readAt())
		for _, c := range created {
			if !hanging[c.task] {
				w.provider.say(said{task: c.task, state: "succeeded", cost: "0.6", settled: true, result: `{"ok":true}`})
			}
		}
		// One round over all tasks at the rate, as if nobody were slow, and half as
		// much again for those that are.
		w.pass(n * time.Second / rate * 3 / 2)
		reads := w.provider.readAt()[before:]
		if most := within(reads, time.Second); most > rate {
			w.Errorf("%d reads within a second", most)
		}
		if open := len(w.get("/v1/operations?unfinished=true&page_size=100").items()); open != slow {
			w.Errorf("%d operations are unfinished, want the %d that nothing was heard of", open, slow)
		}
		// A new one does not queue behind the old ones.
		op := w.submit("new")
		w.pass(100 * time.Millisecond)
		w.provider.say(done("task-501"))
		w.pass(10 * time.Second)
		w.now(op, "succeeded")
	}, func(_ *config.Config, u *config.Upstream) {
		u.Read, u.Timeout, u.Deadline = config.DefaultUpstream().Read, 30*time.Second, 24*time.Hour
	})
}

// The provider is unfinished at our limit and ends a quarter of an hour later
// with a cost of 225: the hold is released only because a good read said
// "unfinished", and the late end is shown with its cost and decided (O-066 as
// 7-rules §7 has it).
func TestO066LateEndWithACost(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/accounts/"+w.get("/v1/accounts").items()[0].at("id")+"/credit", `{"amount":"200"}`, "Idempotency-Key", "c"))
		op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", priced("250"), "Idempotency-Key", "k")).at("id")
		w.pass(29 * time.Second)
		w.money("300", "250")
		w.pass(2 * time.Second)
		w.now(op, "expired")
		w.line(op, "read applied progress", 1)
		w.money("300", "0")
		w.pass(15 * time.Minute)
		late := done("task-1")
		late.cost = "225"
		w.want(http.StatusOK, w.callback(w.provider.created()[0].callback, event{id: "late", said: late}))
		w.now(op, "expired")
		w.review(op, "late_success")
		w.money("300", "0")
		id := w.get("/v1/reviews?open=true").items()[0].at("id")
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+id+"/resolve", `{"decision":"accept","note":"the customer wants it"}`))
		w.now(op, "succeeded")
		w.money("75", "0")
	}, reading(time.Hour, time.Hour, 30*time.Second))
}

// A poll loop has an end, and what it leaves can be found at the provider and
// asked for again (O-060 as 1-product D4 has it).
func TestO060BoundedPolling(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		op := w.submit("k")
		w.pass(20 * time.Minute)
		r := w.now(op, "expired")
		if r.at("task_id") != "task-1" || r.at("finished_at") == "" {
			w.Errorf("task %q, finished at %q", r.at("task_id"), r.at("finished_at"))
		}
		reads := w.provider.readAt()
		if want := 41; len(reads) > want { // ten minutes of one read in 15 s, and one at the deadline
			w.Errorf("%d reads, want at most %d", len(reads), want)
		}
		if last := reads[len(reads)-1]; time.Since(last) < 9*time.Minute {
			w.Errorf("the last read was %s ago: reading goes on after the end", time.Since(last))
		}
		w.money("100", "0")
	}, reading(15*time.Second, 15*time.Second, 10*time.Minute))
}

// Whatever the order of two events of one second, and however late one is
// dated, a terminal state stays (O-050).
func TestO050TimesProveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	for n, order := range [][]string{{"running", "failed"}, {"failed", "running"}, {"failed", "running"}} {
		op, c := w.running(string(rune('a' + n)))
		for i, state := range order {
			version := 2 + slices.Index([]string{"running", "failed"}, state)
			w.callback(c.callback, event{id: c.task + state, said: said{task: c.task, state: state, version: version + n/2*i*10}})
		}
		w.now(op, "failed")
	}
}
