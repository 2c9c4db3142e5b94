package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// hands is an upstream of own workers: leases of a minute, three attempts.
func hands() Upstream {
	return Upstream{
		Name: "w", Adapter: WorkerAdapter, Worker: true, WorkLease: time.Minute, Cancels: true, Timeout: 30 * time.Second,
		SubmitAttempts: 3, SettleWithin: 24 * time.Hour, Owner: "platform",
	}
}

// leaseTo leases one operation for a worker and fails if it is not free.
func (w *world) leaseTo(id pawl.ID) WorkLease {
	w.t.Helper()
	leases := w.offered(id)
	if len(leases) != 1 {
		w.t.Fatalf("%s is not free: %+v", id.Text("op"), w.ops[id])
	}
	return leases[0]
}

func (w *world) offered(ids ...pawl.ID) []WorkLease {
	w.t.Helper()
	c := LeaseForWorker{Tenant: tenant, Limit: len(ids)}
	for _, id := range ids {
		c.Offers = append(c.Offers, WorkOffer{id, hands()})
	}
	return w.do(c).Value.([]WorkLease)
}

// sweepWork lets the node do what is due for own workers' operations.
func (w *world) sweepWork() {
	w.t.Helper()
	for _, kind := range []QueueKind{SubmitQueue, ReadQueue} {
		for _, l := range w.do(LeaseWork{Queue: WorkQueueID(kind, "w", tenant), Limit: 100, Up: hands()}).Value.([]Lease) {
			if l.Action != ActAdvance {
				w.t.Fatalf("the node is to %s an own worker's operation", l.Action)
			}
			w.do(Advance{Up: hands(), Operation: l.Operation.ID, Fence: l.Fence})
		}
	}
}

// beat, finish and giveUp are what a worker says.
func (w *world) beat(l WorkLease) Outcome {
	w.t.Helper()
	return w.do(Heartbeat{Tenant: tenant, Lease: l.ID, Up: hands()})
}

func (w *world) finish(l WorkLease) Outcome {
	w.t.Helper()
	return w.do(CompleteWork{Tenant: tenant, Lease: l.ID, Up: hands(), Result: `{"ok":true}`})
}

func (w *world) giveUp(l WorkLease, retryable bool) Outcome {
	w.t.Helper()
	return w.do(FailWork{Tenant: tenant, Lease: l.ID, Up: hands(), Code: pawl.FailContentRejected, Message: "no", Retryable: retryable})
}

func refusedAs(t *testing.T, what string, out Outcome, reason string) {
	t.Helper()
	if out.Err == nil || out.Reason != reason {
		t.Errorf("%s: %s (%v), want it refused as %s", what, out.Reason, out.Err, reason)
	}
}

func accepted(t *testing.T, what string, out Outcome) {
	t.Helper()
	if out.Err != nil {
		t.Errorf("%s: refused: %v", what, out.Err)
	}
}

// The whole way: a first lease makes it running, a completion makes it
// succeeded and charges its price, or the worker's figure (1-product F2).
func TestOwnWorkerCompletes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cost    pawl.Amount
		has     bool
		charged pawl.Amount
		reviews uint32
	}{
		{"no cost", 0, false, 10, 0},
		{"a cost", 7, true, 7, 0},
		{"nothing", 0, true, 0, 0},
		{"above the price", 12, true, 10, 1 << pawl.ReviewOverReservation},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := stage(t)
			op := w.submit(hands(), "a", 10)
			expectState(t, "submitted", op, pawl.Pending)
			lease := w.leaseTo(op.ID)
			expectState(t, "leased", lease.Operation, pawl.Running)
			expect(t, "attempt", lease.ID.Attempt, 1)
			expect(t, "expires", lease.ExpiresAt, w.now.Add(time.Minute))
			expect(t, "a second worker gets", len(w.offered(op.ID)), 0)
			out := w.do(CompleteWork{Tenant: tenant, Lease: lease.ID, Up: hands(), Result: `{"ok":true}`, Cost: tc.cost, HasCost: tc.has, CostText: tc.cost.String(), Currency: "USD"})
			accepted(t, "completion", out)
			expectState(t, "completed", w.ops[op.ID], pawl.Succeeded)
			expect(t, "charged", w.account().Charged, tc.charged)
			expect(t, "reserved", w.account().Reserved, 0)
			expect(t, "reviews", w.ops[op.ID].Reviews, tc.reviews)
			w.sound()
		})
	}
}

