package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
)

// cancel asks for a cancel; extra are headers.
func (w *world) cancel(op string, headers ...string) reply {
	w.Helper()
	return w.call(http.MethodPost, "/v1/operations/"+op+"/cancel", nil, headers...)
}

// A cancel against a provider that takes it, or misbehaves: what the provider
// says decides state and money, and it is asked boundedly (1-product D3).
func TestCancel(t *testing.T) {
	trouble := func(f sim.Fault, times int) func(*sim.Script) {
		return func(s *sim.Script) { s.Cancel, s.CancelTimes = f, times }
	}
	for _, c := range []struct {
		name   string
		script sim.Script
		// at is when it is asked for, after the submission.
		at        time.Duration
		state     string
		balance   string
		confirmed bool
		cancels   int
	}{
		{"waiting", scripted(func(s *sim.Script) { s.Start = 5 * time.Second }), 3 * time.Second, "canceled", "100", true, 1},
		{"begun", scripted(), 3 * time.Second, "canceled", "99.75", true, 1}, // the simulator asks a quarter of the price
		{"the answer is lost", scripted(trouble(sim.CancelLost, 1)), 3 * time.Second, "canceled", "99.75", true, 2},
		{"it fails twice", scripted(trouble(sim.CancelFailed, 2)), 3 * time.Second, "canceled", "99.75", true, 3},
		{"it fails for ever", scripted(trouble(sim.CancelFailed, 99), func(s *sim.Script) { s.End, s.Settle, s.Callbacks[0].At = 6*time.Minute, 6*time.Minute, 6*time.Minute }), 3 * time.Second, "succeeded", "99.4", false, 10},
		{"refused", scripted(trouble(sim.CancelRefused, 1)), 3 * time.Second, "succeeded", "99.4", false, 1},
		{"taken and ignored", scripted(trouble(sim.CancelIgnored, 1)), 3 * time.Second, "succeeded", "99.4", true, 1},
		{"a success came first", scripted(silent, func(s *sim.Script) { s.End, s.Settle = 5*time.Second, 5*time.Second }), 6 * time.Second, "succeeded", "99.4", false, 1},
		{"a failure came first", scripted(silent, func(s *sim.Script) { s.Final, s.End, s.Settle = pawl.Failed, 5*time.Second, 5*time.Second }), 6 * time.Second, "failed", "100", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, c.script, func(p *play) {
				p.endpoint()
				op := p.order()
				p.pass(c.at)
				r := p.want(http.StatusAccepted, p.cancel(op))
				if r.at("state") != "running" || r.at("cancel.requested_at") == "" || r.at("cancel.confirmed") != "false" || r.header.Get("Retry-After") == "" {
					p.Errorf("answered %s", r.body)
				}
				requested := r.at("cancel.requested_at")
				p.pass(time.Minute)
				if c.cancels > 3 {
					p.pass(6 * time.Minute)
				}
				end := p.now(op, c.state)
				if end.at("cancel.requested_at") != requested || end.at("cancel.confirmed") != fmt.Sprint(c.confirmed) {
					p.Errorf("cancel is %s, want confirmed %v", end.at("cancel"), c.confirmed)
				}
				p.money(c.balance, "0")
				p.review(op)
				if n := p.page().Cancels; n != c.cancels {
					p.Errorf("%d cancels were sent, want %d", n, c.cancels)
				}
				told := []string{"operation.running", "operation." + c.state}
				if c.state == "succeeded" {
					told = append(told, "operation.artifacts.ready")
				}
				p.told(op, told...)
				// Asked again, it is answered as it is, and nothing is sent.
				again := p.want(http.StatusOK, p.cancel(op))
				if again.at("state") != c.state || p.page().Cancels != c.cancels {
					p.Errorf("asked again: %s", again.body)
				}
			})
		})
	}
}

// What was never created is canceled at once, and no create goes out later
// (1-product D3, O-053).
func TestO053CancelBeforeTheCreate(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		op := w.submit("k")
		w.pass(10 * time.Second) // creates are not written, and tried again
		w.now(op, "pending")
		w.money("100", "1")
		r := w.want(http.StatusAccepted, w.cancel(op))
		if r.at("state") != "canceled" || r.at("cancel.confirmed") != "true" {
			t.Errorf("answered %s", r.body)
		}
		w.money("100", "0")
		tries := len(w.timeline(op))
		w.pass(time.Hour)
		w.now(op, "canceled")
		if n := len(w.timeline(op)); n != tries+1 { // the delivery
			t.Errorf("something was done after the end: %v", w.timeline(op))
		}
		w.told(op, "operation.canceled")
		w.line(op, "money release", 1)
	}, func(_ *config.Config, u *config.Upstream) { u.BaseURL = "http://127.0.0.1:9" })
}

