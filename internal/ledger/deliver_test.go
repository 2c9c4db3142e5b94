package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestOutboundAnswers is the table of 7-rules §5 over every status.
func TestOutboundAnswers(t *testing.T) {
	again408 := map[int32]bool{404: true, 408: true, 409: true, 425: true, 429: true}
	for _, p := range []Policy{DefaultPolicy(), BodyTimestampPolicy()} {
		for status := int32(-1); status <= 1000; status++ {
			want := again
			switch {
			case status >= 200 && status < 300:
				want = delivered
			case status == 410:
				want = deadAndGone
			case status >= 400 && status < 500 && !again408[status]:
				want = dead
			}
			expect(t, "status", p.judge(status, Answered), want)
		}
		expect(t, "no answer", p.judge(0, NoAnswer), again)
		expect(t, "egress", p.judge(0, EgressRefused), dead)
		expect(t, "unsendable", p.judge(0, Unsendable), dead)
	}
}

// TestSchedule is the default schedule, the age and Retry-After of §5.
func TestSchedule(t *testing.T) {
	p := DefaultPolicy()
	plain := func(of time.Duration, _ int64) time.Duration { return of }
	first := start
	waits := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	now := first
	for tries := int32(1); tries < 10; tries++ {
		at, ok := p.next(now, first, tries, 0, plain)
		if !ok || at != now.Add(waits[tries]) {
			t.Errorf("after %d tries: %s %v, want %s", tries, at, ok, now.Add(waits[tries]))
		}
		now = at
	}
	if _, ok := p.next(now, first, 10, 0, plain); ok {
		t.Error("an eleventh attempt")
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		age   time.Duration
		want  time.Duration
		ok    bool
	}{
		{"shorter than the wait", time.Second, 0, 5 * time.Second, true},
		{"longer", time.Minute, 0, time.Minute, true},
		{"clamped", 48 * time.Hour, 0, 24 * time.Hour, true},
		{"negative", -time.Hour, 0, 5 * time.Second, true},
		{"at the age", 0, 96*time.Hour - 5*time.Second, 5 * time.Second, true},
		{"past the age", 0, 96 * time.Hour, 0, false},
	} {
		now := first.Add(c.age)
		at, ok := p.next(now, first, 1, c.after, plain)
		if ok != c.ok || ok && at != now.Add(c.want) {
			t.Errorf("%s: %s %v, want %s %v", c.name, at.Sub(now), ok, c.want, c.ok)
		}
	}
	body := BodyTimestampPolicy()
	expect(t, "attempts of body-timestamp", len(body.Schedule), 5)
	for n, wait := range body.Schedule[1:] {
		expect(t, "wait of body-timestamp", wait, min(30*time.Second, 500*time.Millisecond<<n))
	}
}

// TestJitter stays within its percents and is the same for the same command.
func TestJitter(t *testing.T) {
	d := NewDraft(new(Rows))
	lowest, highest := time.Hour, time.Duration(0)
	for i := range 20_000 {
		d.Seed, d.ids = [16]byte{byte(i), byte(i >> 8)}, 0
		x := d.vary(time.Hour, 25)
		d.ids = 0
		expect(t, "again", d.vary(time.Hour, 25), x)
		lowest, highest = min(lowest, x), max(highest, x)
	}
	if lowest < 45*time.Minute || highest > 75*time.Minute || lowest > 46*time.Minute || highest < 74*time.Minute {
		t.Errorf("±25 %% of an hour spans %s to %s", lowest, highest)
	}
}

// waiting gives a world with one delivery, and its only lease.
func waiting(t *testing.T) (*world, Delivery) {
	w := stage(t)
	w.running(upstream(), "a", 0)
	return w, w.leaseDelivery(hookID)
}

func (w *world) leaseDelivery(ep pawl.ID) Delivery {
	w.t.Helper()
	w.tick(time.Second)
	rows := w.do(LeaseDeliveries{Endpoint: ep, Limit: 10, Timeout: 15 * time.Second}).Value.([]Delivery)
	if len(rows) == 0 {
		w.t.Fatal("nothing to deliver")
	}
	return rows[0]
}

