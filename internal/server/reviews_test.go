package server

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
)

// fault is how a reason of reviews comes about for real, and what each of its
// decisions must do.
type fault struct {
	script sim.Script
	change []settings
	// before runs before the submission, nil for nothing.
	before func(*play)
	// after is how long it takes until a person is asked.
	after time.Duration
	// loose says that the review is about no operation.
	loose bool
	// effects are what is checked after each decision, given the operation.
	effects map[string]effect
}

// effect is what a decision must do. The body goes with the decision.
type effect struct {
	body  func(p *play, op string) map[string]any
	check func(p *play, op string)
}

func then(check func(p *play, op string)) effect { return effect{check: check} }

// stays checks that nothing of an operation was changed.
func stays(state, balance, reserved string) effect {
	return then(func(p *play, op string) {
		p.now(op, state)
		p.money(balance, reserved)
		p.review(op)
	})
}

// silent is a script whose callbacks are all lost.
func silent(s *sim.Script) { s.Callbacks = nil }

func withCreate(f sim.Fault) func(*sim.Script) {
	return func(s *sim.Script) { s.Create, s.CreateTimes = f, 1 }
}

func further(c sim.Callback) func(*sim.Script) {
	return func(s *sim.Script) { s.Callbacks = append(s.Callbacks, c) }
}

