package ledger

import (
	"slices"

	"github.com/pawlhq/pawl"
)

// Removals are what a batch takes out of the tables that are otherwise only
// added to. A driver removes it before it adds anything: what is removed was
// there before, or was added by an earlier command of the batch and is left out.
type Removals struct {
	Payloads []PayloadID
	// Attempts are deliveries whose attempts go.
	Attempts []pawl.ID
	// Words are operations whose timelines lose their details.
	Words  []pawl.ID
	Audits []pawl.ID
}

// Empty reports whether nothing is removed.
func (r Removals) Empty() bool {
	return len(r.Payloads)+len(r.Attempts)+len(r.Words)+len(r.Audits) == 0
}

// remove notes what a command removes, and takes it from what the batch has
// added so far.
func (r *Rows) remove(gone Removals) {
	if gone.Empty() {
		return
	}
	r.Payloads = slices.DeleteFunc(r.Payloads, func(p Payload) bool { return slices.Contains(gone.Payloads, p.ID) })
	r.Attempts = slices.DeleteFunc(r.Attempts, func(a Attempt) bool { return slices.Contains(gone.Attempts, a.Delivery) })
	r.Audits = slices.DeleteFunc(r.Audits, func(a Audit) bool { return slices.Contains(gone.Audits, a.ID) })
	for i := range r.History {
		if slices.Contains(gone.Words, r.History[i].Operation) {
			r.History[i].Detail = ""
		}
	}
	r.Removed.Payloads = union(r.Removed.Payloads, gone.Payloads)
	r.Removed.Attempts = union(r.Removed.Attempts, gone.Attempts)
	r.Removed.Words = union(r.Removed.Words, gone.Words)
	r.Removed.Audits = union(r.Removed.Audits, gone.Audits)
}

// drop removes a payload, if there is one under the owner.
func (d *Draft) drop(owner pawl.ID, kind PayloadKind) {
	if !owner.IsZero() {
		d.removed.Payloads = append(d.removed.Payloads, PayloadID{owner, kind})
	}
}
