package ledger

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// ended is an operation with a price of 10 that its provider ended, at a cost.
func ended(t *testing.T, up Upstream, end pawl.State, cost pawl.Amount) (*world, pawl.ID) {
	t.Helper()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.event(up, op.ID, "e0", costing(end, cost))
	expectState(t, "ended", w.ops[op.ID], end)
	return w, op.ID
}

func costing(end pawl.State, cost pawl.Amount) Observation {
	o := obs("task-a", end)
	o.HasCost, o.Cost, o.CostText, o.Settled = true, cost, cost.String(), SettledYes
	return o
}

// booked are the entries of an operation after its first n, as "kind amount".
func (w *world) booked(id pawl.ID, n int) string {
	text := ""
	for _, e := range w.entries {
		if e.Operation != id {
			continue
		}
		if n--; n < 0 {
			text += fmt.Sprintf("%s %d, ", e.Kind, e.Amount)
		}
	}
	return text
}

func (w *world) journal(id pawl.ID) (n int) {
	for _, e := range w.entries {
		if e.Operation == id {
			n++
		}
	}
	return n
}

// TestCorrection is 7-rules R9: state, version, one event that tells of it,
// reversing and new entries that are linked, and never an entry changed.
func TestCorrection(t *testing.T) {
	amount := func(a pawl.Amount) *pawl.Amount { return &a }
	cases := []struct {
		name    string
		from    pawl.State
		cost    pawl.Amount
		to      pawl.State
		charge  *pawl.Amount
		charged pawl.Amount
		entries string
	}{
		{"a success that was none", pawl.Succeeded, 4, pawl.Failed, nil, 0, "reversal 4, "},
		{"a failure that was a success", pawl.Failed, 0, pawl.Succeeded, amount(6), 6, "reserve 6, charge 6, "},
		{"a failure that was a success, at its reported cost", pawl.Failed, 7, pawl.Succeeded, nil, 7, "reserve 7, charge 7, "},
		{"a cancel that was a success", pawl.Canceled, 2, pawl.Succeeded, amount(10), 10, "reversal 2, reserve 10, charge 10, "},
		{"a success that was canceled", pawl.Succeeded, 4, pawl.Canceled, nil, 0, "reversal 4, "},
		{"a success that was canceled, at a cost", pawl.Succeeded, 4, pawl.Canceled, amount(4), 4, ""},
		{"an expiry that was a failure", pawl.Expired, 0, pawl.Failed, nil, 0, ""},
		{"a charge that was too high", pawl.Succeeded, 9, pawl.Succeeded, amount(3), 3, "reversal 9, reserve 3, charge 3, "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, id := ended(t, upstream(), c.from, c.cost)
			before, entries, version := w.account(), w.journal(id), w.ops[id].Version
			cmd := ResolveOperation{Header: Header{Actor: "key_x"}, Operation: id, Up: upstream(), Decision: c.to.String(), From: c.from, Note: "they told us"}
			if c.charge != nil {
				cmd.Charge, cmd.HasCharge = *c.charge, true
			}
			out := w.do(cmd)
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			op := w.ops[id]
			expectState(t, "corrected", op, c.to)
			expect(t, "charged", op.Charged, c.charged)
			expect(t, "account", w.account().Charged-before.Charged, c.charged-charge(c.from, c.cost))
			expect(t, "reserved", w.account().Reserved, 0)
			expect(t, "settled", op.Settled, true)
			expect(t, "entries", w.booked(id, entries), c.entries)
			expect(t, "version", op.Version, version+1)
			expect(t, "failure", op.ErrorCode != "", c.to == pawl.Failed)
			expect(t, "result", op.Result.IsZero(), c.to != pawl.Succeeded || c.from != pawl.Succeeded)
			events := sortedEvents(w.facts(id).Outbound)
			last := events[len(events)-1]
			expect(t, "event", last.Type, pawl.TypeOf(c.to))
			var data OperationJSON
			if err := json.Unmarshal([]byte(last.Snapshot), &data); err != nil || data.Correction == nil {
				t.Fatalf("%v: %s", err, last.Snapshot)
			}
			expect(t, "told", *data.Correction, CorrectionJSON{c.from, "key_x", "they told us"})
			expect(t, "audit", w.audits[len(w.audits)-1].Action, "operation.correct")
			// Whatever the provider repeats, the decision stands.
			repeat := w.event(upstream(), id, "e9", costing(c.from, c.cost))
			if c.from != c.to {
				expectVerdict(t, "the provider repeats", repeat.Verdict, pawl.Conflict)
			}
			expect(t, "charged still", w.ops[id].Charged, c.charged)
			w.sound()
		})
	}
}

func charge(end pawl.State, cost pawl.Amount) pawl.Amount {
	if end == pawl.Failed || end == pawl.Expired {
		return 0
	}
	return cost
}

