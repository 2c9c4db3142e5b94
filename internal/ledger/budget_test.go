package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// limited gives the tests' API key limits.
func limited(w *world, limits KeyLimits) {
	w.do(CreateKey{Key: APIKey{ID: apiKey, Tenant: tenant, Hash: Digest{1}, Scopes: ScopeSubmit}})
	w.do(ChangeKey{ID: apiKey, Limits: &limits})
}

func priced(w *world, up Upstream, key string, price pawl.Amount, currency string) Outcome {
	return w.do(Submit{
		Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: up, Model: "m", Input: "{}", Day: DayOf(w.now),
		Deadline: w.now.Add(3 * time.Hour), Price: pawl.Money{Amount: price, Currency: currency}, Metered: price > 0,
	})
}

// DayOf counts UTC days.
func TestDayOf(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z": 0, "1970-01-01T23:59:59Z": 0, "1970-01-02T00:00:00Z": 1, "2000-03-01T12:00:00Z": 11017,
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, text, DayOf(pawl.TimeOf(at)), want)
	}
}

// A key's budget covers what its operations hold and have cost, over its life:
// what is released comes back, what is charged does not (1-product I7).
func TestKeyBudget(t *testing.T) {
	up := upstream()
	w := stage(t)
	limited(w, KeyLimits{Budget: 30, Currency: "USD"})
	used := func(want pawl.Amount) {
		t.Helper()
		expect(t, "used", w.budgets[KeyBudgetID(apiKey, "USD")].Used, want)
		w.sound()
	}
	a := priced(w, up, "a", 20, "USD").Value.(Submitted).Operation
	used(20)
	over := priced(w, up, "b", 11, "USD")
	expect(t, "over", over.Reason, "key_budget")
	expect(t, "over", over.Err.Kind, pawl.PaymentRequired)
	expect(t, "the refusal is audited", w.audits[len(w.audits)-1].Action, "operation.refused")
	if _, taken := w.idem[IdempotencyKeyID{tenant, "b"}]; taken {
		t.Error("a refusal took the key (7-rules R6)")
	}
	w.tick(time.Second)
	b := priced(w, up, "b", 10, "USD").Value.(Submitted).Operation
	used(30)

	sent := leases(w.leaseOf(tenant, 2))
	expect(t, "sent", sent[0].Operation.ID, a.ID)
	w.answer(up, sent[0], CreateAccepted, "task-a")
	w.event(up, a.ID, "1", billed(obs("task-a", pawl.Succeeded), 8))
	used(18) // 8 charged, 10 held
	expect(t, "sent", sent[1].Operation.ID, b.ID)
	w.answer(up, sent[1], CreateRefused, "")
	used(8)
	expect(t, "what was released can be used", priced(w, up, "c", 22, "USD").Err == nil, true)
	used(30)

	expect(t, "another currency", priced(w, up, "d", 1, "EUR").Reason, "currency")
	expect(t, "no price", priced(w, up, "d", 0, "").Reason, "price_missing")
	w.do(ChangeKey{ID: apiKey, Limits: &KeyLimits{}})
	expect(t, "without a budget", priced(w, up, "d", 1, "USD").Err == nil, true)
	used(30)
}

// What is booked after the end, and what a late success books, counts too.
func TestBudgetFollowsLaterBookings(t *testing.T) {
	up := upstream()
	up.AcceptLateSuccess = true
	w := stage(t)
	limited(w, KeyLimits{Budget: 50, Currency: "USD"})
	a := priced(w, up, "a", 20, "USD").Value.(Submitted).Operation
	a = w.create(up, a.ID, CreateAccepted, "task-a")
	w.event(up, a.ID, "1", billed(obs("task-a", pawl.Succeeded), 8))
	w.event(up, a.ID, "2", billed(obs("task-a", pawl.Succeeded), 12))
	expect(t, "an adjustment", w.budgets[KeyBudgetID(apiKey, "USD")].Used, 12)
	b := priced(w, up, "b", 20, "USD").Value.(Submitted).Operation
	b = w.create(up, b.ID, CreateAccepted, "task-b")
	w.now = b.Deadline
	w.read(up, b.ID, ReadObserved, obs("task-b", pawl.Running))
	expectState(t, "at its deadline", w.ops[b.ID], pawl.Expired)
	expect(t, "released", w.budgets[KeyBudgetID(apiKey, "USD")].Used, 12)
	w.event(up, b.ID, "late", billed(obs("task-b", pawl.Succeeded), 5))
	expectState(t, "late success", w.ops[b.ID], pawl.Succeeded)
	expect(t, "charged after all", w.budgets[KeyBudgetID(apiKey, "USD")].Used, 17)
	w.sound()
}