// everyFault has one entry for each reason that can come about.
func everyFault() map[pawl.Reason]fault {
	const far = 1000 * time.Hour
	readsAgain := func(reason string) effect {
		return then(func(p *play, op string) {
			reads := p.page().Tasks[0].Reads
			p.review(op)
			p.pass(90 * time.Second)
			if n := p.page().Tasks[0].Reads; n <= reads {
				p.Errorf("%d reads after the decision, %d before", n, reads)
			}
			p.review(op, reason) // nothing has changed, so it is asked anew
			p.money("100", "1")
		})
	}
	expires := then(func(p *play, op string) { p.now(op, "expired"); p.money("100", "0"); p.review(op) })
	charged := then(func(p *play, op string) {
		if r := p.now(op, "succeeded"); r.at("cost.settled") != "true" {
			p.Errorf("cost %s", r.at("cost"))
		}
		p.money("99", "0")
		p.review(op)
	})
	released := then(func(p *play, op string) { p.now(op, "succeeded"); p.money("100", "0"); p.review(op) })
	return map[pawl.Reason]fault{
		pawl.ReviewUnconfirmed: {
			script: scripted(withCreate(sim.CreateLost), silent), change: []settings{deadline(10 * time.Second)}, after: 11 * time.Second,
			effects: map[string]effect{
				pawl.DecideCreated: {
					func(p *play, _ string) map[string]any { return map[string]any{"task_id": p.page().Tasks[0].ID} },
					func(p *play, op string) {
						p.now(op, "running")
						p.pass(5 * time.Second)
						p.now(op, "succeeded")
						p.money("99.4", "0")
					},
				},
				pawl.DecideNotCreated: then(func(p *play, op string) {
					p.pass(time.Second)
					p.now(op, "running")
					if n := len(p.page().Creates); n != 2 {
						p.Errorf("%d creates, want a second one", n)
					}
				}),
				pawl.DecideFailed: then(func(p *play, op string) { p.now(op, "failed"); p.money("100", "0") }),
			},
		},
		pawl.ReviewOrphan: {
			script: scripted(withCreate(sim.CreateLost), func(s *sim.Script) { s.Callbacks[0].Fault = sim.CallbackNoToken }),
			change: []settings{func(_ *config.Config, u *config.Upstream) { u.Grace = 10 * time.Second }}, after: 45 * time.Second, loose: true,
			effects: map[string]effect{
				pawl.DecideAttach: {
					func(_ *play, op string) map[string]any { return map[string]any{"operation_id": op} },
					func(p *play, op string) {
						if r := p.now(op, "succeeded"); r.at("task_id") != p.page().Tasks[0].ID {
							p.Errorf("task %s", r.at("task_id"))
						}
						p.money("99.4", "0")
					},
				},
				pawl.DecideDiscard: then(func(p *play, op string) {
					p.now(op, "unconfirmed")
					p.money("100", "1")
					if n := len(p.get("/v1/events?direction=inbound&verdict=orphan").items()); n != 1 {
						p.Errorf("%d orphans are stored, want 1", n)
					}
					p.pass(time.Minute)
					if n := len(p.get("/v1/reviews").items()); n != 0 {
						p.Errorf("%d reviews: it is asked for again", n)
					}
				}),
			},
		},
		pawl.ReviewConflict: {
			script: scripted(further(sim.Callback{Event: "conflict", Kind: sim.TellsEnd, Fault: sim.CallbackConflict, At: 11 * time.Second})), after: 20 * time.Second,
			effects: map[string]effect{
				pawl.DecideAccept: then(func(p *play, op string) {
					p.now(op, "failed")
					p.money("100", "0")
					p.review(op)
					p.line(op, "correct conflict", 1)
				}),
				pawl.DecideKeep: stays("succeeded", "99.4", "0"),
			},
		},
		pawl.ReviewSecondTask: {
			script: scripted(withCreate(sim.CreateOther), func(s *sim.Script) {
				s.Start = 0
				s.Callbacks = []sim.Callback{{Event: "running", Kind: sim.TellsRunning, Fault: sim.CallbackEarly}}
			}), after: time.Second,
			effects: map[string]effect{pawl.DecideKeep: then(func(p *play, op string) {
				if r := p.now(op, "running"); r.at("task_id") != p.page().Tasks[0].ID {
					p.Errorf("task %s, want the first", r.at("task_id"))
				}
				p.pass(30 * time.Second)
				p.now(op, "succeeded")
			})},
		},
		pawl.ReviewUnknownState: {
			script: scripted(silent, func(s *sim.Script) { s.Reads, s.ReadTimes = sim.ReadUnknownState, 1 }), after: 3 * time.Second,
			effects: map[string]effect{
				pawl.DecideRead: then(func(p *play, op string) {
					p.pass(time.Second)
					if n := p.page().Tasks[0].Reads; n != 2 {
						p.Errorf("%d reads, want one more at once", n)
					}
					p.review(op)
				}),
				pawl.DecideKeep: then(func(p *play, op string) { p.now(op, "running"); p.pass(30 * time.Second); p.now(op, "succeeded") }),
			},
		},
		pawl.ReviewUnknownType: {
			script: scripted(further(sim.Callback{Event: "odd", Kind: sim.TellsRunning, Fault: sim.CallbackUnknownType, At: time.Second})), after: 3 * time.Second, loose: true,
			effects: map[string]effect{pawl.DecideReprocess: then(func(p *play, _ string) {
				// Nobody has mended the description: it is asked anew.
				if n := len(p.get("/v1/reviews?reason=unknown_type").items()); n != 1 {
					p.Errorf("%d open reviews, want a new one", n)
				}
			}), pawl.DecideDiscard: then(func(p *play, op string) {
				if n := len(p.get("/v1/events?direction=inbound&verdict=unknown_type").items()); n == 0 {
					p.Error("the event is not stored")
				}
				p.pass(20 * time.Second)
				p.now(op, "succeeded")
			})},
		},
		pawl.ReviewDeadlineUnread: {
			script: scripted(silent, func(s *sim.Script) { s.Reads, s.ReadTimes = sim.ReadFailed, 1000 }),
			change: []settings{deadline(30 * time.Second)}, after: 2 * time.Minute,
			effects: map[string]effect{pawl.DecideRead: readsAgain("deadline_unread"), pawl.DecideExpired: expires},
		},
		pawl.ReviewLateSuccess: {
			script: scripted(func(s *sim.Script) {
				s.End, s.Settle, s.Callbacks[0].At = time.Minute, time.Minute, time.Minute
				s.Cancel, s.CancelTimes = sim.CancelIgnored, 9
			}),
			change: []settings{deadline(30 * time.Second)}, after: 70 * time.Second,
			effects: map[string]effect{
				pawl.DecideAccept: then(func(p *play, op string) {
					if r := p.now(op, "succeeded"); r.at("result") == "" {
						p.Error("the result is lost")
					}
					p.money("99.4", "0")
					p.review(op)
					p.line(op, "correct late_success", 1)
				}),
				pawl.DecideKeep: stays("expired", "100", "0"),
			},
		},
		pawl.ReviewTaskUnknown: {
			script: scripted(silent, func(s *sim.Script) { s.Reads, s.ReadTimes = sim.ReadNotFound, 1000 }), after: 2 * time.Minute,
			effects: map[string]effect{pawl.DecideRead: readsAgain("task_unknown"), pawl.DecideExpired: expires},
		},
		pawl.ReviewNoResult: {
			script: scripted(func(s *sim.Script) { s.Result = sim.ResultMissing }), after: 12 * time.Second,
			effects: map[string]effect{pawl.DecideKeep: stays("succeeded", "99.4", "0")},
		},
		pawl.ReviewCurrency: {
			script: scripted(func(s *sim.Script) { s.Currency = "EUR" }), after: 12 * time.Second,
			effects: map[string]effect{pawl.DecideCharge: charged, pawl.DecideRelease: released, pawl.DecideKeep: stays("succeeded", "100", "1")},
		},
		pawl.ReviewSettleOverdue: {
			script: scripted(func(s *sim.Script) { s.Settles, s.Settle = sim.SettleByRead, far }),
			change: []settings{func(_ *config.Config, u *config.Upstream) { u.SettleWithin = 30 * time.Second }}, after: 70 * time.Second,
			effects: map[string]effect{pawl.DecideRead: readsAgain("settle_overdue"), pawl.DecideCharge: charged, pawl.DecideRelease: released},
		},
		pawl.ReviewCapture: {
			script: scripted(func(s *sim.Script) { s.Result = sim.LinkGone }), after: time.Minute,
			effects: map[string]effect{
				pawl.DecideRetry: then(func(p *play, op string) {
					creates := len(p.page().Creates)
					p.pass(time.Minute)
					p.now(op, "succeeded")
					p.money("99.4", "0")
					p.review(op, "capture") // the link is still refused, so it is asked anew
					if n := len(p.page().Creates); n != creates {
						p.Errorf("%d creates, want no more than %d", n, creates)
					}
				}),
				pawl.DecideKeep: stays("succeeded", "99.4", "0"),
			},
		},
		pawl.ReviewRelease: {
			script: scripted(), change: []settings{func(_ *config.Config, u *config.Upstream) { u.Release = config.ReleaseHold }}, after: 12 * time.Second,
			effects: map[string]effect{
				pawl.DecideRelease: then(func(p *play, op string) {
					if r := p.now(op, "succeeded"); r.at("result") == "" || r.at("release") != "released" || r.at("artifacts.0.state") != "captured" {
						p.Errorf("%s", r.body)
					}
					p.money("99.4", "0")
				}),
				pawl.DecideKeep: then(func(p *play, op string) {
					if r := p.now(op, "succeeded"); r.at("result") != "" || r.at("release") != "hold" {
						p.Errorf("%s", r.body)
					}
				}),
			},
		},
		pawl.ReviewDeadLetter: {
			script: scripted(), after: 12 * time.Second, loose: true,
			before: func(p *play) {
				p.sink.script(func(_ int, d delivery) (int, string) {
					if d.kind == "operation.succeeded" {
						return http.StatusBadRequest, ""
					}
					return http.StatusNoContent, ""
				})
				p.endpoint("types", []string{"operation.running", "operation.succeeded"})
			},
			effects: map[string]effect{
				pawl.DecideRetry: {
					func(p *play, _ string) map[string]any { p.sink.script(nil); return nil },
					func(p *play, op string) {
						p.pass(time.Second)
						p.deliveries(op, 2, "delivered")
						if n := len(p.sink.attempts()); n != 3 {
							p.Errorf("%d attempts, want one more", n)
						}
					},
				},
				pawl.DecideDiscard: then(func(p *play, op string) {
					p.pass(time.Hour)
					p.deliveries(op, 1, "dead")
					if n := len(p.sink.attempts()); n != 2 {
						p.Errorf("%d attempts, want no more", n)
					}
				}),
			},
		},
		pawl.ReviewOverReservation: {
			script: scripted(func(s *sim.Script) { s.Cost = 3 * pawl.AmountScale / 2 }), after: 12 * time.Second,
			effects: map[string]effect{pawl.DecideKeep: stays("succeeded", "99", "0")},
		},
		pawl.ReviewBodyDiffers: {
			script: scripted(further(sim.Callback{Event: "end", Kind: sim.TellsEnd, Fault: sim.CallbackDiffers, At: 11 * time.Second})), after: 20 * time.Second,
			effects: map[string]effect{pawl.DecideKeep: stays("succeeded", "99.4", "0")},
		},
	}
}

