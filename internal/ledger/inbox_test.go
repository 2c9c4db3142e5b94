package ledger

import (
	"strconv"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// generic is a source whose events go to the handlers of the test's tenant.
var generic = Upstream{Name: "gen", Tenant: tenant, Owner: "ops", Generic: true}

// teach runs a command that may miss, with what it missed loaded too, as the
// committer does.
func (w *world) teach(c Command) Outcome {
	w.t.Helper()
	var k Keys
	c.Keys(&k)
	for range 4 {
		rows := new(Rows)
		w.load(&k, rows)
		out, miss := NewDraft(rows).Run(w.with(c), w.now)
		if miss == nil {
			w.save(rows)
			return out
		}
		k.Merge(miss.Keys)
	}
	w.t.Fatalf("%T misses again and again", c)
	return Outcome{}
}

// take receives a generic event.
func (w *world) take(id, kind string) Received {
	w.t.Helper()
	return w.teach(ReceiveEvent{Up: generic, Event: id, Type: kind, Obs: Observation{Progress: -1}, Body: id, Digest: digest(id)}).Value.(Received)
}

// handler is a stage whose only endpoint has to report within a minute, with an
// event that waits for it.
func handler(t *testing.T, within time.Duration) (*world, pawl.ID, pawl.ID) {
	t.Helper()
	w := stage(t)
	delete(w.endpoints, hookID)
	ep := pawl.NewID(start, 60)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: ep, Tenant: tenant, Types: "paid", CompleteWithin: within, Owner: "handlers"}})
	got := w.take("e1", "paid")
	expectVerdict(t, "received", got.Verdict, pawl.Applied)
	return w, got.Event, HandlerDelivery(got.Event, ep)
}

// send leases what is due and records that it was answered so.
func (w *world) sendDue(delivery pawl.ID, status int32) Delivery {
	w.t.Helper()
	row := w.deliveries[delivery]
	leased := w.teach(LeaseDeliveries{Endpoint: row.Endpoint, Limit: 5, Timeout: time.Second}).Value.([]Delivery)
	if len(leased) != 1 || leased[0].ID != delivery {
		w.t.Fatalf("leased %+v", leased)
	}
	return w.teach(RecordAttempt{Delivery: delivery, Endpoint: row.Endpoint, Fence: leased[0].Lease, Policy: DefaultPolicy(), Status: status, Body: "sent"}).Value.(Delivery)
}

func (w *world) idle(delivery pawl.ID) {
	w.t.Helper()
	if leased := w.teach(LeaseDeliveries{Endpoint: w.deliveries[delivery].Endpoint, Limit: 5, Timeout: time.Second}).Value.([]Delivery); len(leased) != 0 {
		w.t.Fatalf("leased %+v", leased)
	}
}

// Which endpoints want an event of the source "gen" (7-rules R20).
func TestWantsInbound(t *testing.T) {
	for _, tt := range []struct {
		types, scheme, kind string
		want                bool
	}{
		{"", "", "paid", true},
		{"", "standard-webhooks-v1a", "paid", true},
		{"paid", "", "paid", true},
		{"lost,paid", "", "paid", true},
		{"gen.paid", "", "paid", true},
		{"other.paid", "", "paid", false},
		{"pai", "", "paid", false},
		{"operation.failed", "", "operation.failed", false},
		{"gen.operation.failed", "", "operation.failed", true},
		{"review.opened", "", "review.opened", false},
		{"", "media-v2", "paid", false},
		{"paid", "body-timestamp", "paid", false},
		{"orders/create", "", "orders/create", true},
		{"order:paid", "", "order:paid", true},
		{"gen.orders/create", "", "orders/create", true},
		{"other.orders/create", "", "orders/create", false},
	} {
		if got := wantsInbound(Endpoint{Types: tt.types, Scheme: tt.scheme}, Event{Source: "gen", Type: tt.kind}); got != tt.want {
			t.Errorf("types %q, scheme %q, event %q: %v", tt.types, tt.scheme, tt.kind, got)
		}
	}
}