// What is said twice under one lease is answered twice, and changes nothing the
// second time; another word under the same lease is refused.
func TestWordsOfAWorkerCountOnce(t *testing.T) {
	w := stage(t)
	done, failed, again := w.leaseTo(w.submit(hands(), "a", 10).ID), w.leaseTo(w.submit(hands(), "b", 10).ID), w.leaseTo(w.submit(hands(), "c", 10).ID)
	w.finish(done)
	expect(t, "completed again", w.finish(done).Reason, "repeated")
	refusedAs(t, "completed with another result", w.do(CompleteWork{Tenant: tenant, Lease: done.ID, Up: hands(), Result: `{"ok":false}`}), "lease_ended")
	refusedAs(t, "completed at another cost", w.do(CompleteWork{Tenant: tenant, Lease: done.ID, Up: hands(), Result: `{"ok":true}`, HasCost: true, CostText: "0", Currency: "USD"}), "lease_ended")
	expect(t, "and the first one again", w.finish(done).Reason, "repeated")
	refusedAs(t, "failed after it was completed", w.giveUp(done, false), "lease_ended")
	refusedAs(t, "heartbeat after it was completed", w.beat(done), "lease_ended")
	w.giveUp(failed, false)
	expectState(t, "failed", w.ops[failed.ID.Operation], pawl.Failed)
	expect(t, "its code", w.ops[failed.ID.Operation].ErrorCode, pawl.FailContentRejected)
	expect(t, "failed again", w.giveUp(failed, false).Reason, "repeated")
	refusedAs(t, "failed in another way", w.giveUp(failed, true), "lease_ended")
	refusedAs(t, "completed after it failed", w.finish(failed), "lease_ended")
	w.giveUp(again, true)
	w.tick(time.Hour / 2)
	second := w.leaseTo(again.ID.Operation)
	expect(t, "attempt", second.ID.Attempt, 2)
	expect(t, "the first one's failure again", w.giveUp(again, true).Reason, "repeated")
	refusedAs(t, "the first one's completion", w.finish(again), "lease_lost")
	w.finish(second)
	expectState(t, "the second one's completion", w.ops[again.ID.Operation], pawl.Succeeded)
	expect(t, "charged", w.account().Charged, 20)
	w.sound()
}

// Two workers with one operation (O-108): the lease of the first runs out, the second
// gets it, and one outcome counts; the loser is told why (7-rules §4).
func TestO108TwoWorkersOneOutcome(t *testing.T) {
	w := stage(t)
	op := w.submit(hands(), "a", 10)
	first := w.leaseTo(op.ID)
	w.tick(time.Minute - 1)
	w.sweepWork()
	expect(t, "leased again before its end", len(w.offered(op.ID)), 0)
	w.tick(time.Second)
	w.sweepWork()
	expectState(t, "after the end", w.ops[op.ID], pawl.Running)
	second := w.leaseTo(op.ID)
	expect(t, "attempt", second.ID.Attempt, 2)
	for what, out := range map[string]Outcome{"heartbeat": w.beat(first), "completion": w.finish(first), "failure": w.giveUp(first, false),
		"progress": w.do(ReportProgress{Tenant: tenant, Lease: first.ID, Progress: 1})} {
		refusedAs(t, what, out, "lease_lost")
		expect(t, what+" names", out.Err.Operation, op.ID)
	}
	w.finish(second)
	refusedAs(t, "late completion", w.finish(first), "lease_lost")
	expect(t, "charged", w.account().Charged, 10)
	versions := 0
	for _, e := range w.events {
		if e.Type == pawl.TypeRunning || e.Type == pawl.TypeSucceeded {
			versions++
		}
	}
	expect(t, "events", versions, 2)
	w.sound()
}

// Until another worker has it, a late word counts: nobody's work is thrown away
// for being slow.
func TestLateWordBeforeAnotherLease(t *testing.T) {
	w := stage(t)
	late := func() WorkLease {
		l := w.leaseTo(w.submit(hands(), w.now.String(), 0).ID)
		w.tick(2 * time.Minute)
		w.sweepWork()
		expect(t, "waits", w.ops[l.ID.Operation].WaitingAt.IsSet(), true)
		return l
	}
	a := late()
	accepted(t, "heartbeat", w.beat(a))
	expect(t, "another gets", len(w.offered(a.ID.Operation)), 0)
	accepted(t, "then completion", w.finish(a))
	accepted(t, "completion", w.finish(late()))
	b := late()
	accepted(t, "failure", w.giveUp(b, true))
	expect(t, "attempts", w.ops[b.ID.Operation].Creates, 1)
	w.sound()
}

