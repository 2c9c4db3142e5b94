package ledger

import (
	"github.com/pawlhq/pawl"
)

// Advance decides what time alone decides: a create whose lease ran out, a
// deadline, a final cost that never came.
type Advance struct {
	Header
	Up        Upstream
	Operation pawl.ID
	Fence     int64
}

// Head is the command's header.
func (c Advance) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c Advance) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide moves the operation on and answers with it. One that has moved on since
// it was leased, by a callback for example, is due by what was planned then.
func (c Advance) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if op.Lease != c.Fence || op.Leased != ActAdvance {
		return done("old_lease", op)
	}
	op.Leased = NoAction
	reason := "moved_on"
	if nextAction(op, c.Up, d.Now) == ActAdvance {
		reason = c.advance(d, &op)
	}
	d.saveDue(op)
	return done(reason, op)
}

// settleOverdue gives an ended operation to a person once its final cost is
// overdue; until then it reports false.
func (d *Draft) settleOverdue(up Upstream, op *Operation) bool {
	if d.Now < op.FinishedAt.Add(up.SettleWithin) {
		return false
	}
	op.DueAt = pawl.Never
	d.openReview(op, pawl.ReviewSettleOverdue, pawl.ID{}, up.Owner, "")
	return true
}

func (c Advance) advance(d *Draft, op *Operation) string {
	if op.ownWork(c.Up) {
		return d.advanceWork(c.Up, op)
	}
	late := d.Now >= op.Deadline
	switch {
	case op.State == pawl.Pending && (op.MayExist || op.InFlight):
		d.unconfirm(c.Up, op)
		return "unconfirmed"
	case d.stopUncreated(c.Up, op):
		return "canceled"
	case op.State == pawl.Pending && late:
		d.end(c.Up, op, pawl.Expired)
		return "expired"
	case op.State == pawl.Pending:
		d.fail(c.Up, op, pawl.FailUnavailable, "", unreachable)
		return "failed"
	case op.State == pawl.Unconfirmed && late:
		op.DueAt = pawl.Never
		d.openReview(op, pawl.ReviewUnconfirmed, pawl.ID{}, c.Up.Owner, "")
		return "review"
	case op.State == pawl.Running && late:
		op.DueAt = pawl.Never
		d.openReview(op, pawl.ReviewDeadlineUnread, pawl.ID{}, c.Up.Owner, "")
		return "review"
	case op.State.Terminal() && op.Settled:
		op.DueAt = pawl.Never
		return "finished"
	case op.State.Terminal():
		if d.settleOverdue(c.Up, op) {
			return "review"
		}
		op.DueAt = op.FinishedAt.Add(c.Up.SettleWithin)
		return "waiting"
	default:
		op.DueAt = max(op.Deadline, d.Now)
		d.boundByDeadline(c.Up, op)
		return "waiting"
	}
}