// A key may be limited to some upstreams; what it submitted before is replayed.
func TestKeyUpstreams(t *testing.T) {
	w := stage(t)
	first := priced(w, upstream(), "a", 1, "USD")
	limited(w, KeyLimits{Upstreams: "x,y"})
	expect(t, "another upstream", priced(w, upstream(), "b", 1, "USD").Err.Kind, pawl.Forbidden)
	expect(t, "a repeat", priced(w, upstream(), "a", 1, "USD").Value.(Submitted).Operation.ID, first.Value.(Submitted).Operation.ID)
	y := upstream()
	y.Name = "y"
	expect(t, "one of them", priced(w, y, "c", 1, "USD").Err == nil, true)
	w.sound()
}

// An upstream's spending limit is for a UTC day, over all tenants, and for one
// currency (1-product B5).
func TestSpendingLimit(t *testing.T) {
	up := upstream()
	up.SpendPerDay, up.SpendCurrency = 25, "USD"
	w := stage(t)
	w.now = pawl.Time((DayOf(start) + 1) * 86_400_000_000).Add(-time.Hour) // 23:00
	a := priced(w, up, "a", 20, "USD").Value.(Submitted).Operation
	over := priced(w, up, "b", 6, "USD")
	expect(t, "over", over.Reason, "spending_limit")
	expect(t, "over", over.Err.Kind, pawl.PaymentRequired)
	expect(t, "a fit", priced(w, up, "b", 5, "USD").Err == nil, true)
	expect(t, "another currency", priced(w, up, "c", 1, "EUR").Reason, "currency")
	expect(t, "no price", priced(w, up, "c", 0, "").Reason, "price_missing")
	w.tick(time.Hour)
	b := priced(w, up, "d", 25, "USD").Value.(Submitted).Operation
	expect(t, "the next day", b.SpendDay, a.SpendDay+1)
	// What an operation gives back belongs to the day on which it was submitted.
	w.create(up, a.ID, CreateRefused, "")
	expect(t, "yesterday", w.budgets[UpstreamBudgetID("s", "USD", a.SpendDay)].Used, 5)
	expect(t, "today", w.budgets[UpstreamBudgetID("s", "USD", b.SpendDay)].Used, 25)
	expect(t, "still full", priced(w, up, "e", 1, "USD").Reason, "spending_limit")
	other := upstream()
	other.Name = "other"
	expect(t, "another upstream", priced(w, other, "e", 1, "USD").Err == nil, true)
	w.sound()
}

// The check finds a budget that counts wrongly.
func TestCheckBudget(t *testing.T) {
	w := stage(t)
	limited(w, KeyLimits{Budget: 30, Currency: "USD"})
	op := priced(w, upstream(), "a", 20, "USD").Value.(Submitted).Operation
	id := KeyBudgetID(apiKey, "USD")
	w.budgets[id] = Budget{ID: id, Used: 19}
	expect(t, "violations", len(w.check()), 1)
	delete(w.budgets, id)
	expect(t, "without the row", len(CheckFacts(w.facts(op.ID))), 1)
}

// billed is an observation with a final cost.
func billed(o Observation, cost pawl.Amount) Observation {
	o.HasCost, o.Cost, o.CostText, o.Currency, o.Settled = true, cost, cost.String(), "USD", SettledYes
	return o
}
