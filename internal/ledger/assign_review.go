package ledger

import "github.com/pawlhq/pawl"

// AssignReview says who is to decide an open review (1-product I2).
type AssignReview struct {
	Header
	Tenant string
	// Operation is the review's own, resolved beforehand; zero where it is about
	// none.
	Review, Operation pawl.ID
	Owner             string
}

// Head is the command's header.
func (c AssignReview) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c AssignReview) Keys(k *Keys) {
	k.Reviews = add(k.Reviews, c.Review)
	k.Operations = addSet(k.Operations, c.Operation)
}

// Decide changes the review's owner and answers with the [Review].
func (c AssignReview) Decide(d *Draft) Outcome {
	r, ok := d.Reviews.Get(c.Review)
	if !ok || c.Tenant != "" && r.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such review")
	}
	if r.ClosedAt != 0 {
		return dropped(pawl.Conflicting, "already_decided", "this review was decided already: "+r.Decision)
	}
	if r.Owner == c.Owner {
		return done("unchanged", r)
	}
	r.Owner = c.Owner
	d.Reviews.Put(r.ID, r)
	d.noteReview(r, AssignLine, c.Owner)
	d.audit(r.Tenant, "review.assign", r.ID.Text(pawl.PrefixReview), c.Owner)
	return done("assigned", r)
}