// TestCorrectionRefused: whoever corrects says what from and why, and cannot
// charge more than the price, nor without credit; a refusal changes nothing.
func TestCorrectionRefused(t *testing.T) {
	w, id := ended(t, upstream(), pawl.Failed, 0)
	w.submit(upstream(), "all", 95) // leaves 5
	unmetered := w.running(upstream(), "free", 0)
	w.event(upstream(), unmetered.ID, "f0", obs("task-free", pawl.Failed))
	before := w.ops[id]
	cases := []struct {
		reason string
		kind   pawl.Kind
		cmd    ResolveOperation
	}{
		{"finished", pawl.Conflicting, ResolveOperation{Decision: "succeeded", Note: "n"}},
		{"finished", pawl.Conflicting, ResolveOperation{Decision: "succeeded", From: pawl.Expired, Note: "n"}},
		{"finished", pawl.Conflicting, ResolveOperation{Decision: pawl.DecideFailed}},
		{"unknown_decision", pawl.Invalid, ResolveOperation{Decision: pawl.DecideCreated, From: pawl.Failed, Note: "n"}},
		{"unknown_decision", pawl.Invalid, ResolveOperation{Decision: "running", From: pawl.Failed, Note: "n"}},
		{"note_missing", pawl.Invalid, ResolveOperation{Decision: "succeeded", From: pawl.Failed, Note: " "}},
		{"nothing_to_correct", pawl.Conflicting, ResolveOperation{Decision: "failed", From: pawl.Failed, Note: "n"}},
		{"charge_refused", pawl.Unprocessable, ResolveOperation{Decision: "expired", From: pawl.Failed, Note: "n", HasCharge: true, Charge: 1}},
		{"above_reservation", pawl.Unprocessable, ResolveOperation{Decision: "succeeded", From: pawl.Failed, Note: "n", HasCharge: true, Charge: 11}},
		{"above_reservation", pawl.Unprocessable, ResolveOperation{Decision: "succeeded", From: pawl.Failed, Note: "n", HasCharge: true, Charge: -1}},
		{"insufficient_credit", pawl.PaymentRequired, ResolveOperation{Decision: "succeeded", From: pawl.Failed, Note: "n", HasCharge: true, Charge: 6}},
		{"unmetered", pawl.Unprocessable, ResolveOperation{Operation: unmetered.ID, Decision: "succeeded", From: pawl.Failed, Note: "n", HasCharge: true}},
	}
	for _, c := range cases {
		if c.cmd.Operation.IsZero() {
			c.cmd.Operation = id
		}
		c.cmd.Up = upstream()
		out := w.do(c.cmd)
		if out.Err == nil || out.Err.Kind != c.kind || out.Reason != c.reason {
			t.Errorf("%+v: %s %v, want %s", c.cmd, out.Reason, out.Err, c.reason)
		}
		expect(t, "changed", w.ops[id], before)
	}
	running := w.running(upstream(), "b", 0)
	out := w.do(ResolveOperation{Operation: running.ID, Up: upstream(), Decision: "failed", From: pawl.Failed, Note: "n"})
	expect(t, "not finished", out.Reason, "not_unconfirmed")
	// What is left of the credit is enough for a smaller charge.
	out = w.do(ResolveOperation{Operation: id, Up: upstream(), Decision: "succeeded", From: pawl.Failed, Note: "n", HasCharge: true, Charge: 5})
	expect(t, "with the credit there is", out.Err == nil, true)
	expect(t, "charged", w.account().Charged, 5)
	w.sound()
}

// TestCorrectionOfOpenMoney: a correction ends what is still held, and what was
// corrected may be corrected again.
func TestCorrectionOfOpenMoney(t *testing.T) {
	w := stage(t)
	op := w.running(upstream(), "a", 10)
	o := costing(pawl.Succeeded, 4)
	o.Settled = SettledNo
	w.event(upstream(), op.ID, "e0", o)
	expect(t, "held", w.account().Reserved, 10)
	correct := func(from, to pawl.State, charge pawl.Amount) {
		t.Helper()
		out := w.do(ResolveOperation{Operation: op.ID, Up: upstream(), Decision: to.String(), From: from, Note: "n", HasCharge: true, Charge: charge})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		expect(t, "reserved", w.account().Reserved, 0)
		expect(t, "charged", w.account().Charged, charge)
		expect(t, "due", w.ops[op.ID].DueAt, pawl.Never)
		w.sound()
	}
	correct(pawl.Succeeded, pawl.Failed, 0)
	correct(pawl.Failed, pawl.Succeeded, 8)
	correct(pawl.Succeeded, pawl.Canceled, 1)
	expect(t, "journal", w.booked(op.ID, 0), "reserve 10, release 10, reserve 8, charge 8, reversal 8, reserve 1, charge 1, ")
}

