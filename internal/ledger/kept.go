package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// Kept is a set of classes of data (1-product I8, 4-standards PR-04).
type Kept uint8

// The classes of data of an operation.
const (
	// KeptInput: what was asked for.
	KeptInput Kept = 1 << iota
	// KeptResult: results, and the links to their files.
	KeptResult
	// KeptCallbacks: bodies and headers of inbound events.
	KeptCallbacks
	// KeptDeliveries: what was sent: bodies, attempts, and the data of events, the
	// metadata with it.
	KeptDeliveries
	// KeptFiles: copies of result files in the blob store, which may go once their
	// rows say that they are dropped.
	KeptFiles
	// KeptWords: free text of timelines and reviews; it goes by erasure alone.
	KeptWords

	keptAll = KeptWords<<1 - 1
)

// Ages are how long the classes of data are kept: those of an operation from its
// end, or from the last change after it; those of an event of no operation from
// its receipt.
type Ages struct {
	Input, Result, Callbacks, Deliveries time.Duration
}

// over are the classes that an operation need keep no longer. Nothing that is
// not finished, or that a person must decide, ever ages (O-115).
func (op Operation) over(a Ages, now pawl.Time) (over Kept) {
	if op.ErasedAt.IsSet() {
		return keptAll
	}
	if op.unrest() != "" {
		return 0
	}
	rest := max(op.FinishedAt, op.UpdatedAt)
	for _, class := range [...]struct {
		kept Kept
		age  time.Duration
	}{{KeptInput, a.Input}, {KeptResult | KeptFiles, a.Result}, {KeptCallbacks, a.Callbacks}, {KeptDeliveries, a.Deliveries}} {
		if rest.Add(class.age) <= now {
			over |= class.kept
		}
	}
	return over
}

// Over are the classes of data that an operation holds and need not keep any
// longer.
func (op Operation) Over(a Ages, now pawl.Time) Kept { return op.Kept & op.over(a, now) }

// unrest says why an operation's data is still needed, empty if it is not.
func (op Operation) unrest() string {
	switch {
	case !op.State.Terminal():
		return "unfinished"
	case op.Reviews != 0 || op.Held():
		return "open_review"
	case !op.Settled || op.Money == Held || op.wantsRead() || op.Captures == CapturesPending || op.DueAt != pawl.Never || op.Leased != NoAction:
		return "unsettled"
	}
	return ""
}
