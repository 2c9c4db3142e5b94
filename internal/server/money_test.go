package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// priced is a job with another price, or none.
func priced(amount string) map[string]any {
	j := job("a red kite")
	delete(j, "expected_cost")
	if amount != "" {
		j["expected_cost"] = map[string]any{"amount": amount, "currency": "USD"}
	}
	return j
}

// ordered submits a job of a price and waits until the provider has it.
func (w *world) ordered(key, amount string) (op string, c create) {
	w.Helper()
	op = w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", priced(amount), "Idempotency-Key", key)).at("id")
	w.state(op, "running")
	created := w.provider.created()
	return op, created[len(created)-1]
}

// A success whose cost is not final keeps its reservation until it is
// (1-product F2).
func TestSettledLater(t *testing.T) {
	t.Parallel()
	open := func(task string) said { s := done(task); s.settled, s.cost = false, "0.9"; return s }
	t.Run("by callback", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "media-v2")
		w.endpoint()
		op, c := w.running("k")
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: open(c.task)}))
		if r := w.now(op, "succeeded"); r.at("cost.settled") != "false" || r.at("cost.amount") != "1.000000000" {
			t.Errorf("cost %s", r.at("cost"))
		}
		w.money("100", "1")
		r := w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e2", said: done(c.task)}))
		if r.at("verdict") != "applied" {
			t.Errorf("answered %s", r.body)
		}
		if r := w.now(op, "succeeded"); r.at("cost.settled") != "true" || r.at("cost.amount") != "0.600000000" {
			t.Errorf("cost %s", r.at("cost"))
		}
		w.money("99.4", "0")
		w.line(op, "callback applied settled", 1)
		w.told(op, "operation.running", "operation.succeeded", "operation.settled")
	})
	t.Run("by read", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "media-v2", reading(50*time.Millisecond, 100*time.Millisecond, time.Hour))
		w.endpoint()
		op, c := w.running("k")
		w.provider.say(open(c.task))
		w.state(op, "succeeded")
		w.money("100", "1")
		w.provider.say(done(c.task))
		w.eventually("never settled", func() bool { return w.operation(op).at("cost.settled") == "true" })
		w.money("99.4", "0")
		w.line(op, "read applied settled", 1)
		w.told(op, "operation.running", "operation.succeeded", "operation.settled")
	})
	t.Run("never", func(t *testing.T) {
		inVirtualTime(t, "media-v2", func(w *world) {
			op := w.submit("k")
			w.provider.script(nil, func(int, string) *answer { return &answer{status: 200, body: w.provider.status(open("task-1"))} })
			w.pass(20 * time.Second)
			w.now(op, "succeeded")
			w.review(op, "settle_overdue")
			w.money("100", "1")
			id := w.get("/v1/reviews?open=true").items()[0].at("id")
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+id+"/resolve", `{"decision":"release"}`))
			w.money("100", "0")
			w.review(op)
		}, reading(time.Second, 2*time.Second, time.Hour), func(_ *config.Config, u *config.Upstream) { u.SettleWithin = 10 * time.Second })
	})
}

// The money of an end, by what the provider says (1-product F2; R27, R29).
func TestMoneyOfAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	balance := 100.0
	for _, tc := range []struct {
		name    string
		end     said
		charged float64
		held    string
		state   string
		reviews []string
	}{
		{"exact", said{state: "succeeded", cost: "1", settled: true}, 1, "0", "succeeded", nil},
		{"less", said{state: "succeeded", cost: "2.5e-1", settled: true}, 0.25, "0", "succeeded", nil},
		{"above the reservation", said{state: "succeeded", cost: "1.5", settled: true}, 1, "0", "succeeded", []string{"over_reservation"}},
		{"failed", said{state: "failed", cost: "0.7", settled: true}, 0, "0", "failed", nil},
		{"expired", said{state: "expired", cost: "0.7", settled: true}, 0, "0", "expired", nil},
		{"O-072 canceled, with a figure", said{state: "canceled", cost: "0.25", settled: true}, 0.25, "0", "canceled", nil},
		{"canceled, without one", said{state: "canceled", settled: true}, 0, "0", "canceled", nil},
		{"another currency", said{state: "succeeded", cost: "0.5", currency: "EUR", settled: true}, 0, "1", "succeeded", []string{"currency"}},
	} {
		op, c := w.running(strings.ReplaceAll(tc.name, " ", "-"))
		tc.end.task = c.task
		if tc.state == "succeeded" {
			tc.end.result = `{}`
		}
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e-" + c.task, said: tc.end}))
		w.now(op, tc.state)
		w.review(op, tc.reviews...)
		balance -= tc.charged
		t.Log(tc.name)
		w.money(fmt.Sprint(balance), tc.held)
	}
	// A person ends what could not be compared.
	id := w.get("/v1/reviews?open=true&reason=currency").items()[0].at("id")
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+id+"/resolve", `{"decision":"charge"}`))
	w.money(fmt.Sprint(balance-1), "0")
}

