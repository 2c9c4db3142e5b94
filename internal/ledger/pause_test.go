package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

func (w *world) gate() Queue { return w.queues[GateID("s")] }

func (w *world) leaseOf(who string, n int) Outcome {
	return w.do(LeaseWork{Queue: WorkQueueID(SubmitQueue, "s", who), Limit: n, Up: upstream()})
}

func leases(out Outcome) []Lease { l, _ := out.Value.([]Lease); return l }

// One tenant's refused credential is everybody's: it is the upstream's. The
// creates that were sent with it before count once; after the pause one create
// at a time tries, and the pause grows with each that is refused (1-product B4).
func TestRefusedCredentialStopsTheUpstream(t *testing.T) {
	up := upstream()
	w := stage(t)
	w.do(EnsureTenant{Name: "b"})
	for _, key := range []string{"a1", "a2", "a3"} {
		w.submit(up, key, 0)
	}
	w.do(Submit{Tenant: "b", APIKey: apiKey, Key: "b1", Fingerprint: digest("b1"), Window: time.Hour, Up: up, Deadline: deadline})
	sent := leases(w.leaseOf(tenant, 3))
	expect(t, "sent", len(sent), 3)
	for _, l := range sent {
		w.answer(up, l, CreateUnauthorized, "")
	}
	expect(t, "failures", w.gate().Failures, 1)
	expect(t, "reason", w.gate().PauseReason, pausedUnauthorized)
	expect(t, "the other tenant", w.leaseOf("b", 3).Reason, "paused")
	if q := w.queues[WorkQueueID(SubmitQueue, "s", tenant)]; q.PausedUntil != 0 || q.NextDue > w.now {
		t.Errorf("the tenant's own queue is %+v", q)
	}

	w.now = w.gate().PausedUntil
	probe := leases(w.leaseOf("b", 3))
	expect(t, "one probes", len(probe), 1)
	expect(t, "while it does", w.leaseOf(tenant, 3).Reason, "paused")
	first := w.now
	w.answer(up, probe[0], CreateUnauthorized, "")
	expect(t, "refused again", w.gate().Failures, 2)
	if pause := w.gate().PausedUntil.Sub(first); pause < 54*time.Second || pause > 66*time.Second {
		t.Errorf("the second pause is %s, want 60 s ± 10 %%", pause)
	}

	w.now = w.gate().PausedUntil
	probe = leases(w.leaseOf(tenant, 3))
	expect(t, "one probes", len(probe), 1)
	w.answer(up, probe[0], CreateAccepted, "task")
	expect(t, "open", w.gate(), Queue{ID: GateID("s"), NextDue: pawl.Never})
	expect(t, "all at once again", len(leases(w.leaseOf(tenant, 3))), 2)
	w.sound()
}

// A probe that tells nothing of the credential is followed by the next; an
// answer that is no refusal of the credential opens the gate.
func TestProbes(t *testing.T) {
	for how, open := range map[CreateOutcome]bool{
		CreateAccepted: true, CreateRefused: true, CreateWait: true, CreateNotWritten: false, CreateUnknown: false,
	} {
		up := upstream()
		w := stage(t)
		w.submit(up, "a", 0)
		w.submit(up, "b", 0)
		w.answer(up, leases(w.leaseOf(tenant, 1))[0], CreateUnauthorized, "")
		w.now = w.gate().PausedUntil
		probe := leases(w.leaseOf(tenant, 2))
		w.answer(up, probe[0], how, "task")
		expect(t, how.String(), w.gate().Failures == 0, open)
		expect(t, how.String()+", then", len(leases(w.leaseOf(tenant, 2))), 1)
		w.sound()
	}
	// A probe whose holder died is followed by the next when its lease is over.
	up := upstream()
	w := stage(t)
	a := w.submit(up, "a", 0)
	w.create(up, a.ID, CreateUnauthorized, "")
	w.now = w.gate().PausedUntil
	w.leaseOf(tenant, 1)
	w.submit(up, "b", 0)
	expect(t, "meanwhile", w.leaseOf(tenant, 1).Reason, "paused")
	w.tick(up.Timeout + LeaseMargin)
	expect(t, "after the lease", w.leaseOf(tenant, 1).Reason, "leased")
}

// A pause by hand stops creates, until a person resumes them, whatever answers
// come meanwhile; reads go on; it is audited (1-product I7).
func TestPauseByHand(t *testing.T) {
	up := upstream()
	w := stage(t)
	a := w.running(up, "a", 0)
	b := w.submit(up, "b", 0)
	c := w.submit(up, "c", 0)
	inFlight := leases(w.leaseOf(tenant, 1))[0]
	w.do(PauseUpstream{Upstream: "s", Reason: "quota talks"})
	expect(t, "until", w.gate().PausedUntil, pawl.Never)
	expect(t, "creates", w.leaseOf(tenant, 3).Reason, "paused")
	w.answer(up, inFlight, CreateUnauthorized, "")
	expect(t, "a refusal meanwhile", w.gate().PausedUntil, pawl.Never)
	expect(t, "reason", w.gate().PauseReason, "quota talks")
	w.read(up, a.ID, ReadObserved, obs("task-a", pawl.Succeeded))
	expectState(t, "read meanwhile", w.ops[a.ID], pawl.Succeeded)
	w.tick(30 * 24 * time.Hour)
	expect(t, "a month later", w.leaseOf(tenant, 3).Reason, "paused")
	expectState(t, "waiting", w.ops[c.ID], pawl.Pending)

	w.do(ResumeUpstream{Upstream: "s"})
	expect(t, "resumed", w.gate(), Queue{ID: GateID("s"), NextDue: pawl.Never})
	expect(t, "leased", len(leases(w.leaseOf(tenant, 3))), 2)
	_ = b
	var acts []string
	for _, audit := range w.audits {
		if audit.Subject == "s" {
			acts = append(acts, audit.Action+" "+audit.Detail)
		}
	}
	if len(acts) != 2 || acts[0] != "upstream.pause quota talks" || acts[1] != "upstream.resume " {
		t.Errorf("audited %q", acts)
	}
	w.sound()
}

// Resuming by hand also ends a pause that nobody made by hand, of creates and of
// the queues that are named, and of no other upstream's.
func TestResumeEndsAutomaticPauses(t *testing.T) {
	up := upstream()
	w := stage(t)
	a := w.running(up, "a", 0)
	b := w.submit(up, "b", 0)
	w.read(up, a.ID, ReadUnauthorized, Observation{})
	w.create(up, b.ID, CreateUnauthorized, "")
	reads, other := WorkQueueID(ReadQueue, "s", tenant), WorkQueueID(ReadQueue, "other", tenant)
	w.queues[other] = Queue{ID: other, NextDue: pawl.Never, PausedUntil: w.now.Add(time.Hour), Failures: 3}
	expect(t, "reads paused", w.queues[reads].PausedUntil > w.now, true)
	w.do(ResumeUpstream{Upstream: "s", Queues: []QueueID{reads, other}})
	expect(t, "creates", w.gate().PausedUntil, 0)
	expect(t, "reads", w.queues[reads].PausedUntil, 0)
	expect(t, "another upstream", w.queues[other].Failures, 3)
	expect(t, "again", w.do(ResumeUpstream{Upstream: "s", Queues: []QueueID{reads}}).Reason, "running")
}