// Every reason is opened by a real fault, shown, and decided each way; what the
// table says of the decision happens, and happens once (7-rules §6).
func TestEveryReasonOfReviews(t *testing.T) {
	all := everyFault()
	later := []pawl.Reason{pawl.ReviewCompletionOverdue} // nothing opens it yet
	for reason := pawl.ReviewUnconfirmed; reason <= pawl.ReviewBodyDiffers; reason++ {
		f, known := all[reason]
		if known == slices.Contains(later, reason) {
			t.Errorf("%s: a fault must open it", reason)
		}
		if !known {
			continue
		}
		for _, decision := range reason.Rule().Decisions {
			e, known := f.effects[decision]
			if !known {
				t.Errorf("%s: no test of the decision %s", reason, decision)
				continue
			}
			t.Run(reason.String()+" "+decision, func(t *testing.T) {
				simulate(t, f.script, func(p *play) { p.decided(reason, decision, f, e) }, f.change...)
			})
		}
	}
}

// decided plays a fault, looks at the review that it opens, and decides it.
func (p *play) decided(reason pawl.Reason, decision string, f fault, e effect) {
	if f.before != nil {
		f.before(p)
	}
	op := p.order()
	p.pass(f.after)
	open := p.get("/v1/reviews?reason=" + reason.String()).items()
	if len(open) != 1 {
		p.Fatalf("%d open reviews, want 1: %v", len(open), p.timeline(op))
	}
	path := "/v1/reviews/" + open[0].at("id")
	shown := p.get(path)
	if shown.at("decisions") != fmt.Sprint(reason.Rule().Decisions) || shown.at("meaning") != reason.Rule().Meaning || shown.at("owner") != "media team" && reason != pawl.ReviewDeadLetter {
		p.Errorf("it is shown as %s", shown.body)
	}
	about := op
	if f.loose {
		about = ""
	}
	if shown.at("operation_id") != about || !f.loose && p.operation(op).at("review_id") != shown.at("id") {
		p.Errorf("it is about %q, and its operation shows %q", shown.at("operation_id"), p.operation(op).at("review_id"))
	}
	if r := p.want(http.StatusOK, p.call(http.MethodPost, path+"/assign", `{"owner":"bea"}`)); r.at("owner") != "bea" {
		p.Errorf("assigned: %s", r.body)
	}
	body := map[string]any{"decision": "perhaps", "note": "asked them"}
	p.want(http.StatusBadRequest, p.call(http.MethodPost, path+"/resolve", body))
	if e.body != nil {
		for name, value := range e.body(p, op) {
			body[name] = value
		}
	}
	body["decision"] = decision
	first := p.want(http.StatusOK, p.call(http.MethodPost, path+"/resolve", body, "Idempotency-Key", "decide"))
	if first.at("decision") != decision || first.at("note") != "asked them" || first.at("closed_at") == "" || first.at("decided_by") == "" {
		p.Errorf("decided: %s", first.body)
	}
	again := p.want(http.StatusOK, p.call(http.MethodPost, path+"/resolve", body, "Idempotency-Key", "decide"))
	if again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" {
		p.Errorf("the same key is answered %s", again.body)
	}
	if r := p.want(http.StatusConflict, p.call(http.MethodPost, path+"/resolve", body)); r.at("reason") != "already_decided" {
		p.Errorf("decided twice: %s", r.body)
	}
	e.check(p, op)
}
