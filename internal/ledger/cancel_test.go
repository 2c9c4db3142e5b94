package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// canceling is an upstream that can cancel.
func canceling() Upstream {
	up := upstream()
	up.Cancels = true
	return up
}

func (w *world) cancel(up Upstream, id pawl.ID) Outcome {
	w.t.Helper()
	return w.do(Cancel{Tenant: tenant, Operation: id, Up: up})
}

// stop leases the cancel that is due and records how it ended.
func (w *world) stop(up Upstream, id pawl.ID, how CancelOutcome, said ...Observation) Operation {
	w.t.Helper()
	l := w.lease(up, id, ActCancel)
	c := RecordCancel{Up: up, Operation: id, Fence: l.Fence, Outcome: how, Observed: len(said) > 0}
	if c.Observed {
		c.Obs = said[0]
	}
	w.do(c)
	return w.ops[id]
}

// TestCancelUncreated: with no create on the wire an operation is canceled at
// once, whatever its upstream can do, and nothing is ever created (1-product
// D3, O-053).
func TestCancelUncreated(t *testing.T) {
	for name, up := range map[string]Upstream{"can cancel": canceling(), "cannot": upstream(), "unknown": {Name: "s"}} {
		t.Run(name, func(t *testing.T) {
			w := stage(t)
			op := w.submit(upstream(), "a", 10)
			out := w.cancel(up, op.ID)
			expect(t, "reason", out.Reason, "canceled")
			got := w.ops[op.ID]
			expectState(t, "at once", got, pawl.Canceled)
			expect(t, "requested", got.CancelRequestedAt, w.now)
			expect(t, "confirmed", got.CancelConfirmed, true)
			expect(t, "released", w.account().Reserved, 0)
			expect(t, "charged", w.account().Charged, 0)
			expect(t, "told", w.types(op.ID)[0], pawl.TypeCanceled)
			w.tick(time.Hour)
			for _, kind := range []QueueKind{SubmitQueue, ReadQueue} {
				out := w.do(LeaseWork{Queue: WorkQueueID(kind, "s", tenant), Limit: 9, Up: upstream()})
				expect(t, "due", len(out.Value.([]Lease)), 0)
			}
			expect(t, "again", w.cancel(up, op.ID).Reason, "finished")
			w.sound()
		})
	}
}

// TestCancelOnTheWire: a create on the wire counts like an unconfirmed one; how
// it ends decides what the cancel comes to (1-product D3, 7-rules §1).
func TestCancelOnTheWire(t *testing.T) {
	once := canceling()
	once.Idempotent, once.IdempotencyWindow, once.Credential = true, 10*time.Minute, [8]byte{1}
	cases := []struct {
		name  string
		up    Upstream
		how   CreateOutcome
		state pawl.State
		next  Action
	}{
		{"accepted", canceling(), CreateAccepted, pawl.Running, ActCancel},
		{"refused", canceling(), CreateRefused, pawl.Failed, NoAction},
		{"unauthorized", canceling(), CreateUnauthorized, pawl.Canceled, NoAction},
		{"wait", canceling(), CreateWait, pawl.Canceled, NoAction},
		{"not written", canceling(), CreateNotWritten, pawl.Canceled, NoAction},
		{"unknown", canceling(), CreateUnknown, pawl.Unconfirmed, ActAdvance},
		// The repeat under the same key is what teaches the task.
		{"unknown, idempotent", once, CreateUnknown, pawl.Pending, ActSubmit},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := stage(t)
			op := w.submit(c.up, "a", 10)
			l := w.lease(c.up, op.ID, ActSubmit)
			expect(t, "asked", w.cancel(c.up, op.ID).Reason, "requested")
			expectState(t, "asked", w.ops[op.ID], pawl.Pending)
			op = w.answer(c.up, l, c.how, "task-a")
			expectState(t, "answered", op, c.state)
			if c.next == NoAction {
				expect(t, "due", op.DueAt, pawl.Never)
				expect(t, "released", w.account().Reserved, 0)
			} else {
				w.lease(c.up, op.ID, c.next)
			}
			w.sound()
		})
	}
	t.Run("handed back unsent", func(t *testing.T) {
		w := stage(t)
		op := w.submit(canceling(), "a", 10)
		l := w.lease(canceling(), op.ID, ActSubmit)
		w.cancel(canceling(), op.ID)
		w.do(ReleaseLease{Operation: op.ID, Fence: l.Fence})
		a := w.lease(canceling(), op.ID, ActAdvance)
		w.do(Advance{Up: canceling(), Operation: op.ID, Fence: a.Fence})
		expectState(t, "canceled", w.ops[op.ID], pawl.Canceled)
		w.sound()
	})
	t.Run("unconfirmed, then the task is known", func(t *testing.T) {
		up := canceling()
		w := stage(t)
		op := w.submit(up, "a", 10)
		w.create(up, op.ID, CreateUnknown, "")
		expect(t, "recorded", w.cancel(up, op.ID).Reason, "requested")
		expectState(t, "recorded", w.ops[op.ID], pawl.Unconfirmed)
		w.event(up, op.ID, "e1", obs("task-a", pawl.Running))
		expectState(t, "taken", w.stop(up, op.ID, CancelTaken, obs("task-a", pawl.Canceled)), pawl.Canceled)
		w.sound()
	})
	t.Run("it was not created after all", func(t *testing.T) {
		up := canceling()
		w := stage(t)
		op := w.submit(up, "a", 10)
		w.create(up, op.ID, CreateUnknown, "")
		w.cancel(up, op.ID)
		w.do(ResolveOperation{Operation: op.ID, Up: up, Decision: pawl.DecideNotCreated})
		expectState(t, "not sent again", w.ops[op.ID], pawl.Canceled)
		w.sound()
	})
}