func (w *world) attempt(row Delivery, status int32) Delivery {
	w.t.Helper()
	w.do(RecordAttempt{Delivery: row.ID, Endpoint: row.Endpoint, Fence: row.Lease, Policy: DefaultPolicy(), At: w.now, Status: status, Body: "b"})
	return w.deliveries[row.ID]
}

func TestAttempts(t *testing.T) {
	t.Run("until dead", func(t *testing.T) {
		w, row := waiting(t)
		for n := int32(1); n < 10; n++ {
			row = w.attempt(row, 500)
			expect(t, "state", row.State, pawl.DeliveryPending)
			expect(t, "attempts", row.Attempts, n)
			w.now = row.DueAt
			row = w.leaseDelivery(hookID)
			expect(t, "same place in the stream", row.Sequence, 1)
		}
		row = w.attempt(row, 500)
		expect(t, "state", row.State, pawl.DeliveryDead)
		expect(t, "reason", row.Reason, "attempts_exhausted")
		expect(t, "attempts kept", len(w.attempts), 10)
		expect(t, "bodies kept", len(pick2(w.payloads, func(p Payload) bool { return p.ID.Kind == SentPayload })), 1)
		r := w.endpoints[hookID].DeadLetter
		expect(t, "asked", w.reviews[r].Reason, pawl.ReviewDeadLetter)
		w.once(ResolveReview{Header: Header{Actor: "key_1"}, Review: r, Event: row.Event, Delivery: row.ID, Endpoint: row.Endpoint, Decision: pawl.DecideRetry})
		row = w.deliveries[row.ID]
		expect(t, "again", row.State, pawl.DeliveryPending)
		expect(t, "fresh schedule", row.Tries, 0)
		row = w.attempt(w.leaseDelivery(hookID), 200)
		expect(t, "delivered", row.State, pawl.DeliveryDelivered)
		expect(t, "marked", w.attempts[10].Replay, true)
		expect(t, "asked for by", w.attempts[10].Actor, "key_1")
		expect(t, "nobody asked for the others", w.attempts[9].Actor, "")
		expect(t, "number", w.attempts[10].Number, 11)
		expect(t, "kept no longer than that", w.deliveries[row.ID].ReplayBy, "")
		w.sound()
	})
	t.Run("one review an endpoint", func(t *testing.T) {
		w, row := waiting(t)
		w.attempt(row, 400)
		w.event(upstream(), row.Operation, "e1", obs("task-a", pawl.Succeeded))
		w.attempt(w.leaseDelivery(hookID), 400)
		expect(t, "reviews", len(w.reviews), 1)
		w.sound()
	})
	t.Run("gone", func(t *testing.T) {
		w, row := waiting(t)
		expect(t, "state", w.attempt(row, 410).State, pawl.DeliveryDead)
		expect(t, "disabled", w.endpoints[hookID].Disabled, true)
		w.event(upstream(), row.Operation, "e1", obs("task-a", pawl.Succeeded))
		w.tick(time.Hour)
		expect(t, "nothing is sent", w.do(LeaseDeliveries{Endpoint: hookID, Limit: 1}).Reason, "paused")
		on := false
		w.do(ChangeEndpoint{ID: hookID, Change: EndpointChange{Disabled: &on}})
		expect(t, "resumes, with the next number", w.leaseDelivery(hookID).Sequence, 2)
		w.sound()
	})
	t.Run("late answers of an old lease", func(t *testing.T) {
		w, old := waiting(t)
		w.now = old.DueAt
		present := w.leaseDelivery(hookID)
		before := w.deliveries[old.ID]
		expect(t, "a failure", w.attempt(old, 500), before)
		expect(t, "gone", w.attempt(old, 410), before)
		expect(t, "a success", w.attempt(old, 200).State, pawl.DeliveryDelivered)
		before = w.deliveries[old.ID]
		expect(t, "the present lease's failure", w.attempt(present, 500), before)
		w.sound()
	})
	t.Run("a late success after death", func(t *testing.T) {
		w, old := waiting(t)
		w.now = old.DueAt
		w.attempt(w.leaseDelivery(hookID), 400)
		expect(t, "state", w.attempt(old, 204).State, pawl.DeliveryDelivered)
		w.sound()
	})
	t.Run("replay of a delivered one stays delivered", func(t *testing.T) {
		w, row := waiting(t)
		w.attempt(row, 200)
		w.do(RetryDelivery{Tenant: tenant, Delivery: row.ID, Endpoint: hookID})
		row = w.attempt(w.leaseDelivery(hookID), 500)
		expect(t, "state", row.State, pawl.DeliveryDelivered)
		expect(t, "due", row.DueAt, pawl.Never)
		expect(t, "another tenant", w.do(RetryDelivery{Tenant: "other", Delivery: row.ID, Endpoint: hookID}).Err.Kind, pawl.NotFound)
		w.sound()
	})
	t.Run("released", func(t *testing.T) {
		w, row := waiting(t)
		w.do(ReleaseDelivery{Delivery: row.ID, Endpoint: hookID, Fence: row.Lease})
		again := w.leaseDelivery(hookID)
		expect(t, "same place", again.Sequence, row.Sequence)
		expect(t, "no attempt", again.Attempts, 0)
		w.sound()
	})
}