// A heartbeat between the node's claim of an expired lease and its decision
// keeps the lease, and the decision is dropped; so is it after a completion in
// between, and after another worker has it (O-109).
func TestO109HeartbeatBetweenClaimAndDecision(t *testing.T) {
	w := stage(t)
	l := w.leaseTo(w.submit(hands(), "a", 0).ID)
	w.tick(time.Minute)
	claimed := w.do(LeaseWork{Queue: WorkQueueID(ReadQueue, "w", tenant), Limit: 1, Up: hands()}).Value.([]Lease)
	accepted(t, "heartbeat", w.beat(l))
	expect(t, "decision", w.do(Advance{Up: hands(), Operation: l.ID.Operation, Fence: claimed[0].Fence}).Reason, "old_lease")
	// Nor does a draining node hand it back.
	expect(t, "hand back", w.do(ReleaseLease{Operation: l.ID.Operation, Fence: claimed[0].Fence}).Reason, "not_leased")
	expect(t, "leased", w.ops[l.ID.Operation].Leased, ActWork)
	w.tick(time.Minute)
	claimed = w.do(LeaseWork{Queue: WorkQueueID(ReadQueue, "w", tenant), Limit: 1, Up: hands()}).Value.([]Lease)
	accepted(t, "completion", w.finish(l))
	ended := w.ops[l.ID.Operation]
	expect(t, "decision after the end", w.do(Advance{Up: hands(), Operation: ended.ID, Fence: claimed[0].Fence}).Reason, "old_lease")
	expect(t, "the operation", w.ops[ended.ID], ended)
	w.sound()
}

// Attempts are bounded: leases that run out end as timeout, a failure that may
// be tried again with its own code.
func TestAttemptsOfWorkers(t *testing.T) {
	w := stage(t)
	silent, noisy := w.submit(hands(), "a", 10), w.submit(hands(), "b", 10)
	for n := range int32(3) {
		expect(t, "attempt", w.leaseTo(silent.ID).ID.Attempt, n+1)
		l := w.leaseTo(noisy.ID)
		w.giveUp(l, true)
		w.tick(5 * time.Minute)
		w.sweepWork()
	}
	expectState(t, "silent", w.ops[silent.ID], pawl.Failed)
	expect(t, "code", w.ops[silent.ID].ErrorCode, pawl.FailTimeout)
	expectState(t, "noisy", w.ops[noisy.ID], pawl.Failed)
	expect(t, "code", w.ops[noisy.ID].ErrorCode, pawl.FailContentRejected)
	expect(t, "charged", w.account().Charged, 0)
	expect(t, "reserved", w.account().Reserved, 0)
	w.sound()
}

// A failure that may be tried again waits, longer each time, and the oldest that
// waits comes first.
func TestFailedWorkWaits(t *testing.T) {
	w := stage(t)
	l := w.leaseTo(w.submit(hands(), "a", 0).ID)
	w.giveUp(l, true)
	wait := w.ops[l.ID.Operation].WaitingAt.Sub(w.now)
	if wait < 900*time.Millisecond || wait > 1100*time.Millisecond {
		t.Errorf("waits %s, want 1 s ±10 %%", wait)
	}
	expect(t, "free at once", len(w.offered(l.ID.Operation)), 0)
	w.tick(2 * time.Second)
	l = w.leaseTo(l.ID.Operation)
	w.tick(2 * time.Minute)
	w.sweepWork()
	expect(t, "after a lease that ran out it waits since", w.ops[l.ID.Operation].WaitingAt, w.ops[l.ID.Operation].CreatedAt)
	w.sound()
}