// TestCancelRefused: what the upstream cannot do is refused with the reason, and
// changes nothing; a finished operation is answered as it is.
func TestCancelRefused(t *testing.T) {
	w := stage(t)
	op := w.running(upstream(), "a", 10)
	before := w.ops[op.ID]
	for reason, up := range map[string]Upstream{"cancel_unsupported": upstream(), "upstream_unknown": {Name: "s"}} {
		out := w.cancel(up, op.ID)
		expect(t, "kind", out.Err.Kind, pawl.Conflicting)
		expect(t, "reason", out.Reason, reason)
	}
	expect(t, "changed", w.ops[op.ID], before)
	expect(t, "another tenant", w.do(Cancel{Tenant: "other", Operation: op.ID, Up: canceling()}).Err.Kind, pawl.NotFound)
	w.event(upstream(), op.ID, "e1", obs("task-a", pawl.Succeeded))
	before = w.ops[op.ID]
	expect(t, "finished", w.cancel(upstream(), op.ID).Reason, "finished")
	expect(t, "changed", w.ops[op.ID], before)
	w.sound()
}

// TestCancelIsDecidedByReads: after the provider took it, its word decides, and
// a success that came first wins (1-product D3); the money is that of the end
// (O-072, O-074).
func TestCancelIsDecidedByReads(t *testing.T) {
	for _, c := range []struct {
		end     pawl.State
		cost    pawl.Amount
		charged pawl.Amount
	}{{pawl.Canceled, 3, 3}, {pawl.Canceled, 0, 0}, {pawl.Succeeded, 8, 8}, {pawl.Failed, 8, 0}} {
		t.Run(c.end.String(), func(t *testing.T) {
			up := canceling()
			w := stage(t)
			op := w.running(up, "a", 10)
			w.cancel(up, op.ID)
			expectState(t, "taken", w.stop(up, op.ID, CancelTaken), pawl.Running)
			expect(t, "confirmed", w.ops[op.ID].CancelConfirmed, true)
			expect(t, "asked twice", w.cancel(up, op.ID).Reason, "requested")
			o := obs("task-a", c.end)
			o.HasCost, o.Cost, o.CostText, o.Settled = true, c.cost, c.cost.String(), SettledYes
			expectState(t, "read", w.read(up, op.ID, ReadObserved, o), c.end)
			expect(t, "charged", w.account().Charged, c.charged)
			expect(t, "reserved", w.account().Reserved, 0)
			w.sound()
		})
	}
}

