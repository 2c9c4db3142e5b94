package ledger

import (
	"encoding/json"

	"github.com/pawlhq/pawl"
)

// The bounds of what is remarked on a review.
const (
	// maxRemarks is how many remarks a review holds.
	maxRemarks = 50
)

// Remark is what somebody has found out about a review before it is decided.
type Remark struct {
	At    pawl.Time `json:"at" format:"date-time"`
	Actor string    `json:"actor"`
	Note  string    `json:"note"`
}

// Remarks are what was remarked on the review, oldest first.
func (r Review) Remarks() (all []Remark) {
	_ = json.Unmarshal([]byte(r.Notes), &all) // It was written by NoteReview.
	return all
}

// NoteReview remarks something on an open review. The caller has checked the text.
type NoteReview struct {
	Header
	Once
	Tenant string
	// Operation is the review's own, resolved beforehand; zero where it is about
	// none.
	Review, Operation pawl.ID
	Note              string
}

// Head is the command's header.
func (c NoteReview) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c NoteReview) Keys(k *Keys) {
	c.needs(k)
	k.Reviews = add(k.Reviews, c.Review)
	k.Operations = addSet(k.Operations, c.Operation)
}

// Decide adds the remark and answers with the [Review]. The same remark of the
// same person is not added twice in a row.
func (c NoteReview) Decide(d *Draft) Outcome {
	r, ok := d.Reviews.Get(c.Review)
	if !ok || c.Tenant != "" && r.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such review")
	}
	asked := ask(ForNote, c.Review.String(), c.Note)
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value = r
		}
		return out
	}
	if r.ClosedAt != 0 {
		return dropped(pawl.Conflicting, "already_decided", "this review was decided already: "+r.Decision)
	}
	all := r.Remarks()
	if n := len(all); n > 0 && all[n-1].Note == c.Note && all[n-1].Actor == d.Actor {
		return done("unchanged", r)
	}
	if len(all) == maxRemarks {
		return dropped(pawl.Conflicting, "too_many_notes", "a review holds 50 notes; decide it, or keep the story elsewhere")
	}
	text, err := json.Marshal(append(all, Remark{d.Now, d.Actor, c.Note}))
	if err != nil {
		panic(err)
	}
	r.Notes = string(text)
	d.Reviews.Put(r.ID, r)
	d.takeKey(c.Once, asked, r.ID)
	d.noteReview(r, NoteLine, c.Note)
	d.audit(r.Tenant, "review.note", r.ID.Text(pawl.PrefixReview), "")
	return done("noted", r)
}
