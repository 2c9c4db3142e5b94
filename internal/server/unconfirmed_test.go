package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// lose makes the provider take creates and lose its answers.
func (p *provider) lose() {
	p.script(func(int, create) *answer { return &answer{cut: true} }, nil)
}

// look sets how lookups are answered; nil finds what was created.
func (p *provider) look(answers func(int, string) *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looking = answers
}

func notFound(int, string) *answer { return &answer{status: http.StatusNotFound} }

// resolve decides an unconfirmed operation.
func (w *world) resolve(op, decision, task string) reply {
	w.Helper()
	return w.call(http.MethodPost, "/v1/operations/"+op+"/resolve", map[string]string{"decision": decision, "task_id": task, "note": "asked them"})
}

// A create whose answer does not come in time is never sent again blindly: its
// money is held, after a bound a person is asked, and a callback attaches the
// task (1-product B2, O-007).
func TestO007ReplyNeverArrives(t *testing.T) {
	for name, late := range map[string]bool{"before the bound": false, "after the bound": true} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, "body-timestamp", func(w *world) {
				w.endpoint()
				w.provider.call("P-1")
				w.provider.script(func(int, create) *answer { return &answer{hang: true} }, nil)
				op := w.submit("k")
				w.pass(6 * time.Second) // the client gives up after 5 s
				w.now(op, "unconfirmed")
				w.review(op)
				told := []string{"operation.unconfirmed", "operation.running", "operation.succeeded"}
				if late {
					w.pass(30 * time.Second)
					w.review(op, "unconfirmed")
					told = []string{"operation.unconfirmed", "operation.review.opened", "operation.running", "operation.review.closed", "operation.succeeded"}
				}
				w.money("100", "1")
				c := w.provider.created()[0]
				if r := w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: done("P-1")})); r.at("verdict") != "applied" {
					w.Errorf("answered %s", r.body)
				}
				if r := w.now(op, "succeeded"); r.at("task_id") != "P-1" {
					w.Errorf("task %q", r.at("task_id"))
				}
				w.review(op)
				w.money("99", "0")
				w.told(op, told...)
				w.line(op, "create_failed unknown", 1)
				w.pass(time.Minute)
				if n := len(w.provider.created()); n != 1 {
					w.Errorf("%d creates, want 1", n)
				}
			}, reading(time.Hour, time.Hour, 30*time.Second))
		})
	}
}

// The upstream's lookup by our reference finds the task (1-product B2).
func TestLostAnswerThenLookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", reading(50*time.Millisecond, 50*time.Millisecond, time.Hour))
	w.endpoint()
	w.provider.lose()
	w.provider.look(func(n int, _ string) *answer {
		if n < 3 {
			return &answer{status: http.StatusNotFound} // not there yet
		}
		return nil
	})
	op := w.submit("k")
	w.state(op, "running")
	if ref := w.provider.created()[0].ref; ref != op {
		t.Errorf("the reference is %q, want %s", ref, op)
	}
	w.provider.say(done("task-1"))
	w.state(op, "succeeded")
	w.line(op, "lookup not_found", 2)
	w.told(op, "operation.unconfirmed", "operation.running", "operation.succeeded")
	w.money("99.4", "0")
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
}

// Neither callback nor lookup: at the deadline a person is asked, and every
// decision does what it says (1-product B2, D4; 7-rules R8).
func TestUnconfirmedIsDecided(t *testing.T) {
	for _, dialect := range []string{"sim", "body-timestamp"} {
		for _, decision := range []string{"created", "not_created", "failed"} {
			t.Run(dialect+" "+decision, func(t *testing.T) {
				inVirtualTime(t, dialect, func(w *world) {
					w.endpoint()
					w.provider.lose()
					w.provider.look(notFound)
					op := w.submit("k")
					w.pass(5 * time.Second)
					w.now(op, "unconfirmed")
					w.review(op)
					w.pass(6 * time.Second)
					w.now(op, "unconfirmed")
					w.review(op, "unconfirmed")
					w.money("100", "1")
					w.provider.script(nil, nil)
					w.provider.say(done("task-1"))
					w.want(http.StatusBadRequest, w.resolve(op, "perhaps", ""))
					w.want(http.StatusBadRequest, w.resolve(op, "created", ""))
					w.review(op, "unconfirmed") // a refused decision decides nothing
					w.want(http.StatusOK, w.resolve(op, decision, map[string]string{"created": "task-1"}[decision]))
					w.review(op)
					begun := []string{"operation.unconfirmed", "operation.review.opened", "operation.review.closed"}
					creates := 1
					switch decision {
					case "failed":
						w.now(op, "failed")
						w.money("100", "0")
						begun = append(begun, "operation.failed")
					case "not_created":
						creates = 2
						w.pass(time.Second)
						w.now(op, "running")
						w.money("100", "1")
						begun = append(begun, "operation.corrected", "operation.running")
					case "created":
						w.pass(4 * time.Second) // read as after any acceptance
						w.now(op, "succeeded")
						begun = append(begun, "operation.running", "operation.succeeded")
					}
					w.told(op, begun...)
					if n := len(w.provider.created()); n != creates {
						w.Errorf("%d creates, want %d", n, creates)
					}
					w.want(http.StatusConflict, w.resolve(op, "failed", ""))
					w.line(op, "resolve "+decision, 1)
				}, reading(time.Second, time.Second, 10*time.Second))
			})
		}
	}
}

