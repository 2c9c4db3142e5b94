package ledger

import "github.com/pawlhq/pawl"

// ReprocessEvent judges a stored verified event anew, by the rules and under
// the key that a new one would meet (1-product C10, 7-rules §2). The embedded
// [ReceiveEvent] says how the event reads today; its token, body, headers and
// digest are the stored event's own and not looked at. What comes of it is kept
// beside the first verdict.
type ReprocessEvent struct {
	ReceiveEvent
	// Tenant restricts whose event it may be; "" does not.
	Tenant string
	// ID is the stored event, Whose its tenant as it is stored.
	ID    pawl.ID
	Whose string
}

// Keys names the rows the command needs.
func (c ReprocessEvent) Keys(k *Keys) {
	c.ReceiveEvent.Keys(k)
	k.Events = add(k.Events, c.ID)
	k.Sources = add(k.Sources, c.Up.Name)
	k.UnknownTypes = add(add(k.UnknownTypes, UnknownTypesID{c.Up.Name, c.Up.Tenant}), UnknownTypesID{c.Up.Name, c.Whose})
}

// Decide judges the event and answers with [Received]. One that has used its
// key up stays as it is and is a duplicate.
func (c ReprocessEvent) Decide(d *Draft) Outcome {
	e, ok := d.Events.Get(c.ID)
	if !ok || e.Direction != Inbound || e.Source != c.Up.Name || c.Tenant != "" && e.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such event")
	}
	if !e.Open() {
		return done("repeat", Received{Verdict: pawl.Duplicate, Reason: "repeat", Event: e.ID, Operation: e.Operation})
	}
	r := c.ReceiveEvent
	r.again, r.Digest = &e, e.Digest
	// An event that named no operation was judged with the one of its address.
	r.Token = e.Operation
	out := r.Decide(d)
	if out.Fate == Done {
		d.audit(e.Tenant, "event.reprocess", e.ID.Text(pawl.PrefixEvent), out.Value.(Received).Verdict.String())
	}
	return out
}

// discarded reports whether a person has given up waiting for the event's task.
func (c ReceiveEvent) discarded() bool {
	return c.again != nil && c.again.Judged() == pawl.Orphan && !c.again.Parked
}

// storeAgain puts an event that was judged anew. It waits no more, and counts
// as of an unknown type no more, unless that is what it has come to again.
func (c ReceiveEvent) storeAgain(d *Draft, e Event, v pawl.Verdict, reason string) {
	was := *c.again
	e.Rejudged = Rejudgment{At: d.Now, Verdict: v, Reason: reason, Actor: d.Actor}
	if was.Parked && v != pawl.Orphan {
		d.unpark(&e)
		d.parked(e.Source, -1)
	}
	if was.Judged() == pawl.UnknownType && (v != pawl.UnknownType || was.Tenant != e.Tenant) {
		d.typeKnown(was.Source, was.Tenant)
	}
	if c.Up.Generic {
		e.place()
	}
	d.Events.Put(e.ID, e)
}

// unpark ends an event's wait for its task, and the review of that.
func (d *Draft) unpark(e *Event) {
	e.Parked, e.Snapshot = false, ""
	if e.Review.IsZero() {
		return
	}
	if r, ok := d.Reviews.Get(e.Review); ok && r.ClosedAt == 0 {
		d.closeReview(r, nil, DecidedBySystem, "")
	}
	e.Review = pawl.ID{}
}

// parked counts events of a source that begin or cease to wait.
func (d *Draft) parked(source string, by int64) {
	src, _ := d.Sources.Get(source)
	src.Name = source
	src.Parked += by
	d.Sources.Put(source, src)
}