// Costs after the end are cumulative totals: only a rise is booked, up to the
// reservation (7-rules R29, O-071, O-065).
func TestO071CumulativeTotals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.ordered("k", "5")
	for i, step := range []struct{ total, balance string }{
		{"1", "99"}, {"1", "99"}, {"1.5", "98.5"}, {"1", "98.5"}, {"9", "95"}, {"9", "95"},
	} {
		end := done(c.task)
		end.cost = step.total
		w.callback(c.callback, event{id: fmt.Sprintf("e%d", i), said: end})
		w.money(step.balance, "0")
	}
	w.line(op, "money adjustment", 2)
	w.line(op, "money charge", 1)
	w.now(op, "succeeded")
}

// However often a failure is told, it is released once (O-063).
func TestO063FailureIsReleasedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", reading(20*time.Millisecond, 20*time.Millisecond, time.Hour))
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/accounts/"+w.get("/v1/accounts").items()[0].at("id")+"/credit", `{"amount":"20"}`, "Idempotency-Key", "c"))
	op, c := w.ordered("k", "120")
	failed := said{task: c.task, state: "failed", code: "timeout"}
	w.provider.say(failed)
	w.state(op, "failed")
	w.callback(c.callback, event{id: "e1", said: failed})
	w.drain()
	w.start()
	w.callback(c.callback, event{id: "e1", said: failed})
	w.callback(c.callback, event{id: "e2", said: failed})
	w.money("120", "0")
	w.line(op, "money release", 1)
}

// An operation without a price reserves and charges nothing, and shows the
// provider's figure (1-product A7).
func TestUnmetered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.endpoint()
	op, c := w.ordered("k", "")
	if r := w.operation(op); r.at("metered") != "false" || r.at("cost") != "" {
		t.Errorf("metered %s, cost %s", r.at("metered"), r.at("cost"))
	}
	w.money("100", "0")
	end := done(c.task)
	end.settled = false
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: end}))
	if r := w.now(op, "succeeded"); r.at("cost.amount") != "0.600000000" || r.at("cost.settled") != "false" {
		t.Errorf("cost %s", r.at("cost"))
	}
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e2", said: done(c.task)}))
	if r := w.operation(op); r.at("cost.settled") != "true" {
		t.Errorf("cost %s", r.at("cost"))
	}
	w.money("100", "0")
	w.told(op, "operation.running", "operation.succeeded", "operation.settled")
}

// A model's price counts where the request gives none (1-product A7).
func TestConfiguredPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", func(_ *config.Config, u *config.Upstream) {
		price := testAmount(t, "0.15")
		u.Models = map[string]config.Model{"m": {Price: &price}}
	})
	w.ordered("k", "")
	w.money("100", "0.15")
	w.want(http.StatusUnprocessableEntity, w.call(http.MethodPost, "/v1/operations", `{"upstream":"up","model":"other","input":{}}`, "Idempotency-Key", "k2"))
}

// Not enough credit: nothing is created and the key stays free (7-rules R6).
func TestInsufficientCredit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	submit := func() reply {
		return w.call(http.MethodPost, "/v1/operations", priced("100.000000001"), "Idempotency-Key", "k")
	}
	if r := w.want(http.StatusPaymentRequired, submit()); r.at("reason") != "insufficient_credit" {
		t.Errorf("answered %s", r.body)
	}
	w.money("100", "0")
	if n := len(w.get("/v1/operations").items()) + len(w.provider.created()); n != 0 {
		t.Errorf("%d operations and creates", n)
	}
	acct := w.get("/v1/accounts").items()[0].at("id")
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/accounts/"+acct+"/credit", `{"amount":"0.000000001"}`, "Idempotency-Key", "c1"))
	r := w.want(http.StatusAccepted, submit())
	w.state(r.at("id"), "running")
	w.money("100.000000001", "100.000000001")
}

