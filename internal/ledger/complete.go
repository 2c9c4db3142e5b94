package ledger

import "github.com/pawlhq/pawl"

// overdueMost is how often a receiver may let the time for its report pass before
// a person is asked (1-product C9, 7-rules R21).
const overdueMost = 2

// reported says that the receiver has said that it is done.
func (row Delivery) reported() bool { return row.CompletedAt.IsSet() }

// unreported says that the receiver took it, had to report, and has not yet.
func (row Delivery) unreported() bool {
	return row.State == pawl.DeliveryDelivered && row.CompleteBy.IsSet() && !row.reported() && !row.Discarded
}

// awaited says that the report may still come in time, or is overdue unnoticed.
func (row Delivery) awaited() bool { return row.unreported() && row.Overdue < overdueMost }

// overdue judges a delivery whose report has not come in time: the first time it
// is to be sent again, under a fresh schedule; after that it is given to a person
// and the result is true.
func (d *Draft) overdue(ep Endpoint, row *Delivery) bool {
	row.Overdue++
	if row.Overdue < overdueMost {
		row.State, row.FinishedAt, row.FirstDueAt, row.Tries, row.CompleteBy = pawl.DeliveryPending, 0, d.Now, 0, 0
		return false
	}
	row.Reason = "completion_overdue"
	row.Review = d.openLoose(Review{
		Tenant: row.Tenant, Reason: pawl.ReviewCompletionOverdue, Endpoint: row.Endpoint, Delivery: row.ID, Event: row.Event, Owner: ep.Owner,
	})
	return true
}

// finish ends a delivery that came due and has nothing to be sent: it was
// reported done while its attempt was under way, or is a person's now.
func (d *Draft) finish(row Delivery) {
	if row.State != pawl.DeliveryDelivered {
		row.State, row.Reason, row.FinishedAt = pawl.DeliveryDelivered, "", d.Now
	}
	row.DueAt, row.Leased = pawl.Never, false
	d.putDelivery(row)
}

// askAnew forgets what became of an earlier attempt's report: a new one is asked
// for. The review of that is decided by it.
func (d *Draft) askAnew(row *Delivery, decision string) {
	row.Discarded = false
	if row.reported() {
		return
	}
	d.answerOverdue(row, decision)
	row.Overdue, row.CompleteBy = 0, 0
}

// answerOverdue closes the review of an overdue report, if there is one.
func (d *Draft) answerOverdue(row *Delivery, decision string) {
	if row.Review.IsZero() {
		return
	}
	if r, ok := d.Reviews.Get(row.Review); ok && r.ClosedAt == 0 {
		d.closeReview(r, nil, decision, "")
	}
	row.Review = pawl.ID{}
}

// CompleteDelivery reports that the receiver has done what an event asked for
// (1-product C9). It may be repeated, and may come before the receiver's answer
// is recorded, or after the time for it.
type CompleteDelivery struct {
	Header
	// Tenant restricts whose delivery it may be; "" does not.
	Tenant   string
	Delivery pawl.ID
	// Event is the delivery's, if that is of a generic source, and Review its open
	// review; resolved beforehand.
	Event, Review pawl.ID
}

// Head is the command's header.
func (c CompleteDelivery) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c CompleteDelivery) Keys(k *Keys) {
	k.Deliveries = add(k.Deliveries, c.Delivery)
	k.Events = addSet(k.Events, c.Event)
	k.Reviews = addSet(k.Reviews, c.Review)
}

// Decide marks the delivery and answers with it. What was never sent cannot be
// done.
func (c CompleteDelivery) Decide(d *Draft) Outcome {
	row, ok := d.Deliveries.Get(c.Delivery)
	switch {
	case !ok || c.Tenant != "" && row.Tenant != c.Tenant:
		return dropped(pawl.NotFound, "not_found", "no such delivery")
	case row.reported():
		return done("repeat", row)
	case row.State == pawl.DeliverySkipped:
		return dropped(pawl.Conflicting, "skipped", "the delivery was skipped: "+row.Reason)
	case row.Sequence == 0:
		return dropped(pawl.Conflicting, "not_sent", "the delivery was not sent yet")
	}
	d.answerOverdue(&row, DecidedBySystem)
	row.CompletedAt, row.CompletedBy, row.Reason = d.Now, d.Actor, ""
	if !row.Leased && !row.Replay {
		if row.State != pawl.DeliveryDelivered {
			row.FinishedAt = d.Now
		}
		row.State, row.DueAt = pawl.DeliveryDelivered, pawl.Never
	}
	d.putDelivery(row)
	d.audit(row.Tenant, "delivery.complete", row.ID.Text(pawl.PrefixDelivery), "")
	return done("completed", row)
}
