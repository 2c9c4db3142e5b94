package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// correlate submits under a key and an application's own id.
func (w *world) correlate(key, id, work string, change ...func(*Submit)) Outcome {
	c := Submit{
		Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(work), Window: time.Hour, Up: upstream(), Model: "m", Input: "{}",
		Deadline: w.now.Add(time.Hour), CorrelationID: id, Price: pawl.Money{Amount: 10, Currency: "USD"}, Metered: true,
	}
	for _, f := range change {
		f(&c)
	}
	return w.do(c)
}

// Two clicks with two keys are still one job, and both keys stand for it from
// then on (1-product A8).
func TestCorrelation(t *testing.T) {
	w := stage(t)
	first := w.correlate("k1", "order-7", "same").Value.(Submitted)
	second := w.correlate("k2", "order-7", "same")
	if got := second.Value.(Submitted); got.Operation.ID != first.Operation.ID || !got.Replayed {
		t.Errorf("the second click made %+v", got)
	}
	expect(t, "one reservation", w.account().Reserved, 10)
	expect(t, "operations", len(w.ops), 1)

	// The second key is taken: for the same it replays, for another it is 422.
	if got := w.correlate("k2", "order-8", "same").Value.(Submitted); got.Operation.ID != first.Operation.ID || !got.Replayed {
		t.Errorf("the second key stands for %+v", got)
	}
	expect(t, "the second key with another body", w.correlate("k2", "order-7", "other").Reason, "idempotency_mismatch")

	other := w.correlate("k3", "order-7", "other")
	expect(t, "another body", other.Reason, "correlation_id_in_use")
	expect(t, "another body", other.Err.Kind, pawl.Conflicting)
	expect(t, "it names the operation", other.Err.Operation, first.Operation.ID)
	if _, taken := w.idem[IdempotencyKeyID{tenant, "k3"}]; taken {
		t.Error("a refusal took the key")
	}

	// A sibling API key is told nothing of it, whatever it asks for (A4).
	for _, work := range []string{"same", "other"} {
		out := w.correlate("k4", "order-7", work, func(c *Submit) { c.APIKey = pawl.NewID(start, 77) })
		expect(t, "a sibling", out.Reason, "correlation_id_in_use")
		expect(t, "a sibling learns", out.Err.Operation, pawl.ID{})
	}
	elsewhere := w.correlate("k1", "order-7", "other", func(c *Submit) { c.Tenant, c.Metered = "other", false })
	expect(t, "another tenant never notices", elsewhere.Value.(Submitted).Replayed, false)
	w.sound()

	// The id is free once the operation has ended, however.
	w.create(upstream(), first.Operation.ID, CreateRefused, "")
	again := w.correlate("k5", "order-7", "other")
	expect(t, "after the end", again.Value.(Submitted).Replayed, false)
	expect(t, "the claim", w.claims[CorrelationID{tenant, "order-7"}].Operation, again.Value.(Submitted).Operation.ID)
	w.sound()
}

// Of two clicks in one batch the second finds what the first has made.
func TestCorrelationInOneBatch(t *testing.T) {
	w := stage(t)
	c := Submit{Tenant: tenant, APIKey: apiKey, Key: "a", Fingerprint: digest("f"), Window: time.Hour, Up: upstream(), Deadline: deadline, CorrelationID: "x"}
	other := c
	other.Key = "b"
	outs := w.batch(c, other)
	expect(t, "the same", outs[0].Value.(Submitted).Operation.ID, outs[1].Value.(Submitted).Operation.ID)
	w.sound()
}

// A retry is a new operation that names the one it is for; only what failed,
// expired or was canceled is tried again (1-product A9).
func TestRetry(t *testing.T) {
	up := upstream()
	retry := func(w *world, key string, of Operation) Outcome {
		return w.do(Submit{
			Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: RetryFingerprint(of.ID), Work: digest("a"), RetryOf: of.ID, Window: time.Hour, Up: up,
			Model: of.Model, Input: "{}", Deadline: w.now.Add(time.Hour), Price: pawl.Money{Amount: 10, Currency: "USD"}, Metered: true, CorrelationID: of.CorrelationID,
		})
	}
	for state, retried := range map[pawl.State]bool{
		pawl.Pending: false, pawl.Running: false, pawl.Unconfirmed: false, pawl.Succeeded: false,
		pawl.Failed: true, pawl.Expired: true, pawl.Canceled: true,
	} {
		w := stage(t)
		op := w.correlate("a", "mine", "a").Value.(Submitted).Operation
		switch state {
		case pawl.Pending:
		case pawl.Unconfirmed:
			op = w.create(up, op.ID, CreateUnknown, "")
		default:
			op = w.create(up, op.ID, CreateAccepted, "task-a")
			if state != pawl.Running {
				w.event(up, op.ID, "end", obs("task-a", state))
			}
		}
		op = w.ops[op.ID]
		expectState(t, "before", op, state)
		out := retry(w, "b", op)
		if !retried {
			expect(t, state.String(), out.Reason, "not_retryable")
			expect(t, state.String(), len(w.ops), 1)
			continue
		}
		got := out.Value.(Submitted)
		expect(t, state.String(), got.Replayed, false)
		expect(t, "retry of", got.Operation.RetryOf, op.ID)
		expect(t, "version", got.Operation.Version, 1)
		expect(t, "reserved anew", w.account().Reserved, 10)
		expect(t, "the same key again", retry(w, "b", op).Value.(Submitted).Operation.ID, got.Operation.ID)
		// The application's id is the same, so a second click is the same retry.
		expect(t, "another key", retry(w, "c", op).Value.(Submitted).Operation.ID, got.Operation.ID)
		expect(t, "the key of a submission", retry(w, "a", op).Reason, "idempotency_mismatch")
		expect(t, "of another tenant's", w.do(Submit{Tenant: "other", APIKey: apiKey, Key: "z", RetryOf: op.ID, Up: up}).Reason, "not_found")
		w.sound()
	}
}