// A cancel (1-product D3): at once where no worker has it, else by the worker's
// word or its silence; a success that came first wins.
func TestCancelOfWork(t *testing.T) {
	cancel := func(w *world, id pawl.ID) Operation {
		out := w.do(Cancel{Tenant: tenant, Operation: id, Up: hands()})
		accepted(t, "cancel", out)
		return w.ops[id]
	}
	told := func(t *testing.T) (*world, WorkLease) {
		w := stage(t)
		l := w.leaseTo(w.submit(hands(), "a", 10).ID)
		expect(t, "told before", w.beat(l).Value.(WorkStatus).CancelRequested, false)
		expectState(t, "asked", cancel(w, l.ID.Operation), pawl.Running)
		expect(t, "told", w.beat(l).Value.(WorkStatus).CancelRequested, true)
		return w, l
	}
	ends := func(t *testing.T, w *world, l WorkLease, want pawl.State, charged pawl.Amount) {
		expectState(t, "ended", w.ops[l.ID.Operation], want)
		expect(t, "charged", w.account().Charged, charged)
		expect(t, "reserved", w.account().Reserved, 0)
		expect(t, "confirmed", w.ops[l.ID.Operation].CancelConfirmed, want == pawl.Canceled)
		w.sound()
	}
	t.Run("pending", func(t *testing.T) {
		w := stage(t)
		expectState(t, "canceled", cancel(w, w.submit(hands(), "a", 10).ID), pawl.Canceled)
		w.sound()
	})
	t.Run("running without a worker", func(t *testing.T) {
		w := stage(t)
		l := w.leaseTo(w.submit(hands(), "a", 10).ID)
		w.giveUp(l, true)
		expectState(t, "canceled", cancel(w, l.ID.Operation), pawl.Canceled)
		refusedAs(t, "heartbeat", w.beat(l), "lease_ended")
		w.sound()
	})
	t.Run("by failure", func(t *testing.T) {
		w, l := told(t)
		accepted(t, "failure", w.giveUp(l, true))
		ends(t, w, l, pawl.Canceled, 0)
	})
	t.Run("by completion as canceled, with its cost", func(t *testing.T) {
		w, l := told(t)
		accepted(t, "completion", w.do(CompleteWork{Tenant: tenant, Lease: l.ID, Up: hands(), Canceled: true, HasCost: true, Cost: 3, CostText: "3", Currency: "USD"}))
		ends(t, w, l, pawl.Canceled, 3)
	})
	t.Run("by silence", func(t *testing.T) {
		w, l := told(t)
		w.tick(2 * time.Minute)
		w.sweepWork()
		ends(t, w, l, pawl.Canceled, 0)
		refusedAs(t, "late completion", w.finish(l), "finished")
	})
	t.Run("a success came first", func(t *testing.T) {
		w, l := told(t)
		accepted(t, "completion", w.finish(l))
		ends(t, w, l, pawl.Succeeded, 10)
	})
	t.Run("nobody asked", func(t *testing.T) {
		w := stage(t)
		l := w.leaseTo(w.submit(hands(), "a", 10).ID)
		refusedAs(t, "canceled", w.do(CompleteWork{Tenant: tenant, Lease: l.ID, Up: hands(), Canceled: true}), "cancel_not_requested")
		expectState(t, "still", w.ops[l.ID.Operation], pawl.Running)
		w.sound()
	})
}

// The deadline (1-product D4): without a worker it expires; with one, that is
// told to stop and has one lease's time to hand in what it has.
func TestDeadlineOfWork(t *testing.T) {
	over := func(t *testing.T) (*world, WorkLease) {
		w := stage(t)
		l := w.leaseTo(w.submit(hands(), "a", 10).ID)
		for w.now.Add(50*time.Second) < w.ops[l.ID.Operation].Deadline {
			w.tick(50 * time.Second)
			expect(t, "told before", w.beat(l).Value.(WorkStatus).CancelRequested, false)
			w.sweepWork()
		}
		w.now = w.ops[l.ID.Operation].Deadline
		status := w.beat(l).Value.(WorkStatus)
		expect(t, "told", status.CancelRequested, true)
		expect(t, "until", status.ExpiresAt, status.Operation.Deadline.Add(time.Minute))
		w.tick(30 * time.Second)
		expect(t, "no longer", w.beat(l).Value.(WorkStatus).ExpiresAt, status.ExpiresAt)
		w.sweepWork()
		expectState(t, "meanwhile", w.ops[l.ID.Operation], pawl.Running)
		return w, l
	}
	for name, c := range map[string]struct {
		say     func(*world, WorkLease)
		want    pawl.State
		charged pawl.Amount
	}{
		"completed": {func(w *world, l WorkLease) { w.finish(l) }, pawl.Succeeded, 10},
		"failed":    {func(w *world, l WorkLease) { w.giveUp(l, false) }, pawl.Expired, 0},
		"stopped": {func(w *world, l WorkLease) {
			w.do(CompleteWork{Tenant: tenant, Lease: l.ID, Up: hands(), Canceled: true})
		}, pawl.Expired, 0},
		"silent": {func(w *world, _ WorkLease) { w.tick(30 * time.Second); w.sweepWork() }, pawl.Expired, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := over(t)
			c.say(w, l)
			expectState(t, "ended", w.ops[l.ID.Operation], c.want)
			expect(t, "charged", w.account().Charged, c.charged)
			expect(t, "reserved", w.account().Reserved, 0)
			if c.want == pawl.Expired {
				if out := w.finish(l); name != "stopped" && (out.Err == nil || out.Err.Kind != pawl.Conflicting) {
					t.Errorf("late completion: %s", out.Reason)
				}
			}
			w.sound()
		})
	}
	t.Run("nobody came", func(t *testing.T) {
		w := stage(t)
		op := w.submit(hands(), "a", 10)
		w.now = op.Deadline
		expect(t, "free", len(w.offered(op.ID)), 0)
		w.sweepWork()
		expectState(t, "ended", w.ops[op.ID], pawl.Expired)
		w.sound()
	})
	t.Run("nobody came again", func(t *testing.T) {
		w := stage(t)
		l := w.leaseTo(w.submit(hands(), "a", 10).ID)
		w.giveUp(l, true)
		w.now = l.Operation.Deadline
		w.sweepWork()
		expectState(t, "ended", w.ops[l.ID.Operation], pawl.Expired)
		w.sound()
	})
}

