package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestMoney is 1-product F2 in all combinations of the settled word, the end
// and the reported cost. The reservation is 10.
func TestMoney(t *testing.T) {
	const reserved = 10
	type cost struct {
		name     string
		has      bool
		amount   pawl.Amount
		currency string
	}
	costs := []cost{
		{"absent", false, 0, ""}, {"zero", true, 0, "USD"}, {"below", true, 4, "USD"}, {"unnamed currency", true, 4, ""},
		{"equal", true, 10, "USD"}, {"above", true, 12, "USD"}, {"negative", true, -3, "USD"}, {"other currency", true, 4, "EUR"},
	}
	// want is written from the rules: failed and expired release in full;
	// settled:false keeps; another currency keeps and is reviewed; a success
	// without a figure costs its price, a cancel without one nothing.
	want := func(end pawl.State, s Settled, c cost) (charged pawl.Amount, held bool, review pawl.Reason) {
		switch {
		case end == pawl.Failed || end == pawl.Expired:
			return 0, false, 0
		case c.currency == "EUR":
			return 0, true, pawl.ReviewCurrency
		case s == SettledNo:
			return 0, true, 0
		case !c.has && end == pawl.Succeeded:
			return reserved, false, 0
		case c.amount > reserved:
			return reserved, false, pawl.ReviewOverReservation
		}
		return max(c.amount, 0), false, 0
	}
	for _, end := range []pawl.State{pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired} {
		for _, settled := range []Settled{SettledUnsaid, SettledNo, SettledYes} {
			for _, c := range costs {
				t.Run(fmt.Sprint(end, "/", settled, "/", c.name), func(t *testing.T) {
					w := stage(t)
					op := w.running(upstream(), "a", reserved)
					o := obs("task-a", end)
					o.Settled, o.HasCost, o.Cost, o.Currency, o.CostText = settled, c.has, c.amount, c.currency, c.name
					w.event(upstream(), op.ID, "e1", o)
					charged, held, review := want(end, settled, c)
					op = w.ops[op.ID]
					expect(t, "charged", op.Charged, charged)
					expect(t, "held", op.Money == Held, held)
					expect(t, "settled", op.Settled, !held)
					expect(t, "account charged", w.account().Charged, charged)
					expect(t, "account reserved", w.account().Reserved == reserved, held)
					expect(t, "reads on", op.DueAt != pawl.Never, held)
					for _, r := range []pawl.Reason{pawl.ReviewCurrency, pawl.ReviewOverReservation} {
						expect(t, r.String(), !w.open(op.ID, r).ID.IsZero(), r == review)
					}
					w.sound()
				})
			}
		}
	}
}

// TestAdjustments is R29: cumulative totals after the end.
func TestAdjustments(t *testing.T) {
	type step struct {
		total   pawl.Amount
		settled Settled
		charged pawl.Amount
		verdict pawl.Verdict
	}
	cases := map[string][]step{
		"rises":                 {{4, SettledYes, 4, pawl.Applied}, {6, SettledYes, 6, pawl.Applied}},
		"repeats":               {{4, SettledYes, 4, pawl.Applied}, {4, SettledYes, 4, pawl.Stale}},
		"falls":                 {{4, SettledYes, 4, pawl.Applied}, {2, SettledYes, 4, pawl.Stale}},
		"to the reservation":    {{4, SettledYes, 4, pawl.Applied}, {99, SettledYes, 10, pawl.Applied}, {99, SettledYes, 10, pawl.Stale}},
		"an estimate is none":   {{4, SettledYes, 4, pawl.Applied}, {6, SettledNo, 4, pawl.Stale}, {6, SettledYes, 6, pawl.Applied}},
		"estimate, then final":  {{8, SettledNo, 0, pawl.Applied}, {3, SettledYes, 3, pawl.Applied}, {5, SettledYes, 5, pawl.Applied}},
		"no word, then a total": {{4, SettledUnsaid, 4, pawl.Applied}, {7, SettledUnsaid, 7, pawl.Applied}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			w := stage(t)
			op := w.running(upstream(), "a", 10)
			for i, s := range steps {
				o := obs("task-a", pawl.Succeeded)
				o.Settled, o.HasCost, o.Cost, o.CostText = s.settled, true, s.total, fmt.Sprint(s.total)
				got := w.event(upstream(), op.ID, fmt.Sprint("e", i), o)
				expectVerdict(t, fmt.Sprint(i), got.Verdict, s.verdict)
				expect(t, fmt.Sprint(i), w.account().Charged, s.charged)
				w.sound()
			}
		})
	}
}

