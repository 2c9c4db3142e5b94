package ledger

import (
	"crypto/sha256"
	"fmt"

	"github.com/pawlhq/pawl"
)

// ReadLine is the latest line that a read has left on an operation's timeline.
// Reads that come to the same add to it instead of a line each, so that a
// provider which answers amiss for days leaves one line and a count.
type ReadLine struct {
	ID pawl.ID
	At pawl.Time
	// Same is the beginning of a digest of all that the line says.
	Same    [8]byte
	Repeats int64
}

// noteRead adds what a read came to to the timeline.
func (d *Draft) noteRead(op *Operation, h History) {
	h = d.line(*op, h)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q %q %d %d", h.Kind, h.Verdict, h.Reason, h.Detail, op.UpstreamState, h.Version, h.State))
	same := [8]byte(sum[:])
	if op.ReadLine.ID.IsZero() || op.ReadLine.Same != same {
		op.ReadLine = ReadLine{ID: h.ID, At: h.At, Same: same}
	} else {
		op.ReadLine.Repeats++
		h.ID, h.At, h.Repeats, h.LastAt = op.ReadLine.ID, op.ReadLine.At, op.ReadLine.Repeats, h.At
	}
	d.history = append(d.history, h)
}