// TestCancelIsBounded: a cancel that nobody answers is sent again, ten times at
// the most, while reads go on; a refusal makes a read due; asking again starts
// anew.
func TestCancelIsBounded(t *testing.T) {
	for _, how := range []CancelOutcome{CancelUnknown, CancelUnreachable} {
		t.Run(how.String(), func(t *testing.T) {
			up := canceling()
			w := stage(t)
			op := w.running(up, "a", 10)
			w.cancel(up, op.ID)
			sent := 0
			for w.ops[op.ID].CancelDueAt != 0 {
				if due := w.ops[op.ID].DueAt; due > w.ops[op.ID].CancelDueAt {
					t.Fatalf("due %s after its cancel", due.Sub(w.ops[op.ID].CancelDueAt))
				}
				w.now = w.ops[op.ID].CancelDueAt
				w.stop(up, op.ID, how)
				sent++
			}
			expect(t, "sent", sent, 10)
			// 1+2+4+8+16+32+60+60+60 s, ±10 %
			if took := w.now.Sub(start); took < 218*time.Second || took > 270*time.Second {
				t.Errorf("ten tries within %s", took)
			}
			expect(t, "confirmed", w.ops[op.ID].CancelConfirmed, false)
			expectState(t, "goes on", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Running)), pawl.Running)
			expect(t, "asked again", w.cancel(up, op.ID).Reason, "requested")
			expectState(t, "taken", w.stop(up, op.ID, CancelTaken, obs("task-a", pawl.Canceled)), pawl.Canceled)
			w.sound()
		})
	}
	t.Run("a read is under way", func(t *testing.T) {
		up := canceling()
		w := stage(t)
		op := w.running(up, "a", 10)
		l := w.lease(up, op.ID, ActRead)
		w.cancel(up, op.ID)
		w.do(ObserveStatus{Up: up, Operation: op.ID, Fence: l.Fence, Outcome: ReadObserved, Obs: obs("task-a", pawl.Running)})
		expect(t, "due", w.ops[op.ID].DueAt, w.now)
		w.stop(up, op.ID, CancelTaken)
		w.sound()
	})
	t.Run("refused", func(t *testing.T) {
		up := canceling()
		w := stage(t)
		op := w.running(up, "a", 10)
		w.cancel(up, op.ID)
		w.stop(up, op.ID, CancelRefused)
		expect(t, "due", w.ops[op.ID].DueAt, w.now)
		expectState(t, "it had ended", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
		w.sound()
	})
	t.Run("the wait that the provider asks for", func(t *testing.T) {
		up := canceling()
		w := stage(t)
		op := w.running(up, "a", 10)
		w.cancel(up, op.ID)
		l := w.lease(up, op.ID, ActCancel)
		w.do(RecordCancel{Up: up, Operation: op.ID, Fence: l.Fence, Outcome: CancelUnreachable, RetryAfter: 5 * time.Minute})
		expect(t, "due", w.ops[op.ID].CancelDueAt, w.now.Add(5*time.Minute))
		w.lease(up, op.ID, ActRead) // reads go on meanwhile
		w.sound()
	})
}

// TestLateCancel: that the provider took it is learned under any lease, a
// failure is not (7-rules §4).
func TestLateCancel(t *testing.T) {
	up := canceling()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.cancel(up, op.ID)
	old := w.lease(up, op.ID, ActCancel)
	w.now = w.ops[op.ID].DueAt
	w.lease(up, op.ID, ActCancel)
	before := w.ops[op.ID]
	for _, how := range []CancelOutcome{CancelRefused, CancelUnknown, CancelUnreachable} {
		w.do(RecordCancel{Up: up, Operation: op.ID, Fence: old.Fence, Outcome: how})
		expect(t, how.String(), w.ops[op.ID], before)
	}
	w.do(RecordCancel{Up: up, Operation: op.ID, Fence: old.Fence, Outcome: CancelTaken, Observed: true, Obs: obs("task-b", pawl.Canceled)})
	expectState(t, "another task says nothing", w.ops[op.ID], pawl.Running)
	expect(t, "learned", w.ops[op.ID].CancelConfirmed, true)
	w.sound()
}

// TestCancelKey: one key, one wish (7-rules R52).
func TestCancelKey(t *testing.T) {
	up := canceling()
	w := stage(t)
	op, other := w.running(up, "a", 10), w.submit(up, "b", 10)
	key := Once{APIKey: apiKey, KeyTenant: tenant, Key: "stop", Window: time.Hour}
	ask := func(id pawl.ID, once Once) Outcome {
		return w.do(Cancel{Once: once, Tenant: tenant, Operation: id, Up: up})
	}
	expect(t, "first", ask(op.ID, key).Reason, "requested")
	w.stop(up, op.ID, CancelRefused)
	expect(t, "replayed", ask(op.ID, key).Reason, "replayed")
	expect(t, "sent once", w.ops[op.ID].CancelDueAt, 0)
	expect(t, "another operation", ask(other.ID, key).Err.Kind, pawl.Unprocessable)
	key.APIKey = pawl.NewID(start, 77)
	expect(t, "a sibling's", ask(op.ID, key).Err.Kind, pawl.Conflicting)
	expect(t, "a submit's", ask(op.ID, Once{APIKey: apiKey, KeyTenant: tenant, Key: "a"}).Err.Kind, pawl.Unprocessable)
	w.sound()
}