// TestAdjustmentNeedsCredit: the account never falls below zero for it.
func TestAdjustmentNeedsCredit(t *testing.T) {
	w := stage(t)
	op := w.running(upstream(), "a", 10)
	o := obs("task-a", pawl.Succeeded)
	o.HasCost, o.Cost, o.CostText = true, 4, "4"
	w.event(upstream(), op.ID, "e1", o)
	w.do(Credit{Account: w.account().ID, Amount: -95, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "c", Window: 1}})
	o.Cost, o.CostText = 9, "9"
	w.event(upstream(), op.ID, "e2", o)
	expect(t, "charged", w.account().Charged, 5)
	r := w.open(op.ID, pawl.ReviewOverReservation)
	expect(t, "asked", r.Detail, "reported 9, of which 0.000000004 is not booked: the credit was short")
	lines := w.lines(op.ID, "adjustment")
	expect(t, "lines", len(lines), 1)
	expect(t, "told", lines[0].Detail, "not booked: 0.000000004 USD")
	w.resolve(upstream(), r, pawl.DecideKeep)
	w.event(upstream(), op.ID, "e3", o)
	expect(t, "the same total again", w.ops[op.ID].Reviews, 0)
	w.do(Credit{Account: w.account().ID, Amount: 50, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "d", Window: time.Hour}})
	w.event(upstream(), op.ID, "e4", o)
	expect(t, "charged once there is credit", w.account().Charged, 9)
	w.sound()
}

// TestKeepForeignCost: "keep" on a cost in another currency lasts until another
// one is reported, and the final cost that is overdue asks once more (R27).
func TestKeepForeignCost(t *testing.T) {
	for _, byRead := range []bool{true, false} {
		up := upstream()
		w := stage(t)
		op := w.running(up, "a", 10)
		say := func(n int64, currency string) {
			o := obs("task-a", pawl.Succeeded)
			o.HasCost, o.Cost, o.CostText, o.Currency, o.Settled = true, pawl.Amount(n), fmt.Sprint(n), currency, SettledYes
			if byRead {
				w.read(up, op.ID, ReadObserved, o)
			} else {
				w.tick(time.Second)
				w.event(up, op.ID, fmt.Sprint("e", w.now), o)
			}
		}
		asked := func() Review { return w.open(op.ID, pawl.ReviewCurrency) }
		say(4, "EUR")
		expect(t, "asked", asked().Detail, "reported 4 EUR")
		w.resolve(up, asked(), pawl.DecideKeep)
		for range 5 {
			say(4, "EUR")
		}
		expect(t, "the same", len(pick(w.reviews, func(r Review) bool { return r.Reason == pawl.ReviewCurrency })), 1)
		say(5, "EUR")
		expect(t, "another figure", asked().Detail, "reported 5 EUR")
		w.resolve(up, asked(), pawl.DecideKeep)
		say(5, "GBP")
		expect(t, "another currency", asked().Detail, "reported 5 GBP")
		w.resolve(up, asked(), pawl.DecideKeep)
		expect(t, "held", w.account().Reserved, 10)
		w.sound()
		w.now = w.ops[op.ID].FinishedAt.Add(up.SettleWithin)
		w.read(up, op.ID, ReadUnreachable, Observation{})
		expect(t, "overdue", w.open(op.ID, pawl.ReviewSettleOverdue).ID.IsZero(), false)
		w.sound()
	}
}

// TestUnmetered: nothing is reserved or charged; the provider's figure and its
// settled are shown, and what was final stays final (1-product A7).
func TestUnmetered(t *testing.T) {
	w := stage(t)
	op := w.running(upstream(), "a", 0)
	o := obs("task-a", pawl.Succeeded)
	o.Settled, o.HasCost, o.Cost, o.CostText, o.Currency = SettledNo, true, 5, "5", "EUR"
	w.event(upstream(), op.ID, "e1", o)
	expect(t, "estimate", w.ops[op.ID].Settled, false)
	o.Settled = SettledYes
	expectVerdict(t, "final", w.event(upstream(), op.ID, "e2", o).Verdict, pawl.Applied)
	o.Settled = SettledNo
	expectVerdict(t, "a late estimate", w.event(upstream(), op.ID, "e3", o).Verdict, pawl.Stale)
	expect(t, "settled", w.ops[op.ID].Settled, true)
	expect(t, "shown", *w.ops[op.ID].View().Cost, CostJSON{"0.000000005", "EUR", true})
	expect(t, "entries", len(w.entries), 1) // the opening credit
	w.sound()
}