// Credit may be taken away down to what is available, never below, and once
// per key (7-rules R30, R52).
func TestNegativeCredit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.ordered("k", "40")
	acct := w.get("/v1/accounts").items()[0].at("id")
	credit := func(key, amount string) reply {
		return w.call(http.MethodPost, "/v1/accounts/"+acct+"/credit", map[string]string{"amount": amount}, "Idempotency-Key", key)
	}
	w.want(http.StatusUnprocessableEntity, credit("c1", "-60.000000001"))
	w.money("100", "40")
	w.want(http.StatusOK, credit("c2", "-60"))
	w.want(http.StatusOK, credit("c2", "-60"))
	w.money("40", "40")
	w.want(http.StatusUnprocessableEntity, credit("c2", "-59"))
	w.want(http.StatusUnprocessableEntity, credit("c3", "-0.000000001"))
	w.want(http.StatusBadRequest, w.call(http.MethodPost, "/v1/accounts/"+acct+"/credit", `{"amount":"1"}`))
	end := done(c.task)
	end.cost = "40"
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: end}))
	w.now(op, "succeeded")
	w.money("0", "0")
}

// Ten buyers, money for one (O-068).
func TestO068BalanceForOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	acct := w.get("/v1/accounts").items()[0].at("id")
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/accounts/"+acct+"/credit", `{"amount":"-97"}`, "Idempotency-Key", "c"))
	var answers [10]reply
	var buyers sync.WaitGroup
	for i := range answers {
		buyers.Go(func() {
			answers[i] = w.call(http.MethodPost, "/v1/operations", priced("3"), "Idempotency-Key", fmt.Sprint("k", i))
		})
	}
	buyers.Wait()
	bought, op := 0, ""
	for _, r := range answers {
		if r.status == http.StatusAccepted {
			bought, op = bought+1, r.at("id")
		} else {
			w.want(http.StatusPaymentRequired, r)
		}
	}
	if bought != 1 {
		t.Fatalf("%d were accepted, want 1", bought)
	}
	w.state(op, "running")
	w.money("3", "3")
	w.want(http.StatusAccepted, w.callback("", event{id: "e1", said: said{task: "task-1", state: "failed"}}))
	w.money("3", "0")
	second, _ := w.ordered("again", "3")
	w.want(http.StatusAccepted, w.callback("", event{id: "e2", said: func() said { s := done("task-2"); s.cost = "3"; return s }()}))
	w.now(second, "succeeded")
	w.money("0", "0")
	if n := len(w.provider.created()); n != 2 {
		t.Errorf("%d creates, want 2", n)
	}
}

// Currencies have any number of places: amounts are units of 10^-9 (7-rules
// R28, O-069).
func TestO069Currencies(t *testing.T) {
	t.Parallel()
	for currency, step := range map[string]struct{ credit, price, cost, balance string }{
		"JPY": {"10000", "5800", "4200", "5800"},
		"KWD": {"1", "0.125", "0.101", "0.899"},
		"XTS": {"1", "0.000000009", "0.0000000015", "0.999999998"},
	} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "media-v2", func(c *config.Config, u *config.Upstream) {
				u.Currency = currency
				c.Tenants["default"] = config.Tenant{Account: &config.Account{Currency: currency, Credit: testAmount(t, step.credit)}}
			})
			body := job("a red kite")
			body["expected_cost"] = map[string]string{"amount": step.price, "currency": currency}
			op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", "k")).at("id")
			w.state(op, "running")
			w.money(step.credit, step.price)
			end := done("task-1")
			end.cost = step.cost
			w.want(http.StatusAccepted, w.callback("", event{id: "e1", said: end}))
			w.money(step.balance, "0")
			body["expected_cost"] = map[string]string{"amount": "1", "currency": "USD"}
			w.want(http.StatusUnprocessableEntity, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", "k2"))
		})
	}
}
