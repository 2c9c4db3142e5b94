package simulate

import (
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// tryAgain has an application ask for a job once more whose operation came to
// nothing: that is a new operation under a key of its own (1-product A9).
func (w *world) tryAgain() {
	j := pick(w.dice, w.jobs...)
	if j.op.IsZero() {
		return
	}
	c := j.command
	c.Key, c.RetryOf = fmt.Sprint("retry-", w.steps), j.op
	c.Fingerprint, c.Work, c.CorrelationID = ledger.RetryFingerprint(j.op), j.command.Fingerprint, ""
	w.person("try again", func(n *node) {
		c.Deadline = pawl.TimeOf(n.clock()).Add(j.patience)
		out, err := n.Do(noLimit, c)
		if err != nil || out.Err != nil {
			return
		}
		op := out.Value.(ledger.Submitted).Operation
		w.trace("operation %s is tried again as %s", c.RetryOf.Suffix(), op.ID.Suffix())
		w.books.promiseOperation(op.ID)
		if op.ID == c.RetryOf || op.RetryOf != c.RetryOf {
			w.violate("what is tried again is a new operation", "%s for %s", op.ID.Suffix(), c.RetryOf.Suffix())
		}
	})
}