// A node that starts again frees its own leases and not those of workers, who
// live on; it gives them time to be heard.
func TestWorkersOutliveTheNode(t *testing.T) {
	w := stage(t)
	l := w.leaseTo(w.submit(hands(), "a", 10).ID)
	expect(t, "freed", w.do(LoseLease{Operation: l.ID.Operation, Fence: w.ops[l.ID.Operation].Lease}).Reason, "not_leased")
	w.tick(3 * time.Hour) // The node was away, and the deadline passed.
	w.do(SpareWork{Operation: l.ID.Operation, Up: hands()})
	w.sweepWork()
	expectState(t, "unheard", w.ops[l.ID.Operation], pawl.Running)
	accepted(t, "heartbeat", w.beat(l))
	w.sweepWork()
	accepted(t, "completion", w.finish(l))
	expectState(t, "completed", w.ops[l.ID.Operation], pawl.Succeeded)
	w.sound()
}

// A lease that its worker never heard of goes back as if it had never been.
func TestReturnedWork(t *testing.T) {
	w := stage(t)
	l := w.leaseTo(w.submit(hands(), "a", 10).ID)
	w.do(ReturnWork{Lease: l.ID})
	expectState(t, "returned", w.ops[l.ID.Operation], pawl.Running)
	refusedAs(t, "heartbeat", w.beat(l), "not_found")
	expect(t, "attempt", w.leaseTo(l.ID.Operation).ID.Attempt, 1)
	w.sound()
	w.do(Cancel{Tenant: tenant, Operation: l.ID.Operation, Up: hands()})
	w.do(ReturnWork{Lease: l.ID})
	expectState(t, "canceled meanwhile", w.ops[l.ID.Operation], pawl.Canceled)
	w.sound()
}

// Progress is for display: it moves neither state nor version nor lease.
func TestProgressOfWork(t *testing.T) {
	w := stage(t)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: pawl.NewID(start, 77), Tenant: tenant, Types: pawl.TypeProgress}})
	l := w.leaseTo(w.submit(hands(), "a", 10).ID)
	told := func() (n int) {
		for _, e := range w.events {
			if e.Type == pawl.TypeProgress {
				n++
			}
		}
		return n
	}
	before := w.ops[l.ID.Operation]
	for n := range int32(20) {
		w.tick(100 * time.Millisecond)
		accepted(t, "progress", w.do(ReportProgress{Tenant: tenant, Lease: l.ID, Progress: n * 100, Message: "frame"}))
	}
	now := w.ops[l.ID.Operation]
	expect(t, "progress", now.Progress, 1900)
	expect(t, "word", now.UpstreamState, "frame")
	expect(t, "version", now.Version, before.Version)
	expect(t, "lease", now.DueAt, before.DueAt)
	if n := told(); n < 1 || n > 2 {
		t.Errorf("%d progress events in two seconds, want one a second", n)
	}
	w.sound()
}