// TestAcceptedConflict: accepting what the provider reported against the first
// end corrects state, result and money to it; keeping changes nothing.
func TestAcceptedConflict(t *testing.T) {
	for _, c := range []struct {
		name    string
		from    pawl.State
		said    Observation
		reason  pawl.Reason
		charged pawl.Amount
		held    pawl.Amount
		left    []pawl.Reason
	}{
		{"failed, then succeeded", pawl.Failed, costing(pawl.Succeeded, 6), pawl.ReviewConflict, 6, 0, nil},
		{"succeeded, then failed", pawl.Succeeded, costing(pawl.Failed, 6), pawl.ReviewConflict, 0, 0, nil},
		{"canceled, then succeeded", pawl.Canceled, costing(pawl.Succeeded, 10), pawl.ReviewConflict, 10, 0, nil},
		{"expired, then succeeded", pawl.Expired, costing(pawl.Succeeded, 6), pawl.ReviewLateSuccess, 6, 0, nil},
		{"above the price", pawl.Failed, costing(pawl.Succeeded, 12), pawl.ReviewConflict, 10, 0, []pawl.Reason{pawl.ReviewOverReservation}},
		{"the final figure is yet to come", pawl.Failed, func() Observation { o := costing(pawl.Succeeded, 6); o.Settled = SettledNo; return o }(), pawl.ReviewConflict, 0, 10, nil},
		{"without a result", pawl.Failed, func() Observation { o := costing(pawl.Succeeded, 6); o.Result = ""; return o }(), pawl.ReviewConflict, 6, 0, []pawl.Reason{pawl.ReviewNoResult}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, decision := range []string{pawl.DecideKeep, pawl.DecideAccept} {
				w, id := ended(t, upstream(), c.from, 4)
				before := w.ops[id]
				expectVerdict(t, "reported", w.event(upstream(), id, "e1", c.said).Verdict, pawl.Conflict)
				r := w.open(id, c.reason)
				rep, ok := r.Report()
				expect(t, "kept with it", ok && rep.State == c.said.State && rep.Cost == c.said.Cost, true)
				if out := w.resolve(upstream(), r, decision); out.Err != nil {
					t.Fatal(out.Err)
				}
				op := w.ops[id]
				if decision == pawl.DecideKeep {
					expectState(t, "kept", op, c.from)
					expect(t, "charged", op.Charged, before.Charged)
					expect(t, "reviews", op.Reviews, 0)
					w.sound()
					continue
				}
				expectState(t, "accepted", op, c.said.State)
				expect(t, "charged", w.account().Charged, c.charged)
				expect(t, "held", w.account().Reserved, c.held)
				expect(t, "reads on", op.DueAt != pawl.Never, c.held > 0)
				var left uint32
				for _, reason := range c.left {
					left |= 1 << reason
				}
				expect(t, "reviews", op.Reviews, left)
				if c.said.Result != "" && c.said.State == pawl.Succeeded {
					expect(t, "result", w.payload(op.Result, ResultPayload), c.said.Result)
				}
				w.sound()
				if c.held > 0 {
					w.event(upstream(), id, "e2", costing(pawl.Succeeded, 7))
					expect(t, "settled later", w.account().Charged, 7)
					expect(t, "released", w.account().Reserved, 0)
					w.sound()
				}
			}
		})
	}
}

func (w *world) payload(owner pawl.ID, kind PayloadKind) string {
	for _, p := range w.payloads {
		if p.ID == (PayloadID{owner, kind}) {
			return p.Body
		}
	}
	return ""
}

// TestAcceptNeedsCredit: without it the review stays open and nothing changes.
func TestAcceptNeedsCredit(t *testing.T) {
	w, id := ended(t, upstream(), pawl.Expired, 0)
	w.event(upstream(), id, "e1", costing(pawl.Succeeded, 6))
	w.submit(upstream(), "all", 95)
	r := w.open(id, pawl.ReviewLateSuccess)
	out := w.resolve(upstream(), r, pawl.DecideAccept)
	if out.Err == nil || out.Err.Kind != pawl.PaymentRequired {
		t.Fatalf("%+v", out)
	}
	expect(t, "open", w.open(id, pawl.ReviewLateSuccess).ID, r.ID)
	expectState(t, "stays", w.ops[id], pawl.Expired)
	w.do(Credit{Account: w.account().ID, Amount: 1, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "c", Window: time.Hour}})
	expect(t, "with credit", w.resolve(upstream(), r, pawl.DecideAccept).Err == nil, true)
	expectState(t, "accepted", w.ops[id], pawl.Succeeded)
	w.sound()
}