// The table of 7-rules R21 over what deliveries can be.
func TestInboxStates(t *testing.T) {
	row := func(change func(*Delivery)) Delivery {
		d := Delivery{Inbound: true, State: pawl.DeliveryDelivered}
		change(&d)
		return d
	}
	var (
		delivered = row(func(*Delivery) {})
		pending   = row(func(d *Delivery) { d.State = pawl.DeliveryPending })
		underWay  = row(func(d *Delivery) { d.State = pawl.DeliveryDelivering })
		skipped   = row(func(d *Delivery) { d.State = pawl.DeliverySkipped })
		deadOne   = row(func(d *Delivery) { d.State = pawl.DeliveryDead })
		dropped   = row(func(d *Delivery) { d.State, d.Discarded = pawl.DeliveryDead, true })
		awaited   = row(func(d *Delivery) { d.CompleteBy = start })
		once      = row(func(d *Delivery) { d.CompleteBy, d.Overdue = start, 1 })
		twice     = row(func(d *Delivery) { d.CompleteBy, d.Overdue = start, 2 })
		reported  = row(func(d *Delivery) { d.CompleteBy, d.Overdue, d.CompletedAt = start, 2, start })
		early     = row(func(d *Delivery) { d.State, d.CompletedAt = pawl.DeliveryDelivering, start })
	)
	for _, tt := range []struct {
		name string
		rows []Delivery
		want pawl.InboxState
	}{
		{"nobody wanted it", nil, pawl.InboxReceived},
		{"its endpoint is gone", []Delivery{skipped}, pawl.InboxReceived},
		{"pending", []Delivery{pending, delivered}, pawl.InboxWaiting},
		{"under way", []Delivery{underWay}, pawl.InboxWaiting},
		{"not reported yet", []Delivery{awaited, delivered}, pawl.InboxWaiting},
		{"overdue once", []Delivery{once}, pawl.InboxWaiting},
		{"delivered", []Delivery{delivered, skipped}, pawl.InboxDone},
		{"reported", []Delivery{reported, early}, pawl.InboxDone},
		{"discarded", []Delivery{dropped}, pawl.InboxDone},
		{"dead", []Delivery{deadOne, delivered, pending}, pawl.InboxReview},
		{"overdue twice", []Delivery{twice, pending}, pawl.InboxReview},
	} {
		if got := (Event{Verdict: pawl.Applied, Inbox: pawl.InboxReceived}).Tallied(tt.rows).Inbox; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := (Event{Verdict: pawl.UnknownType, Inbox: pawl.InboxReview}).Tallied(nil).Inbox; got != pawl.InboxReview {
		t.Errorf("of an unknown type: %s", got)
	}
}

// Overdue once: sent again under a fresh schedule; twice: a review, and nothing is
// sent. The report closes the review (1-product C9).
func TestOverdueReport(t *testing.T) {
	w, e, id := handler(t, time.Minute)
	expect(t, "stored", w.events[e].Inbox, pawl.InboxWaiting)
	row := w.sendDue(id, 200)
	expect(t, "taken", row.State, pawl.DeliveryDelivered)
	expect(t, "to be reported by", row.CompleteBy, w.now.Add(time.Minute))
	expect(t, "delivered is not done", w.events[e].Inbox, pawl.InboxWaiting)
	w.idle(id)
	w.tick(time.Minute)
	row = w.sendDue(id, 503)
	expect(t, "sent again, refused", row.State, pawl.DeliveryPending)
	expect(t, "a fresh schedule", row.Tries, 1)
	expect(t, "overdue", row.Overdue, 1)
	w.tick(10 * time.Second)
	row = w.sendDue(id, 204)
	expect(t, "attempts", row.Attempts, 3)
	w.tick(time.Minute)
	w.idle(id)
	row = w.deliveries[id]
	expect(t, "given up", row.DueAt, pawl.Never)
	expect(t, "reason", row.Reason, "completion_overdue")
	expect(t, "state", w.events[e].Inbox, pawl.InboxReview)
	r := w.reviews[row.Review]
	expect(t, "review", r.Reason, pawl.ReviewCompletionOverdue)
	expect(t, "its owner", r.Owner, "handlers")
	w.sound()

	report := CompleteDelivery{Header: Header{Actor: "key"}, Tenant: tenant, Delivery: id, Event: e, Review: row.Review}
	expect(t, "another tenant", w.do(CompleteDelivery{Tenant: "other", Delivery: id}).Reason, "not_found")
	expect(t, "late", w.do(report).Reason, "completed")
	expect(t, "again", w.do(report).Reason, "repeat")
	row = w.deliveries[id]
	expect(t, "by whom", row.CompletedBy, "key")
	expect(t, "reason", row.Reason, "")
	expect(t, "the review", w.reviews[r.ID].Decision, DecidedBySystem)
	expect(t, "done", w.events[e].Inbox, pawl.InboxDone)
	w.sound()
}

// However many reports are overdue at one moment, one decision ends them: what it
// needs is asked for together, since a command may miss only a few times.
func TestManyOverdueReports(t *testing.T) {
	const many = 30
	w, _, first := handler(t, time.Minute)
	endpoint := w.deliveries[first].Endpoint
	for i := 1; i < many; i++ {
		w.take("more"+strconv.Itoa(i), "paid")
	}
	lease := func() []Delivery {
		return w.teach(LeaseDeliveries{Endpoint: endpoint, Limit: many, Timeout: time.Second}).Value.([]Delivery)
	}
	for range 2 { // taken, and never reported: twice
		rows := lease()
		expect(t, "leased", len(rows), many)
		for _, row := range rows {
			w.teach(RecordAttempt{Delivery: row.ID, Endpoint: endpoint, Event: row.Event, Fence: row.Lease, Policy: DefaultPolicy(), Status: 200, Body: "sent"})
		}
		w.tick(time.Minute)
	}
	expect(t, "leased", len(lease()), 0)
	for id, e := range w.events {
		expect(t, id.String(), e.Inbox, pawl.InboxReview)
	}
	w.sound()
}

// A source that was given to another tenant tells it nothing of the events that
// it had before: the review of a repeat that differs is the first one's tenant's.
func TestRepeatAtAnotherTenantsSource(t *testing.T) {
	w, e, _ := handler(t, 0)
	moved := generic
	moved.Tenant = "other"
	w.teach(ReceiveEvent{Up: moved, Event: "e1", Type: "refunded", Obs: Observation{Progress: -1}, Body: "x", Digest: digest("x")})
	expect(t, "reviews", len(w.reviews), 1)
	for _, r := range w.reviews {
		expect(t, "about", r.Event, e)
		expect(t, "of", r.Tenant, tenant)
	}
}

// A report holds whenever it comes: while the attempt is under way, after its lease
// ran out, while a retry waits, and after it was given up.
func TestReportAtAnyTime(t *testing.T) {
	lease := func(w *world, id pawl.ID) Delivery {
		w.t.Helper()
		rows := w.teach(LeaseDeliveries{Endpoint: w.deliveries[id].Endpoint, Limit: 5, Timeout: time.Second}).Value.([]Delivery)
		if len(rows) != 1 {
			w.t.Fatalf("leased %+v", rows)
		}
		return rows[0]
	}
	report := func(w *world, e, id pawl.ID) {
		w.t.Helper()
		if out := w.teach(CompleteDelivery{Delivery: id, Event: e}); out.Reason != "completed" {
			w.t.Fatalf("%+v", out)
		}
		expect(t, "done at once", w.events[e].Inbox, pawl.InboxDone)
	}
	record := func(w *world, row Delivery, status int32) {
		w.teach(RecordAttempt{Delivery: row.ID, Endpoint: row.Endpoint, Fence: row.Lease, Policy: DefaultPolicy(), Status: status})
	}
	for name, play := range map[string]func(*world, pawl.ID, pawl.ID){
		"under way, then refused": func(w *world, e, id pawl.ID) {
			row := lease(w, id)
			report(w, e, id)
			record(w, row, 500)
		},
		"under way, then the node is gone": func(w *world, e, id pawl.ID) {
			lease(w, id)
			report(w, e, id)
			w.tick(time.Hour)
			w.idle(id)
		},
		"while a retry waits": func(w *world, e, id pawl.ID) {
			record(w, lease(w, id), 500)
			report(w, e, id)
			w.tick(time.Hour)
			w.idle(id)
		},
		"after it was given up": func(w *world, e, id pawl.ID) {
			record(w, lease(w, id), 400)
			expect(t, "dead", w.events[e].Inbox, pawl.InboxReview)
			report(w, e, id)
		},
	} {
		w, e, id := handler(t, time.Minute)
		play(w, e, id)
		row := w.deliveries[id]
		if row.State != pawl.DeliveryDelivered || row.DueAt != pawl.Never || row.Leased || w.events[e].Inbox != pawl.InboxDone {
			t.Errorf("%s: %+v, %s", name, row, w.events[e].Inbox)
		}
		w.sound()
	}
	w, e, id := handler(t, time.Minute)
	expect(t, "never sent", w.teach(CompleteDelivery{Delivery: id, Event: e}).Reason, "not_sent")
	w.teach(ChangeEndpoint{ID: w.deliveries[id].Endpoint, Change: EndpointChange{Delete: true}})
	expect(t, "skipped", w.teach(CompleteDelivery{Delivery: id, Event: e}).Reason, "skipped")
	expect(t, "nobody is left", w.events[e].Inbox, pawl.InboxReceived)
	w.sound()
}

// What was taken stays delivered when its endpoint is deleted: nobody can report
// it any more.
func TestDeletionOfAnAwaitedReport(t *testing.T) {
	w, e, id := handler(t, time.Minute)
	w.sendDue(id, 200)
	w.teach(ChangeEndpoint{ID: w.deliveries[id].Endpoint, Change: EndpointChange{Delete: true}})
	expect(t, "delivery", w.deliveries[id].State, pawl.DeliveryDelivered)
	expect(t, "event", w.events[e].Inbox, pawl.InboxDone)
	w.sound()
}

// A repeat under another body is flagged, and one of another type asks a person once
// (7-rules §2).
func TestGenericRepeatDiffers(t *testing.T) {
	w, e, _ := handler(t, 0)
	repeat := func(kind, body string) Received {
		return w.teach(ReceiveEvent{Up: generic, Event: "e1", Type: kind, Obs: Observation{Progress: -1}, Body: body, Digest: digest(body)}).Value.(Received)
	}
	expect(t, "the same", repeat("paid", "e1").Reason, "repeat")
	expect(t, "another body", repeat("paid", "x"), Received{Verdict: pawl.Duplicate, Reason: "body_differs", Event: e})
	for range 2 {
		repeat("lost", "y")
	}
	open := pick(w.reviews, func(r Review) bool { return r.Reason == pawl.ReviewBodyDiffers })
	if len(open) != 1 || open[0].Event != e || open[0].Detail != "first paid, then lost" {
		t.Errorf("reviews: %+v", open)
	}
	expect(t, "repeats", w.keys[EventKeyID{"gen", "", "e1"}].Repeats, 4)
	w.sound()
}

// A repeat makes the work that waits due even where other work of the event is
// already a person's: R22 asks for what is unfinished, whatever the event's state
// says (7-rules R21, R22).
func TestRepeatNudgesBesideADeadHandler(t *testing.T) {
	w := stage(t)
	delete(w.endpoints, hookID)
	var handlers []pawl.ID
	for n := range uint64(2) {
		ep := pawl.NewID(start, 60+n)
		handlers = append(handlers, ep)
		w.do(CreateEndpoint{Endpoint: Endpoint{ID: ep, Tenant: tenant, Types: "paid"}})
	}
	event := w.take("e1", "paid").Event
	lost, waits := HandlerDelivery(event, handlers[0]), HandlerDelivery(event, handlers[1])
	expect(t, "refused for good", w.sendDue(lost, 400).State, pawl.DeliveryDead)
	for range 2 { // The second wait is of five minutes.
		w.now = w.deliveries[waits].DueAt
		expect(t, "refused for now", w.sendDue(waits, 503).State, pawl.DeliveryPending)
	}
	expect(t, "the event", w.events[event].Inbox, pawl.InboxReview)
	w.tick(time.Minute)
	if w.deliveries[waits].DueAt <= w.now {
		t.Fatal("it is due anyway")
	}
	expect(t, "a repeat", w.take("e1", "paid").Verdict, pawl.Duplicate)
	expect(t, "due", w.deliveries[waits].DueAt, w.now)
	expect(t, "dead still", w.deliveries[lost].State, pawl.DeliveryDead)
	w.sound()
}