func pick2[R any](rows []R, want func(R) bool) (found []R) {
	for _, r := range rows {
		if want(r) {
			found = append(found, r)
		}
	}
	return found
}

// TestSequences: gapless from 1, and never a lower version of an operation
// after a higher one, whatever the clock does and whoever asks for a replay.
func TestSequences(t *testing.T) {
	w := stage(t)
	op := w.running(upstream(), "a", 0)
	w.now = w.now.Add(-time.Hour) // the clock steps back
	w.event(upstream(), op.ID, "e1", obs("task-a", pawl.Succeeded))
	w.event(upstream(), op.ID, "e2", obs("task-a", pawl.Failed))
	rows := pick(w.deliveries, func(Delivery) bool { return true })
	expect(t, "deliveries", len(rows), 3)
	w.tick(2 * time.Hour)
	for _, row := range rows {
		if w.events[row.Event].Version == 2 {
			w.do(RetryDelivery{Delivery: row.ID, Endpoint: hookID})
		}
	}
	for range 3 {
		w.do(LeaseDeliveries{Endpoint: hookID, Limit: 1, Timeout: time.Hour})
	}
	for _, row := range w.deliveries {
		expect(t, "sequence", row.Sequence, w.events[row.Event].Version-1)
	}
	w.sound()
}

