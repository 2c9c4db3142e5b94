package ledger

import "github.com/pawlhq/pawl"

// openReview opens a review about an operation unless one for the same reason
// is open. It raises the version and emits (7-rules §3); the caller saves the
// operation.
func (d *Draft) openReview(op *Operation, reason pawl.Reason, event pawl.ID, owner, detail string) {
	if op.Reviews&(1<<reason) != 0 {
		return
	}
	if op.Owner != "" {
		owner = op.Owner
	}
	r := Review{
		ID: d.NewID(), Tenant: op.Tenant, Reason: reason, Operation: op.ID, Event: event,
		Source: op.Upstream, Owner: owner, Detail: detail, OpenedAt: d.Now,
	}
	d.Reviews.Put(r.ID, r)
	op.Reviews |= 1 << reason
	op.Review = r.ID
	d.emit(op, pawl.TypeReviewOpened)
}

// openLoose opens a review that is about no operation and gives its id.
func (d *Draft) openLoose(r Review) pawl.ID {
	r.ID, r.OpenedAt = d.NewID(), d.Now
	d.Reviews.Put(r.ID, r)
	return r.ID
}

// closeReview closes a review and, if it is about an operation, tells.
func (d *Draft) closeReview(r Review, op *Operation, decision, note string) {
	r.ClosedAt, r.Decision, r.Note, r.DecidedBy = d.Now, decision, note, d.Actor
	d.Reviews.Put(r.ID, r)
	if op == nil {
		return
	}
	op.Reviews &^= 1 << r.Reason
	if op.Review == r.ID {
		op.Review = pawl.ID{}
	}
	d.note(*op, History{Kind: "review", Reason: r.Reason.String(), Detail: decision})
	d.emit(op, pawl.TypeReviewClosed)
}

// DecidedBySystem is the decision of a review that events have answered.
const DecidedBySystem = "answered"

// closeOpen closes the operation's latest review if it has that reason.
func (d *Draft) closeOpen(op *Operation, reason pawl.Reason, decision string) {
	if op.Reviews&(1<<reason) == 0 || op.Review.IsZero() {
		return
	}
	if r, ok := d.Reviews.Get(op.Review); ok && r.Reason == reason && r.ClosedAt == 0 {
		d.closeReview(r, op, decision, "")
	}
}

// finished closes the operation's latest review if its end, or its final cost,
// has answered it; other reviews wait for a person.
func (d *Draft) finished(op *Operation) {
	for _, reason := range [...]pawl.Reason{pawl.ReviewDeadlineUnread, pawl.ReviewTaskUnknown, pawl.ReviewUnknownState} {
		d.closeOpen(op, reason, DecidedBySystem)
	}
	if op.Settled {
		d.closeOpen(op, pawl.ReviewSettleOverdue, DecidedBySystem)
	}
}
