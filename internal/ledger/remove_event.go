package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// RemoveEvent removes what an event of no operation holds once it is old: one of
// a generic source, of no known task, or of a tenant's own.
type RemoveEvent struct {
	Header
	Event pawl.ID
	Ages  Ages
	// Deliveries are those of the event, Endpoints theirs.
	Deliveries, Endpoints []pawl.ID
	// Erase removes it whatever its age, if its tenant is being erased.
	Erase bool
}

// Head is the command's header.
func (c RemoveEvent) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RemoveEvent) Keys(k *Keys) {
	k.Events = add(k.Events, c.Event)
	k.Deliveries = union(k.Deliveries, c.Deliveries)
	k.Endpoints = union(k.Endpoints, c.Endpoints)
}

// Decide removes it, or says why it is still needed.
func (c RemoveEvent) Decide(d *Draft) Outcome {
	e, ok := d.Events.Get(c.Event)
	switch {
	case !ok || !e.Operation.IsZero() || e.RemovedAt.IsSet():
		return done("repeat", nil)
	case d.eventNeeded(e):
		return done("busy", nil)
	case c.Erase:
	case e.At.Add(c.age(e)) > d.Now:
		return done("young", nil)
	case d.anyBusy(c.Deliveries):
		return done("busy", nil)
	}
	for _, id := range c.Deliveries {
		if row, ok := d.Deliveries.Get(id); ok && row.Event == e.ID {
			d.removeSent(id, c.Erase)
		}
	}
	if e.Judged() == pawl.UnknownType && e.Direction == Inbound {
		d.typeKnown(e.Source, e.Tenant)
	}
	d.empty(e)
	return done("removed", nil)
}

func (c RemoveEvent) age(e Event) time.Duration {
	if e.Direction == Inbound {
		return c.Ages.Callbacks
	}
	return c.Ages.Deliveries
}

// eventNeeded reports whether an event waits for its task, its handlers or a
// person.
func (d *Draft) eventNeeded(e Event) bool {
	if e.Parked || e.Inbox == pawl.InboxWaiting || e.Inbox == pawl.InboxReview {
		return true
	}
	if !e.Review.IsZero() {
		if r, ok := d.Reviews.Get(e.Review); ok && r.ClosedAt == 0 {
			return true
		}
	}
	return e.Judged() == pawl.UnknownType && !d.unknownTypes(e.Source, e.Tenant).Review.IsZero()
}