// TestCorrectionAnswersReviews: what a person has decided is asked no more.
func TestCorrectionAnswersReviews(t *testing.T) {
	w, id := ended(t, upstream(), pawl.Failed, 0)
	w.event(upstream(), id, "e1", costing(pawl.Succeeded, 6))
	r := w.open(id, pawl.ReviewConflict)
	w.do(ResolveOperation{Operation: id, Up: upstream(), Decision: "succeeded", From: pawl.Failed, Note: "n"})
	expect(t, "answered", w.reviews[r.ID].Decision, DecidedBySystem)
	expect(t, "reviews", w.ops[id].Reviews, 0)
	expect(t, "decided twice", w.resolve(upstream(), r, pawl.DecideAccept).Err.Kind, pawl.Conflicting)
	w.sound()
}

// TestAdjustmentAfterACorrection: a total that rises after the provider's own
// word was accepted is booked as ever (R29); after a person's, none is.
func TestAdjustmentAfterACorrection(t *testing.T) {
	up := upstream()
	up.AcceptLateSuccess = true
	w, id := ended(t, up, pawl.Expired, 0)
	w.event(up, id, "e1", costing(pawl.Succeeded, 4))
	expect(t, "accepted", w.account().Charged, 4)
	w.event(up, id, "e2", costing(pawl.Succeeded, 6))
	expect(t, "adjusted", w.account().Charged, 6)
	w.sound()
	w.do(ResolveOperation{Operation: id, Up: up, Decision: "succeeded", From: pawl.Succeeded, Note: "n", HasCharge: true, Charge: 1})
	w.event(up, id, "e3", costing(pawl.Succeeded, 9))
	expect(t, "decided by hand", w.account().Charged, 1)
	w.sound()
}

// TestAttachedOrphan: an operator gives an orphan's task to an operation that
// may have made it, and all that waited for the task is judged.
func TestAttachedOrphan(t *testing.T) {
	up := upstream()
	park := func(t *testing.T) (*world, Review) {
		w := stage(t)
		w.event(up, pawl.ID{}, "e1", obs("task-a", pawl.Running))
		w.event(up, pawl.ID{}, "e2", costing(pawl.Succeeded, 4))
		for _, e := range w.events {
			w.do(OrphanOverdue{Event: e.ID})
		}
		for _, r := range w.reviews {
			if w.events[r.Event].ExternalID == "e2" {
				return w, r
			}
		}
		t.Fatal("no review")
		return nil, Review{}
	}
	attach := func(w *world, r Review, to pawl.ID) Outcome {
		return w.once(ResolveReview{Review: r.ID, Event: r.Event, Source: r.Source, Whose: r.Tenant, EventTask: "task-a", Up: up, Decision: pawl.DecideAttach, Target: to})
	}
	t.Run("unconfirmed", func(t *testing.T) {
		w, r := park(t)
		op := w.submit(up, "a", 10)
		w.create(up, op.ID, CreateUnknown, "")
		if out := attach(w, r, op.ID); out.Err != nil {
			t.Fatal(out.Err)
		}
		expectState(t, "attached", w.ops[op.ID], pawl.Succeeded)
		expect(t, "charged", w.account().Charged, 4)
		expect(t, "decision", w.reviews[r.ID].Decision, pawl.DecideAttach)
		for _, other := range w.reviews {
			expect(t, "asked no more", other.ClosedAt != 0, true)
		}
		expect(t, "parked", w.sources["s"].Parked, 0)
		w.sound()
	})
	t.Run("given up before", func(t *testing.T) {
		w, r := park(t)
		op := w.submit(up, "a", 10)
		w.create(up, op.ID, CreateUnknown, "")
		w.do(ResolveOperation{Operation: op.ID, Up: up, Decision: pawl.DecideFailed})
		attach(w, r, op.ID)
		expectState(t, "the end stays", w.ops[op.ID], pawl.Failed)
		w.resolve(up, w.open(op.ID, pawl.ReviewConflict), pawl.DecideAccept)
		expectState(t, "until somebody accepts", w.ops[op.ID], pawl.Succeeded)
		expect(t, "charged", w.account().Charged, 4)
		w.sound()
	})
	t.Run("refused", func(t *testing.T) {
		w, r := park(t)
		running := w.running(up, "b", 10)
		fresh := w.submit(up, "a", 10)
		elsewhere := up
		elsewhere.Name = "elsewhere"
		other := w.submit(elsewhere, "c", 10)
		for reason, to := range map[string]pawl.ID{
			"operation_id_missing": {}, "not_found": pawl.NewID(start, 999), "never_created": fresh.ID, "task_known": running.ID, "other_upstream": other.ID,
		} {
			expect(t, reason, attach(w, r, to).Reason, reason)
		}
		expect(t, "open", w.reviews[r.ID].ClosedAt, 0)
		expect(t, "parked", w.sources["s"].Parked, 2)
		w.sound()
	})
}
