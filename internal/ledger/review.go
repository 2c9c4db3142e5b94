package ledger

import (
	"encoding/json"
	"math/bits"
	"strings"

	"github.com/pawlhq/pawl"
)

// openReview opens a review about an operation unless one for the same reason
// is open. It raises the version and emits (7-rules §3); the caller saves the
// operation.
func (d *Draft) openReview(op *Operation, reason pawl.Reason, event pawl.ID, owner, detail string) {
	d.openAbout(op, Review{Reason: reason, Event: event, Owner: owner, Detail: detail})
}

// openReport is openReview for what a provider says against the end that was
// recorded first: it is kept, so that a person may accept it.
func (d *Draft) openReport(up Upstream, op *Operation, reason pawl.Reason, event pawl.ID, o Observation) {
	if op.Reviews&(1<<reason) != 0 {
		return
	}
	rep := Report{Observation: o, HasResult: o.Result != ""}
	rep.Result, rep.Taken = d.takeLinks(up, o)
	result := rep.Result
	rep.Result = ""
	text, err := json.Marshal(rep)
	if err != nil {
		panic(err)
	}
	id := d.openAbout(op, Review{
		Reason: reason, Event: event, Owner: up.Owner, Detail: strings.TrimSpace("reported " + o.Word + " " + o.CostText), Reported: string(text),
	})
	d.keep(id, ResultPayload, result)
}

// openAbout completes and opens a review about an operation and gives its id;
// zero where one for the same reason is open.
func (d *Draft) openAbout(op *Operation, r Review) pawl.ID {
	if op.Reviews&(1<<r.Reason) != 0 {
		return pawl.ID{}
	}
	if op.Owner != "" {
		r.Owner = op.Owner
	}
	r.ID, r.Tenant, r.Operation, r.Source, r.OpenedAt = d.NewID(), op.Tenant, op.ID, op.Upstream, d.Now
	d.Reviews.Put(r.ID, r)
	op.Reviews |= 1 << r.Reason
	op.Review = r.ID
	d.emit(op, pawl.TypeReviewOpened)
	d.notifyReview(r)
	return r.ID
}

// openLoose opens a review that is about no operation and gives its id.
func (d *Draft) openLoose(r Review) pawl.ID {
	r.ID, r.OpenedAt = d.NewID(), d.Now
	d.Reviews.Put(r.ID, r)
	d.notifyReview(r)
	return r.ID
}

// closeReview closes a review and, if it is about an operation, tells. The
// operation then shows the latest of those that are still open.
func (d *Draft) closeReview(r Review, op *Operation, decision, note string) {
	r.ClosedAt, r.Decision, r.Note, r.DecidedBy = d.Now, decision, note, d.Actor
	d.Reviews.Put(r.ID, r)
	if op == nil {
		return
	}
	op.Reviews &^= 1 << r.Reason
	if op.Review == r.ID {
		op.Review = pawl.ID{}
		for _, open := range d.openReviews(*op) {
			if open.ID.Compare(op.Review) > 0 {
				op.Review = open.ID
			}
		}
	}
	detail := decision
	if note != "" {
		detail += ": " + note
	}
	d.note(*op, History{Kind: "review", Reason: r.Reason.String(), Detail: detail})
	d.emit(op, pawl.TypeReviewClosed)
}

// noteReview adds what is done with an open review to the timeline of the operation
// that it is about, if it is about one.
func (d *Draft) noteReview(r Review, kind, detail string) {
	if r.Operation.IsZero() {
		return
	}
	if op, ok := d.Operations.Get(r.Operation); ok {
		d.note(op, History{Kind: kind, Reason: r.Reason.String(), Detail: detail, Version: op.Version})
	}
}

// openReviews are the open reviews about an operation, in no order.
func (d *Draft) openReviews(op Operation) (open []Review) {
	if op.Reviews == 0 {
		return nil
	}
	for _, r := range d.Reviews.all() {
		if r.Operation == op.ID && r.ClosedAt == 0 {
			open = append(open, r)
		}
	}
	if len(open) < bits.OnesCount32(op.Reviews) && !d.rows.HasOpenReviews(op.ID) {
		panic(Miss{Keys: Keys{OpenReviews: []pawl.ID{op.ID}}})
	}
	return open
}

// DecidedBySystem is the decision of a review that events have answered.
const DecidedBySystem = "answered"

// closeOpen closes the operation's open review of a reason, if it has one.
func (d *Draft) closeOpen(op *Operation, reason pawl.Reason, decision string) {
	if op.Reviews&(1<<reason) == 0 {
		return
	}
	for _, r := range d.openReviews(*op) {
		if r.Reason == reason {
			d.closeReview(r, op, decision, "")
			return
		}
	}
}

// finished closes the operation's reviews that its end, or its final cost, has
// answered; others wait for a person.
func (d *Draft) finished(op *Operation) {
	for _, reason := range [...]pawl.Reason{pawl.ReviewUnconfirmed, pawl.ReviewDeadlineUnread, pawl.ReviewTaskUnknown, pawl.ReviewUnknownState} {
		d.closeOpen(op, reason, DecidedBySystem)
	}
	if op.Settled {
		d.closeOpen(op, pawl.ReviewSettleOverdue, DecidedBySystem)
		d.closeOpen(op, pawl.ReviewCurrency, DecidedBySystem)
	}
}
