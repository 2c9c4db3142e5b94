package ledger

import "github.com/pawlhq/pawl"

// discardedReason is that of an event of which a person said that nothing will be
// done with it.
const discardedReason = "discarded"

// DiscardUnknown marks that nothing will be done with an event of a generic source
// whose type is unknown: it is done, and stays stored. One that has come to
// something else by now is left alone. Judged anew, it asks again.
type DiscardUnknown struct {
	Header
	Event pawl.ID
	// Tenant is whose event it must be; empty for nobody's.
	Tenant string
}

// Head is the command's header.
func (c DiscardUnknown) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c DiscardUnknown) Keys(k *Keys) { k.Events = add(k.Events, c.Event) }

// Decide marks the event.
func (c DiscardUnknown) Decide(d *Draft) Outcome {
	e, ok := d.Events.Get(c.Event)
	if !ok || e.Tenant != c.Tenant || e.Judged() != pawl.UnknownType || e.Inbox != pawl.InboxReview {
		return done("repeat", nil)
	}
	e.Rejudged = Rejudgment{At: d.Now, Verdict: pawl.UnknownType, Reason: discardedReason, Actor: d.Actor}
	e.place()
	d.Events.Put(e.ID, e)
	return done(discardedReason, nil)
}
