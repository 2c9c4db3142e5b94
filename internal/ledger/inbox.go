package ledger

import (
	"crypto/sha256"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// OriginalContent is the content of an endpoint that gets the events of generic
// sources as the bytes that were received (7-rules R20).
const OriginalContent = "original"

// nudgeEvery is the least time between two repeats of an event that make its
// unfinished work due (7-rules R22).
const nudgeEvery = time.Minute

// HandlerDelivery is the id of the delivery of an inbound event to an endpoint.
// It follows from the two, so that there is one at most, and a repeat finds it.
func HandlerDelivery(event, endpoint pawl.ID) pawl.ID {
	id := event
	sum := sha256.Sum256(append(event[:], endpoint[:]...))
	copy(id[8:], sum[:8])
	id[8] = 0x80 | id[8]&0x3f
	return id
}

// handOver is where the event of a generic source ends after line 6 of 7-rules
// §1: it is stored, and written to the handlers of its tenant, in one decision.
func (c ReceiveEvent) handOver(d *Draft) Outcome {
	e := c.event(d)
	if e.Tenant != "" {
		if c.again != nil {
			d.handlerDeliveries(e) // All of them are loaded together.
		}
		for _, ep := range d.webhooks(e.Tenant) {
			if wantsInbound(ep, e) {
				c.deliver(d, ep, &e)
			}
		}
	}
	c.store(d, e, pawl.Applied, "stored")
	c.takeKey(d, e)
	return c.answer(e, Operation{}, pawl.Applied, "stored")
}

// deliver writes a delivery of the event, which the caller stores, unless the
// endpoint has one.
func (c ReceiveEvent) deliver(d *Draft, ep Endpoint, e *Event) {
	row := Delivery{
		ID: HandlerDelivery(e.ID, ep.ID), Event: e.ID, Endpoint: ep.ID, Tenant: e.Tenant, Inbound: true,
		State: pawl.DeliveryPending, DueAt: d.Now, FirstDueAt: d.Now, CreatedAt: d.Now,
	}
	if c.again != nil {
		if _, has := d.Deliveries.Get(row.ID); has {
			return
		}
	}
	if ep.Feed() {
		d.lay(&row)
	} else {
		d.touch(DeliveryQueueID(ep.ID), row.DueAt)
	}
	e.tally(row.class(), 1)
	d.Deliveries.Put(row.ID, row)
}

// word is what two events under one key must agree about: the state they name
// or, at a generic source, their type.
func (c ReceiveEvent) word() string {
	if c.Up.Generic {
		return c.Type
	}
	return c.Obs.Word
}

// wantsInbound reports whether an endpoint takes an event of a generic source:
// one that names no types takes all of them; others name the sender's type by
// itself or behind the source's name and a full stop. A type of Pawl's own is
// nobody else's, so that the former does not mean a sender's. The dialects have
// no body for it.
func wantsInbound(ep Endpoint, e Event) bool {
	if dialect(ep.Scheme) || ep.Installation() {
		return false
	}
	if ep.Types == "" {
		return true
	}
	for t := range strings.SplitSeq(ep.Types, ",") {
		if t == e.Type && !pawl.ReservedType(t) || t == e.Source+"."+e.Type {
			return true
		}
	}
	return false
}

// repeatGeneric is line 6 for generic sources: work that is not finished becomes
// due now (7-rules R22).
func (c ReceiveEvent) repeatGeneric(d *Draft, claim EventKey) Outcome {
	first, ok := d.Events.Get(claim.Event)
	reason := "repeat"
	if claim.Digest != c.Digest {
		reason = "body_differs"
		if claim.Word != c.word() && !claim.Differs {
			d.openLoose(Review{
				Tenant: first.Tenant, Reason: pawl.ReviewBodyDiffers, Event: claim.Event, Source: c.Up.Name, Owner: c.Up.Owner,
				Detail: "first " + claim.Word + ", then " + c.word(),
			})
			claim.Differs = true
		}
	}
	claim.Repeats++
	d.EventKeys.Put(claim.ID, claim)
	if ok && first.Waiting > 0 && d.Now >= first.NudgedAt.Add(nudgeEvery) {
		d.nudge(first)
	}
	return done(reason, Received{Verdict: pawl.Duplicate, Reason: reason, Event: claim.Event})
}

// nudge makes the unfinished deliveries of an event due now: those that wait for
// their next try, and those whose receiver has yet to report. What is under way,
// and what waits for its place in the endpoint's stream, is left alone.
func (d *Draft) nudge(e Event) {
	rows := d.handlerDeliveries(e)
	moved := false
	for _, row := range rows {
		if row.Leased || row.Sequence == 0 || row.DueAt <= d.Now || row.class() != waitingClass {
			continue
		}
		if row.awaited() {
			row.State, row.FinishedAt, row.FirstDueAt, row.Tries, row.CompleteBy = pawl.DeliveryPending, 0, d.Now, 0, 0
		}
		row.DueAt = d.Now
		d.putDelivery(row)
		d.touch(DeliveryQueueID(row.Endpoint), row.DueAt)
		moved = true
	}
	if moved {
		e.NudgedAt = d.Now
		d.Events.Put(e.ID, e)
	}
}

// handlerDeliveries are an inbound event's deliveries to the endpoints that its
// tenant has now.
func (d *Draft) handlerDeliveries(e Event) (rows []Delivery) {
	var ids, missing []pawl.ID
	for _, ep := range d.webhooks(e.Tenant) {
		id := HandlerDelivery(e.ID, ep.ID)
		ids = append(ids, id)
		if !d.Deliveries.known(id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		panic(Miss{Keys: Keys{Deliveries: missing}})
	}
	for _, id := range ids {
		if row, ok := d.Deliveries.Get(id); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// deliveryClass is what a delivery of a generic event means for the event's
// state (7-rules R21).
type deliveryClass uint8

const (
	// noClass: it counts for nothing, as if its endpoint had never been.
	noClass deliveryClass = iota
	waitingClass
	troubledClass
	handledClass
)

// class is the delivery's own; see also the drivers' check of the counts.
func (row Delivery) class() deliveryClass {
	switch {
	case !row.Inbound || row.State == pawl.DeliverySkipped:
		return noClass
	case row.reported() || row.Discarded:
		return handledClass
	case row.State == pawl.DeliveryDead:
		return troubledClass
	case row.State != pawl.DeliveryDelivered:
		return waitingClass
	case row.Overdue >= overdueMost:
		return troubledClass
	case row.CompleteBy.IsSet():
		return waitingClass
	}
	return handledClass
}

// putDelivery puts a changed delivery, and with it the state of its event.
func (d *Draft) putDelivery(row Delivery) {
	if row.Inbound {
		was, _ := d.Deliveries.Get(row.ID)
		d.count(row.Event, was.class(), row.class())
	}
	d.Deliveries.Put(row.ID, row)
}

func (d *Draft) count(event pawl.ID, was, is deliveryClass) {
	if was == is {
		return
	}
	e, ok := d.Events.Get(event)
	if !ok {
		return
	}
	e.tally(was, -1)
	e.tally(is, 1)
	e.place()
	d.Events.Put(e.ID, e)
}

func (e *Event) tally(class deliveryClass, by int32) {
	switch class {
	case waitingClass:
		e.Waiting += by
	case troubledClass:
		e.Troubled += by
	case handledClass:
		e.Handled += by
	}
}

// place sets the state of a generic source's event (7-rules R21); one that was
// rejected has none.
func (e *Event) place() {
	switch {
	case e.Judged() == pawl.UnknownType && e.Rejudged.Reason == discardedReason:
		e.Inbox = pawl.InboxDone
	case e.Judged() == pawl.UnknownType || e.Judged() == pawl.Applied && e.Troubled > 0:
		e.Inbox = pawl.InboxReview
	case e.Judged() != pawl.Applied:
		e.Inbox = 0
	case e.Waiting > 0:
		e.Inbox = pawl.InboxWaiting
	case e.Handled > 0:
		e.Inbox = pawl.InboxDone
	default:
		e.Inbox = pawl.InboxReceived
	}
}

// Tallied is the event with the counts of its deliveries and the state that
// follows from them; what the check of the ledger compares it with.
func (e Event) Tallied(deliveries []Delivery) Event {
	if e.Inbox == 0 {
		return e
	}
	e.Waiting, e.Troubled, e.Handled = 0, 0, 0
	for _, row := range deliveries {
		e.tally(row.class(), 1)
	}
	e.place()
	return e
}

// needEvents asks for the generic events of deliveries together, where many of
// them are about to change: one at a time they would be too many misses.
func (d *Draft) needEvents(rows []Delivery) {
	var missing []pawl.ID
	for _, row := range rows {
		if row.Inbound && !d.Events.known(row.Event) {
			missing = add(missing, row.Event)
		}
	}
	if len(missing) > 0 {
		panic(Miss{Keys: Keys{Events: missing}})
	}
}