// Nobody but the tenant's own keys, an admin key aside, gets or names a lease;
// nor is a provider's operation to be had by naming one.
func TestLeasesOfOthers(t *testing.T) {
	w := stage(t)
	l := w.leaseTo(w.submit(hands(), "a", 10).ID)
	provided := w.running(upstream(), "b", 0)
	for what, c := range map[string]Command{
		"another tenant's heartbeat":  Heartbeat{Tenant: "else", Lease: l.ID, Up: hands()},
		"another tenant's completion": CompleteWork{Tenant: "else", Lease: l.ID, Up: hands()},
		"another tenant's failure":    FailWork{Tenant: "else", Lease: l.ID, Up: hands()},
		"another tenant's progress":   ReportProgress{Tenant: "else", Lease: l.ID, Progress: 1},
		"a lease to come":             Heartbeat{Tenant: tenant, Lease: WorkLeaseID{l.ID.Operation, 2}, Up: hands()},
		"no lease":                    CompleteWork{Tenant: tenant, Lease: WorkLeaseID{l.ID.Operation, 0}, Up: hands()},
		"nobody's operation":          FailWork{Tenant: tenant, Lease: WorkLeaseID{pawl.NewID(start, 9), 1}, Up: hands()},
		"a provider's operation":      CompleteWork{Tenant: tenant, Lease: WorkLeaseID{provided.ID, 1}, Up: hands()},
		"its heartbeat":               Heartbeat{Tenant: tenant, Lease: WorkLeaseID{provided.ID, 1}, Up: hands()},
	} {
		refusedAs(t, what, w.do(c), "not_found")
	}
	expectState(t, "still", w.ops[provided.ID], pawl.Running)
	free := w.submit(hands(), "c", 0)
	expect(t, "another tenant gets", w.do(LeaseForWorker{Tenant: "else", Limit: 1, Offers: []WorkOffer{{free.ID, hands()}}}).Reason, "nothing_free")
	w.do(PauseUpstream{Upstream: "w"})
	expect(t, "of a paused upstream one gets", len(w.offered(free.ID)), 0)
	accepted(t, "what is under way goes on", w.finish(l))
	w.do(ResumeUpstream{Upstream: "w"})
	expect(t, "an admin key gets", w.do(LeaseForWorker{Limit: 1, Offers: []WorkOffer{{free.ID, hands()}}}).Reason, "leased")
	w.sound()
}

// An upstream that is given to own workers later offers what was never created,
// and leaves alone what may be at its provider.
func TestUpstreamChangesItsPreset(t *testing.T) {
	w := stage(t)
	before := upstream()
	before.Name = "w"
	created := w.running(before, "b", 10)
	fresh := w.submit(before, "a", 10)
	w.sweepWork()
	l := w.leaseTo(fresh.ID)
	accepted(t, "completion", w.finish(l))
	expectState(t, "completed", w.ops[fresh.ID], pawl.Succeeded)
	expectState(t, "at its provider", w.ops[created.ID], pawl.Running)
	w.sound()
}

// The id on the wire is read back, and nothing else is.
func TestWorkLeaseID(t *testing.T) {
	id := WorkLeaseID{pawl.NewID(start, 5), 12}
	text := id.String()
	if !strings.HasPrefix(text, "lease_") || !strings.HasSuffix(text, "_12") {
		t.Errorf("written as %q", text)
	}
	if got, err := ParseWorkLeaseID(text); err != nil || got != id {
		t.Errorf("read as %v, %v", got, err)
	}
	suffix := id.Operation.Suffix()
	for _, bad := range []string{
		"", "_", "lease_", "lease_" + suffix, "lease_" + suffix + "_", "lease_" + suffix + "_0", "lease_" + suffix + "_-1", "lease_" + suffix + "_012",
		"lease_" + suffix + "_+1", "lease_" + suffix + "_1_2", "op_" + suffix + "_1", "lease_" + suffix + "_99999999999", "lease_" + strings.ToUpper(suffix) + "_1",
		"lease__1", suffix + "_1",
	} {
		if got, err := ParseWorkLeaseID(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzWorkLeaseID(f *testing.F) {
	f.Add(WorkLeaseID{pawl.NewID(start, 5), 12}.String())
	f.Add("lease_00000000000000000000000000_1")
	f.Add("lease__1")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseWorkLeaseID(text); err == nil && (id.String() != text || id.Attempt < 1) {
			t.Errorf("%q is read as %v, which is written %q", text, id, id.String())
		}
	})
}
