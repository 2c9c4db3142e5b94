package ledger

import "github.com/pawlhq/pawl"

// kept: each class of data that something of the operation holds is known to it,
// or it would never age; and an erased one names nobody (1-product I8).
func (found *findings) kept(f Facts) {
	op, row := f.Operation, f.Operation.ID.Text(pawl.PrefixOperation)
	var holds Kept
	for _, e := range f.Inbound {
		if e.RemovedAt == 0 {
			holds |= KeptCallbacks
		}
	}
	for _, e := range f.Outbound {
		if e.RemovedAt == 0 {
			holds |= KeptDeliveries
		}
	}
	for _, a := range f.Artifacts {
		if a.State != pawl.ArtifactDropped {
			holds |= KeptFiles
		}
	}
	if lacks := holds &^ op.Kept; lacks != 0 {
		found.add(row, ruleKept, "it keeps classes %b, and holds something of %b", op.Kept, holds)
	}
	if !op.ErasedAt.IsSet() {
		return
	}
	if !op.State.Terminal() || op.Reviews != 0 {
		found.add(row, ruleKept, "erased, and %s with reviews %b", op.State, op.Reviews)
	}
	if op.CorrelationID+op.CallbackURL+op.Owner+op.ErrorMessage+op.ErrorWord+op.UpstreamRequestID+op.Traceparent != "" {
		found.add(row, ruleKept, "erased, and it still has words of its application or provider")
	}
}