// TestEndpointLife: who gets what, over the life of an endpoint (R36).
func TestEndpointLife(t *testing.T) {
	w := stage(t)
	some, late := pawl.NewID(start, 3), pawl.NewID(start, 4)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: some, Tenant: tenant, Types: "operation.succeeded,operation.progress", Disabled: true}})
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: pawl.NewID(start, 5), Tenant: "other"}})
	w.tick(time.Second)
	op := w.running(upstream(), "a", 0)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: late, Tenant: tenant}})
	w.tick(2 * time.Second)
	o := obs("task-a", pawl.Running)
	for p := range int32(5) { // progress comes at most once a second
		o.Progress = p + 1
		w.event(upstream(), op.ID, string(rune('a'+p)), o)
		w.tick(300 * time.Millisecond)
	}
	w.event(upstream(), op.ID, "e1", obs("task-a", pawl.Succeeded))
	got := map[pawl.ID]map[string]int{hookID: {}, some: {}, late: {}}
	for _, row := range w.deliveries {
		got[row.Endpoint][w.events[row.Event].Type]++
	}
	expect(t, "running to the first", got[hookID][pawl.TypeRunning], 1)
	expect(t, "progress unasked", got[hookID][pawl.TypeProgress], 0)
	expect(t, "progress asked for", got[some][pawl.TypeProgress], 2)
	expect(t, "not of its types", got[some][pawl.TypeRunning], 0)
	expect(t, "before it lived", got[late][pawl.TypeRunning], 0)
	expect(t, "success to all", got[hookID][pawl.TypeSucceeded]+got[some][pawl.TypeSucceeded]+got[late][pawl.TypeSucceeded], 3)
	w.tick(time.Minute)
	expect(t, "disabled from the start", w.do(LeaseDeliveries{Endpoint: some, Limit: 9}).Reason, "paused")
	leased := w.leaseDelivery(hookID)
	w.do(ChangeEndpoint{ID: hookID, Action: "delete", Change: EndpointChange{Delete: true}})
	expect(t, "gone", w.do(ChangeEndpoint{ID: hookID, Change: EndpointChange{Delete: true}}).Err.Kind, pawl.NotFound)
	expect(t, "a running attempt is recorded", w.attempt(leased, 200).State, pawl.DeliveryDelivered)
	w.do(ChangeEndpoint{ID: some, Action: "delete", Change: EndpointChange{Delete: true}})
	for _, row := range w.deliveries {
		if row.Endpoint == some && (row.State != pawl.DeliverySkipped || row.Reason != "endpoint_deleted") {
			t.Errorf("a waiting delivery of a deleted endpoint is %s", row.State)
		}
	}
	w.event(upstream(), op.ID, "e2", obs("task-a", pawl.Failed))
	expect(t, "replay to a deleted one", w.do(RetryDelivery{Delivery: leased.ID, Endpoint: hookID}).Err.Kind, pawl.Conflicting)
	w.sound()
}

// TestDeletionIsBounded: more waiting deliveries than one decision skips are
// skipped as they come due, and nothing is sent.
func TestDeletionIsBounded(t *testing.T) {
	w := stage(t)
	w.repeat = false
	for i := range deleteNow + 50 {
		w.running(upstream(), string(rune('A'+i)), 0)
	}
	w.do(ChangeEndpoint{ID: hookID, Change: EndpointChange{Delete: true}})
	skipped := func() int {
		return len(pick(w.deliveries, func(d Delivery) bool { return d.State == pawl.DeliverySkipped && d.Reason == "endpoint_deleted" }))
	}
	expect(t, "skipped by the deletion itself", skipped(), 200)
	w.tick(time.Hour)
	expect(t, "leased", len(w.do(LeaseDeliveries{Endpoint: hookID, Limit: 100}).Value.([]Delivery)), 0)
	expect(t, "skipped in the end", skipped(), 250)
	expect(t, "left", len(pick(w.deliveries, func(d Delivery) bool { return d.State != pawl.DeliverySkipped })), 0)
	w.sound()
}

// TestCallbackEndpoint is R50: one per key and address, only for its
// operations' events, and it lives again when it is asked for again.
func TestCallbackEndpoint(t *testing.T) {
	w := stage(t)
	submit := func(key, url string) Operation {
		return w.do(Submit{Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: upstream(),
			Deadline: deadline, CallbackURL: url}).Value.(Submitted).Operation
	}
	a, b, c := submit("a", "https://x.example/1"), submit("b", "https://x.example/1"), submit("c", "https://x.example/2")
	expect(t, "same address", a.Callback, b.Callback)
	expect(t, "another address", a.Callback != c.Callback, true)
	w.create(upstream(), a.ID, CreateAccepted, "task-a")
	count := func(ep pawl.ID) int {
		return len(pick(w.deliveries, func(d Delivery) bool { return d.Endpoint == ep }))
	}
	expect(t, "its own", count(a.Callback), 1)
	expect(t, "the tenant's", count(hookID), 1)
	expect(t, "another's", count(c.Callback), 0)
	w.do(ChangeEndpoint{ID: a.Callback, Change: EndpointChange{Delete: true}})
	w.tick(time.Second)
	d := submit("d", "https://x.example/1")
	w.tick(time.Second)
	w.create(upstream(), d.ID, CreateAccepted, "task-d")
	expect(t, "again", count(a.Callback), 2)
	w.sound()
}
