package ledger

import "github.com/pawlhq/pawl"

// reasonErased is why a delivery of erased content is skipped (7-rules R42).
const reasonErased = "erased"

// RemoveContent removes from an operation what it holds of the classes of data
// that are over, in steps: whoever runs it walks over the operation's events,
// reviews and deliveries and names some of them each time. What is a fact stays:
// rows, states, money, keys (7-rules R41, R42).
type RemoveContent struct {
	Header
	Operation pawl.ID
	Ages      Ages
	// Events, Reviews and Deliveries are some of the operation's; Endpoints are
	// those of the deliveries.
	Events, Reviews, Deliveries, Endpoints []pawl.ID
	// Done are the classes of which nothing is left once this step is made, of
	// the operation as it was at version Seen.
	Done Kept
	Seen int64
}

// Head is the command's header.
func (c RemoveContent) Head() Header { return c.Header }

// Keys names the rows the command needs; the operation leads to its artifacts.
func (c RemoveContent) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	k.Events = union(k.Events, c.Events)
	k.Reviews = union(k.Reviews, c.Reviews)
	k.Deliveries = union(k.Deliveries, c.Deliveries)
	k.Endpoints = union(k.Endpoints, c.Endpoints)
}

// Decide removes what is over of what is named and answers with the [Operation].
// Its reason is "busy" where one of the deliveries is still to be made or
// decided: then nothing of the operation ages yet.
func (c RemoveContent) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	over := op.over(c.Ages, d.Now)
	if !op.ErasedAt.IsSet() && d.anyBusy(c.Deliveries) {
		return done("busy", op)
	}
	if over&KeptInput != 0 {
		d.drop(op.ID, InputPayload)
		op.Kept &^= KeptInput
	}
	if over&KeptResult != 0 {
		d.drop(op.Result, ResultPayload)
		d.removeArtifacts(&op)
	}
	if over&KeptDeliveries != 0 {
		d.drop(op.ID, MetadataPayload)
	}
	for _, id := range c.Events {
		if !d.removeEvent(op, id, over) {
			c.Done &^= KeptCallbacks
		}
	}
	for _, id := range c.Reviews {
		d.removeReview(op, id, over)
	}
	if over&KeptDeliveries != 0 {
		for _, id := range c.Deliveries {
			d.removeSent(id, op.ErasedAt.IsSet())
		}
	}
	if over&KeptWords != 0 {
		d.removed.Words = append(d.removed.Words, op.ID)
	}
	if c.Seen == op.Version {
		op.Kept &^= c.Done & over
	}
	d.Operations.Put(op.ID, op)
	return done("removed", op)
}

// removeArtifacts gives the files of the result up. The copies themselves are
// removed by whoever has the blob store; until then the operation keeps
// [KeptFiles].
func (d *Draft) removeArtifacts(op *Operation) {
	for _, a := range d.artifacts(*op) {
		d.drop(a.Link, LinkPayload)
		a.State, a.DueAt, a.Leased, a.Waiting = pawl.ArtifactDropped, pawl.Never, false, false
		a.Filename, a.LastError, a.Host, a.LinkDigest = "", "", "", Digest{}
		d.Artifacts.Put(a.ID, a)
	}
	op.Captures = NoCaptures
}

// removeEvent removes what an operation's event holds of the classes; false if a
// person must decide about it first.
func (d *Draft) removeEvent(op Operation, id pawl.ID, over Kept) bool {
	e, ok := d.Events.Get(id)
	if !ok || e.Operation != op.ID {
		return true
	}
	if over&KeptResult != 0 {
		d.drop(e.Result, ResultPayload)
	}
	class := KeptDeliveries
	if e.Direction == Inbound {
		class = KeptCallbacks
	}
	if over&class == 0 || e.RemovedAt.IsSet() {
		return true
	}
	if e.Judged() == pawl.UnknownType {
		if row := d.unknownTypes(e.Source, e.Tenant); !row.Review.IsZero() && !op.ErasedAt.IsSet() {
			return false
		}
		d.typeKnown(e.Source, e.Tenant)
	}
	d.empty(e)
	return true
}

// empty removes all that an event holds; its key and what became of it stay.
func (d *Draft) empty(e Event) {
	d.drop(e.ID, BodyPayload)
	d.drop(e.ID, DataPayload)
	e.Headers, e.Snapshot, e.Traceparent = "", "", ""
	e.RemovedAt = d.Now
	d.Events.Put(e.ID, e)
}

// removeReview removes what a provider reported against the operation's end, and
// of an erased one what people wrote.
func (d *Draft) removeReview(op Operation, id pawl.ID, over Kept) {
	r, ok := d.Reviews.Get(id)
	if !ok || r.Operation != op.ID || r.ClosedAt == 0 {
		return
	}
	if over&KeptResult != 0 {
		d.drop(r.ID, ResultPayload)
		r.Reported = ""
	}
	if over&KeptWords != 0 {
		r.Detail, r.Note, r.Notes, r.Owner = "", "", "", ""
	}
	d.Reviews.Put(r.ID, r)
}

// anyBusy reports whether one of the deliveries is still to be made, or waits
// for a person.
func (d *Draft) anyBusy(ids []pawl.ID) bool {
	for _, id := range ids {
		row, ok := d.Deliveries.Get(id)
		if !ok {
			continue
		}
		if row.Leased || row.DueAt != pawl.Never || !row.Review.IsZero() || row.State == pawl.DeliveryPending || row.State == pawl.DeliveryDelivering {
			return true
		}
		if row.State != pawl.DeliveryDead {
			continue
		}
		if ep, ok := d.Endpoints.Get(row.Endpoint); ok && !ep.DeadLetter.IsZero() {
			return true
		}
	}
	return false
}

// removeSent removes what was sent of a delivery, and its attempts; one of an
// erased operation that is still to be made is skipped (7-rules R42).
func (d *Draft) removeSent(id pawl.ID, erased bool) {
	row, ok := d.Deliveries.Get(id)
	if !ok {
		return
	}
	d.drop(row.ID, SentPayload)
	d.removed.Attempts = append(d.removed.Attempts, row.ID)
	row.BodyKept, row.LastError = false, ""
	waits := row.Leased || row.DueAt != pawl.Never || row.State == pawl.DeliveryPending || row.State == pawl.DeliveryDelivering
	if !erased || !waits {
		d.Deliveries.Put(row.ID, row)
		return
	}
	d.skip(row, reasonErased)
}