// A task that another operation has cannot be given to a second one.
func TestUnconfirmedCreatedWithForeignTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	_, first := w.running("a")
	w.provider.lose()
	op := w.submit("b")
	w.state(op, "unconfirmed")
	w.want(http.StatusConflict, w.resolve(op, "created", first.task))
	w.now(op, "unconfirmed")
	w.money("100", "2")
}

// A second task for an operation is for a person; the first stays
// (7-rules §4).
func TestSecondTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	reached, open := w.provider.gate()
	op := w.submit("k")
	<-reached
	c := w.provider.created()[0]
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", kind: "ai.task.updated", said: said{task: "task-first", state: "running", version: 1}}))
	open()
	w.eventually("no review was opened", func() bool { return len(w.reviews(op)) > 0 })
	w.review(op, "second_task")
	if r := w.now(op, "running"); r.at("task_id") != "task-first" {
		t.Errorf("task %s, want task-first", r.at("task_id"))
	}
}

// What a create learned outlasts a ledger that cannot be written for a while
// (1-product B1, C2).
func TestStoreUnavailableAtCreateAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	reached, open := w.provider.gate()
	op := w.submit("k")
	<-reached
	w.disk.state.Store(full)
	open()
	w.eventually("the answer was not recorded, in vain", func() bool { return w.disk.refused.Load() > 1 })
	if n := len(w.get("/v1/operations?state=pending").items()); n != 1 {
		t.Errorf("%d operations are pending, want 1", n)
	}
	w.disk.state.Store(works)
	w.state(op, "running")
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
}

// Answers of a create that are final: the operation fails with a code, and the
// money is released (1-product B4).
func TestCreateRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	for status, code := range map[int]string{
		400: "invalid_request", 404: "invalid_request", 405: "invalid_request", 413: "invalid_request", 415: "invalid_request",
		422: "invalid_request", 451: "content_rejected", 302: "upstream_failed",
	} {
		body := map[string]any{"error": map[string]string{"code": "odd", "message": "no"}}
		w.provider.script(func(int, create) *answer { return &answer{status: status, body: body} }, nil)
		before := len(w.provider.created())
		op := w.submit(fmt.Sprint("k-", status))
		r := w.state(op, "failed")
		if r.at("error.code") != code || r.at("error.upstream_code") != "odd" || r.at("error.message") != "no" {
			t.Errorf("%d: error %s", status, r.at("error"))
		}
		if n := len(w.provider.created()) - before; n != 1 {
			t.Errorf("%d: %d creates", status, n)
		}
		w.money("100", "0")
		w.line(op, "create_failed refused", 1)
		w.told(op, "operation.failed")
	}
}

// Answers of a create after which the task may exist: never sent again where
// the create is not idempotent, the money held (1-product B2, B4).
func TestCreateUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	n := 0
	for name, a := range map[string]answer{
		"408": {status: 408}, "409": {status: 409}, "425": {status: 425}, "500": {status: 500}, "502": {status: 502}, "503": {status: 503, retryAfter: "1"},
		"no task id": {status: 202, body: map[string]any{"status": "pending"}}, "cut": {cut: true}, "no JSON": {status: 200, body: "yes"},
	} {
		w.provider.script(func(int, create) *answer { return &a }, nil)
		op := w.submit("k-" + strings.ReplaceAll(name, " ", "-"))
		w.state(op, "unconfirmed")
		n++
		w.money("100", fmt.Sprint(n))
		if got := len(w.provider.created()); got != n {
			t.Errorf("%s: %d creates, want %d", name, got, n)
		}
		w.line(op, "create_failed unknown", 1)
	}
}

// The same where the create is idempotent: it is repeated under its key, and
// there is one task. Every wire attempt is in the timeline, and where the
// provider does not honour the key there is one alone, also on a kept connection
// that closes after the whole request was read (B2, B4, O-008).
func TestO008ResentPOST(t *testing.T) {
	for name, a := range map[string]answer{"500": {status: 500}, "cut": {cut: true}, "hang": {hang: true}} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, "media-v2", func(w *world) { w.resent(a, 3, "running") })
		})
		t.Run(name+", key not honoured", func(t *testing.T) {
			inVirtualTime(t, "media-v2", func(w *world) { w.resent(a, 1, "unconfirmed") }, func(_ *config.Config, u *config.Upstream) {
				u.Idempotent = &config.Idempotent{}
			})
		})
	}
}