// TestDeadlineCancels: what the deadline's read found unfinished is told to stop,
// then it expires, whatever the provider says to that; nothing expires unread
// (1-product D4).
func TestDeadlineCancels(t *testing.T) {
	up := canceling()
	late := func(t *testing.T) (*world, pawl.ID) {
		w := stage(t)
		op := w.running(up, "a", 10)
		w.now = op.Deadline.Add(time.Second)
		expectState(t, "read", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Running)), pawl.Running)
		return w, op.ID
	}
	expired := func(t *testing.T, w *world, id pawl.ID) {
		t.Helper()
		expectState(t, "then", w.ops[id], pawl.Expired)
		expect(t, "released", w.account().Reserved, 0)
		expect(t, "due", w.ops[id].DueAt, pawl.Never)
		expect(t, "asked for", w.ops[id].CancelRequestedAt.IsSet(), true)
		w.sound()
	}
	t.Run("taken", func(t *testing.T) {
		w, id := late(t)
		w.stop(up, id, CancelTaken)
		expired(t, w, id)
		// The cancel has arrived: that contradicts nothing.
		expectVerdict(t, "canceled as asked", w.event(up, id, "e1", obs("task-a", pawl.Canceled)).Verdict, pawl.Stale)
		expect(t, "reviews", w.ops[id].Reviews, 0)
		expectVerdict(t, "a late success", w.event(up, id, "e2", obs("task-a", pawl.Succeeded)).Verdict, pawl.Conflict)
		expect(t, "asked", w.open(id, pawl.ReviewLateSuccess).ID.IsZero(), false)
		w.sound()
	})
	t.Run("taken and told", func(t *testing.T) {
		w, id := late(t)
		w.stop(up, id, CancelTaken, obs("task-a", pawl.Canceled))
		expired(t, w, id)
	})
	t.Run("it succeeds first", func(t *testing.T) {
		w, id := late(t)
		expectState(t, "applied", w.stop(up, id, CancelTaken, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
		expect(t, "charged", w.account().Charged, 10)
		w.sound()
	})
	t.Run("refused, still unfinished", func(t *testing.T) {
		w, id := late(t)
		w.stop(up, id, CancelRefused)
		expectState(t, "read once more", w.ops[id], pawl.Running)
		w.read(up, id, ReadObserved, obs("task-a", pawl.Running))
		expired(t, w, id)
	})
	t.Run("refused, since it has ended", func(t *testing.T) {
		w, id := late(t)
		w.stop(up, id, CancelRefused)
		expectState(t, "applied", w.read(up, id, ReadObserved, obs("task-a", pawl.Succeeded)), pawl.Succeeded)
		w.sound()
	})
	t.Run("refused, and unreadable since", func(t *testing.T) {
		w, id := late(t)
		w.stop(up, id, CancelRefused)
		for w.open(id, pawl.ReviewDeadlineUnread).ID.IsZero() {
			w.read(up, id, ReadNotFound, Observation{})
		}
		expectState(t, "held", w.ops[id], pawl.Running)
		expect(t, "asked", w.open(id, pawl.ReviewDeadlineUnread).ID.IsZero(), false)
		w.sound()
	})
	for _, how := range []CancelOutcome{CancelUnknown, CancelUnreachable} {
		t.Run(how.String(), func(t *testing.T) {
			w, id := late(t)
			began := w.now
			for range 3 {
				expectState(t, "tried", w.ops[id], pawl.Running)
				w.stop(up, id, how)
			}
			if took := w.now.Sub(began); took > time.Minute {
				t.Errorf("three tries took %s", took)
			}
			expired(t, w, id)
		})
	}
	t.Run("a person's cancel does not expire it unread", func(t *testing.T) {
		w := stage(t)
		op := w.running(up, "a", 10)
		w.now = op.Deadline - 1
		w.cancel(up, op.ID)
		l := w.lease(up, op.ID, ActCancel)
		w.now = op.Deadline.Add(time.Second)
		w.do(RecordCancel{Up: up, Operation: op.ID, Fence: l.Fence, Outcome: CancelTaken})
		expectState(t, "read first", w.ops[op.ID], pawl.Running)
		expectState(t, "read", w.read(up, op.ID, ReadObserved, obs("task-a", pawl.Running)), pawl.Expired)
		w.sound()
	})
}