// TestCredit is R30 and R52.
func TestCredit(t *testing.T) {
	w := stage(t)
	credit := func(key string, amount pawl.Amount) Outcome {
		return w.do(Credit{Tenant: tenant, Account: w.account().ID, Amount: amount, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: key, Window: 24 * 3600e9}})
	}
	credit("a", 5)
	credit("a", 5)
	expect(t, "once a key", w.account().Credited, 105)
	expect(t, "another amount", credit("a", 6).Err.Kind, pawl.Unprocessable)
	w.submit(upstream(), "op", 100)
	expect(t, "more than available", credit("b", -6).Err.Kind, pawl.Unprocessable)
	expect(t, "all that is available", credit("b", -5).Reason, "credited")
	expect(t, "credited", w.account().Credited, 100)
	expect(t, "another tenant", w.do(Credit{Tenant: "other", Account: w.account().ID, Amount: 1, Once: Once{Key: "x"}}).Err.Kind, pawl.NotFound)
	expect(t, "out of range", credit("c", 1<<62).Err == nil && credit("d", 1<<62).Err != nil, true)
	w.sound()
}

// TestSettleOverdue: a final cost that never comes is read for, then given to
// a person, who can end it; no money is held without anybody knowing.
func TestSettleOverdue(t *testing.T) {
	for _, reads := range []bool{true, false} {
		for decision, charged := range map[string]pawl.Amount{pawl.DecideCharge: 10, pawl.DecideRelease: 0} {
			up := upstream()
			up.Reads = reads
			w := stage(t)
			op := w.running(up, "a", 10)
			o := obs("task-a", pawl.Succeeded)
			o.Settled = SettledNo
			w.event(up, op.ID, "e1", o)
			w.now = w.ops[op.ID].FinishedAt.Add(up.SettleWithin)
			if reads {
				w.read(up, op.ID, ReadUnreachable, Observation{})
			} else {
				a := w.lease(up, op.ID, ActAdvance)
				w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
			}
			r := w.open(op.ID, pawl.ReviewSettleOverdue)
			expect(t, "asked", r.ID.IsZero(), false)
			w.sound()
			if reads {
				w.resolve(up, r, pawl.DecideRead)
				w.read(up, op.ID, ReadObserved, o)
				r = w.open(op.ID, pawl.ReviewSettleOverdue)
			}
			w.resolve(up, r, decision)
			expect(t, "charged", w.account().Charged, charged)
			expect(t, "reserved", w.account().Reserved, 0)
			expect(t, "due", w.ops[op.ID].DueAt, pawl.Never)
			w.sound()
		}
	}
}

// TestLateSuccess is the named path of 1-product D4.
func TestLateSuccess(t *testing.T) {
	expired := func(up Upstream) (*world, pawl.ID) {
		w := stage(t)
		op := w.running(up, "a", 10)
		w.event(up, op.ID, "e0", obs("task-a", pawl.Expired))
		expect(t, "released", w.account().Reserved, 0)
		return w, op.ID
	}
	late := obs("task-a", pawl.Succeeded)
	late.HasCost, late.Cost, late.CostText = true, 4, "4"

	w, id := expired(upstream())
	expectVerdict(t, "review", w.event(upstream(), id, "e1", late).Verdict, pawl.Conflict)
	expectState(t, "review", w.ops[id], pawl.Expired)
	expect(t, "asked", w.open(id, pawl.ReviewLateSuccess).ID.IsZero(), false)
	w.sound()

	up := upstream()
	up.AcceptLateSuccess = true
	w, id = expired(up)
	expectVerdict(t, "accept", w.event(up, id, "e1", late).Verdict, pawl.Applied)
	expectState(t, "accept", w.ops[id], pawl.Succeeded)
	expect(t, "charged", w.account().Charged, 4)
	w.sound()

	w, id = expired(up)
	w.submit(up, "all", 97)
	expectVerdict(t, "no credit", w.event(up, id, "e1", late).Verdict, pawl.Conflict)
	expectState(t, "no credit", w.ops[id], pawl.Expired)
	w.sound()
}