// resent submits a job on a connection that was used before; its first two
// creates are answered so.
func (w *world) resent(a answer, creates int, state string) {
	w.Helper()
	w.submit("warm")
	w.pass(time.Second)
	w.endpoint()
	w.provider.script(func(n int, _ create) *answer {
		if n < 4 {
			return &a
		}
		return nil
	}, nil)
	op := w.submit("k")
	w.pass(20 * time.Second)
	w.now(op, state)
	created := w.provider.created()[1:]
	if len(created) != creates {
		w.Fatalf("%d creates, want %d", len(created), creates)
	}
	for _, c := range created {
		if c.task != "task-2" || (c.key == "") != (creates == 1) || c.key != created[0].key || c.body != created[0].body {
			w.Errorf("create %+v, want the first one again", c)
		}
	}
	w.line(op, "create", creates)
	w.told(op, "operation."+state)
	w.money("100", "2")
}

// After 402 and 429 the operation waits, as long as the provider says
// (1-product B4).
func TestCreateWaits(t *testing.T) {
	for status, wait := range map[int]time.Duration{429: 7 * time.Second, 402: time.Second} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inVirtualTime(t, "sim", func(w *world) {
				w.provider.script(func(n int, _ create) *answer {
					if n == 1 {
						a := &answer{status: status}
						if status == 429 {
							a.retryAfter = "7"
						}
						return a
					}
					return nil
				}, nil)
				op := w.submit("k")
				w.pass(500 * time.Millisecond)
				w.now(op, "pending")
				w.money("100", "1")
				w.pass(10 * time.Second)
				w.now(op, "running")
				if c := w.provider.created(); len(c) != 2 || !near(c[1].at.Sub(c[0].at), wait) {
					w.Errorf("creates %+v, want two, %s apart", c, wait)
				}
				w.line(op, "create_failed wait", 1)
			})
		})
	}
}

// A refused credential stops the upstream's creates: operations stay pending,
// and go on when it is mended (1-product B4).
func TestCreateUnauthorized(t *testing.T) {
	for _, status := range []int{401, 403} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inVirtualTime(t, "sim", func(w *world) {
				w.provider.script(func(int, create) *answer { return &answer{status: status} }, nil)
				first := w.submit("a")
				w.pass(time.Second)
				second := w.submit("b")
				w.pass(20 * time.Second)
				w.now(first, "pending")
				w.now(second, "pending")
				if n := len(w.provider.created()); n != 1 {
					w.Errorf("%d creates while the upstream is paused, want 1", n)
				}
				w.money("100", "2")
				paused := func() string { return w.get("/v1/upstreams").body }
				if text := paused(); !strings.Contains(text, `"paused":[{"work":"submit","until":"`) || !strings.Contains(text, "upstream_unauthorized") {
					w.Errorf("the pause is not shown: %s", text)
				}
				w.provider.script(nil, nil)
				w.pass(20 * time.Second)
				w.now(first, "running")
				w.now(second, "running")
				if text := paused(); !strings.Contains(text, `"paused":[]`) {
					w.Errorf("the pause is still shown: %s", text)
				}
				w.line(first, "create_failed unauthorized", 1)
				w.line(first, "create", 2)
			})
		})
	}
}

// Where nothing was written a create is tried again, ten times at the most;
// then the operation fails and its money is released (1-product B4).
func TestCreateNotWritten(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		op := w.submit("k")
		w.pass(3 * time.Second)
		w.now(op, "pending")
		w.money("100", "1")
		w.pass(330 * time.Second) // 1+2+4+8+16+32+60+60+60 s, ±10 %
		r := w.now(op, "failed")
		if r.at("error.code") != "upstream_unavailable" || r.at("attempts") != "10" {
			w.Errorf("error %s after %s attempts", r.at("error.code"), r.at("attempts"))
		}
		w.line(op, "create_failed not_written", 10)
		w.money("100", "0")
		w.told(op, "operation.failed")
	}, func(_ *config.Config, u *config.Upstream) { u.BaseURL = "http://127.0.0.1:9" })
	t.Run("then it works", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "sim", func(_ *config.Config, u *config.Upstream) { u.BaseURL = "http://127.0.0.1:1" })
		op := w.submit("k")
		w.eventually("nothing was tried", func() bool { return slices.Contains(w.timeline(op), "create_failed not_written") })
		w.drain()
		up := w.cfg.Upstreams["up"]
		up.BaseURL = w.provider.url
		w.cfg.Upstreams["up"] = up
		w.start()
		w.state(op, "running")
		w.money("100", "1")
		if n := len(w.provider.created()); n != 1 {
			t.Errorf("%d creates, want 1", n)
		}
	})
}