// Of an unconfirmed operation a cancel is recorded, and carried out when the
// task is known (1-product D3).
func TestCancelUnconfirmed(t *testing.T) {
	script := scripted(withCreate(sim.CreateLost), func(s *sim.Script) {
		s.Callbacks = append([]sim.Callback{{Event: "running", Kind: sim.TellsRunning, At: 5 * time.Second}}, s.Callbacks...)
	})
	simulate(t, script, func(p *play) {
		op := p.order()
		p.pass(2 * time.Second)
		p.now(op, "unconfirmed")
		p.want(http.StatusAccepted, p.cancel(op))
		p.pass(2 * time.Second)
		p.now(op, "unconfirmed")
		if n := p.page().Cancels; n != 0 {
			p.Errorf("%d cancels of a task that nobody knows", n)
		}
		p.pass(2 * time.Second)
		p.now(op, "canceled")
		p.money("99.75", "0")
		if n := len(p.page().Creates); n != 1 {
			p.Errorf("%d creates", n)
		}
	})
}

// An upstream without a cancel says so, and one that is gone as well; nothing is
// changed (1-product D3).
func TestCancelUnsupported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	if r := w.want(http.StatusConflict, w.cancel(op)); r.at("reason") != "cancel_unsupported" {
		t.Errorf("answered %s", r.body)
	}
	w.drain()
	up := w.cfg.Upstreams["up"]
	delete(w.cfg.Upstreams, "up")
	w.start()
	if r := w.want(http.StatusConflict, w.cancel(op)); r.at("reason") != "upstream_unknown" {
		t.Errorf("answered %s", r.body)
	}
	if r := w.now(op, "running"); r.at("cancel") != "" {
		t.Errorf("cancel is %s", r.at("cancel"))
	}
	w.drain()
	w.cfg.Upstreams["up"] = up
	w.start()
	w.finish(op, c)
	w.want(http.StatusOK, w.cancel(op))
}

// A hundred cancels and the provider's callback at once: one cancel, one end,
// one charge, whichever comes first (O-074).
func TestO074CancelAndCallbackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.provider.accrued = "7"
	w.endpoint()
	op, c := w.ordered("k", "20")
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if r := w.cancel(op); r.status != http.StatusAccepted && r.status != http.StatusOK {
				t.Errorf("answered %d %s", r.status, r.body)
			}
		})
	}
	all.Go(func() {
		w.callback(c.callback, event{id: "e1", said: said{task: c.task, state: "canceled", cost: "7", settled: true}})
	})
	all.Wait()
	w.state(op, "canceled")
	w.money("93", "0")
	w.line(op, "money charge", 1)
	w.line(op, "money release", 1)
	w.review(op)
	w.told(op, "operation.running", "operation.canceled")
	if n := w.provider.canceled(); n > 1 {
		t.Errorf("%d cancels were sent", n)
	}
}

// One Idempotency-Key is one wish (7-rules R52).
func TestCancelOnceAKey(t *testing.T) {
	simulate(t, scripted(func(s *sim.Script) { s.Cancel, s.CancelTimes = sim.CancelRefused, 1 }), func(p *play) {
		op := p.order()
		p.pass(3 * time.Second)
		first := p.want(http.StatusAccepted, p.cancel(op, "Idempotency-Key", "stop"))
		p.pass(time.Second)
		again := p.want(http.StatusAccepted, p.cancel(op, "Idempotency-Key", "stop"))
		if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
			p.Errorf("replayed %q, then %q", first.header.Get("Idempotency-Replayed"), again.header.Get("Idempotency-Replayed"))
		}
		p.pass(time.Second)
		if n := p.page().Cancels; n != 1 {
			p.Errorf("%d cancels were sent, want 1", n)
		}
		p.want(http.StatusAccepted, p.cancel(op))
		p.pass(time.Second)
		if n := p.page().Cancels; n != 2 {
			p.Errorf("%d cancels were sent: a new wish is a new cancel", n)
		}
		p.want(http.StatusUnprocessableEntity, p.call(http.MethodPost, "/v1/operations/"+op+"/resolve", `{"decision":"failed"}`, "Idempotency-Key", "stop"))
	})
}

