package ledger

import "github.com/pawlhq/pawl"

// EndLate decides what follows for an operation whose deadline has passed while
// creates at its upstream are paused: nobody leases it there, and a pause is no
// reason to hold its money any longer (1-product D4, 7-rules §1).
type EndLate struct {
	Header
	Up        Upstream
	Operation pawl.ID
}

// Head is the command's header.
func (c EndLate) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c EndLate) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide does what [Advance] does without a lease, unless somebody has one.
func (c EndLate) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	held := op.Leased != NoAction && op.DueAt > d.Now
	if !ok || op.Upstream != c.Up.Name || op.State != pawl.Pending || d.Now < op.Deadline || held {
		return done("not_late", nil)
	}
	op.Leased = NoAction
	reason := Advance{Up: c.Up}.advance(d, &op)
	d.saveDue(op)
	return done(reason, op)
}