// At the deadline the provider is told to stop what it has not finished; then
// the operation expires and is released, and what the provider says later is
// judged by the rules (1-product D4).
func TestDeadlineStopsTheTask(t *testing.T) {
	long := func(s *sim.Script) { s.End, s.Settle, s.Callbacks = time.Hour, time.Hour, nil }
	for _, c := range []struct {
		name    string
		cancel  sim.Fault
		cancels int
	}{{"taken", "", 1}, {"refused", sim.CancelRefused, 1}, {"no answer", sim.CancelLost, 2}, {"down", sim.CancelFailed, 3}} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, scripted(long, func(s *sim.Script) {
				s.Cancel, s.CancelTimes = c.cancel, 99
				if c.cancel == sim.CancelLost {
					s.CancelTimes = 1
				}
			}), func(p *play) {
				p.endpoint()
				op := p.order()
				p.pass(100 * time.Second)
				r := p.now(op, "expired")
				if r.at("cancel.requested_at") == "" {
					p.Errorf("cancel is %s", r.at("cancel"))
				}
				p.money("100", "0")
				p.review(op)
				p.told(op, "operation.running", "operation.expired")
				if n := p.page().Cancels; n != c.cancels {
					p.Errorf("%d cancels were sent, want %d", n, c.cancels)
				}
			}, deadline(30*time.Second))
		})
	}
}

// late_success: accept corrects, reserves and charges again if there is credit
// for it; else a person is asked (1-product D4).
func TestLateSuccessIsAccepted(t *testing.T) {
	late := scripted(func(s *sim.Script) {
		s.End, s.Settle, s.Callbacks[0].At = time.Minute, time.Minute, time.Minute
		s.Cancel, s.CancelTimes = sim.CancelIgnored, 9
	})
	accept := func(_ *config.Config, u *config.Upstream) {
		u.Deadline, u.LateSuccess = 30*time.Second, config.LateAccept
	}
	t.Run("with credit", func(t *testing.T) {
		simulate(t, late, func(p *play) {
			p.endpoint()
			op := p.order()
			p.pass(50 * time.Second)
			p.now(op, "expired")
			p.money("100", "0")
			p.pass(20 * time.Second)
			if r := p.now(op, "succeeded"); r.at("result") == "" || r.at("cost.amount") != "0.600000000" {
				p.Errorf("%s", r.body)
			}
			p.money("99.4", "0")
			p.review(op)
			p.told(op, "operation.running", "operation.expired", "operation.succeeded", "operation.artifacts.ready")
			last := p.sink.attempts()[2]
			want := `"correction":{"from":"expired","actor":"system","reason":"late_success"}`
			if !strings.Contains(last.body, want) {
				p.Errorf("the event does not tell of the correction: %s", last.body)
			}
			p.line(op, "money reserve", 2)
			p.line(op, "money charge", 1)
		}, accept)
	})
	t.Run("without", func(t *testing.T) {
		simulate(t, late, func(p *play) {
			op := p.order()
			p.pass(50 * time.Second)
			acct := p.get("/v1/accounts").items()[0].at("id")
			p.want(http.StatusOK, p.call(http.MethodPost, "/v1/accounts/"+acct+"/credit", `{"amount":"-99.5"}`, "Idempotency-Key", "c"))
			p.pass(20 * time.Second)
			p.now(op, "expired")
			p.review(op, "late_success")
			p.money("0.5", "0")
			r := p.get("/v1/reviews").items()[0]
			if r.at("reported.state") != "succeeded" || r.at("reported.cost.amount") != "0.600000000" || r.at("reported.cost.settled") != "true" {
				p.Errorf("its cost is not shown: %v", r.fields)
			}
			path := "/v1/reviews/" + r.at("id") + "/resolve"
			p.want(http.StatusPaymentRequired, p.call(http.MethodPost, path, `{"decision":"accept"}`))
			p.review(op, "late_success")
			p.want(http.StatusOK, p.call(http.MethodPost, "/v1/accounts/"+acct+"/credit", `{"amount":"0.1"}`, "Idempotency-Key", "c2"))
			p.want(http.StatusOK, p.call(http.MethodPost, path, `{"decision":"accept"}`))
			p.now(op, "succeeded")
			p.money("0", "0")
		}, accept)
	})
}
