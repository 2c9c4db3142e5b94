package ledger

import "github.com/pawlhq/pawl"

// ruleWork is named by the check beside the others.
const ruleWork = "an operation has one worker at a time, and one outcome of its work"

// work: what waits for an own worker has none and can be found when its time is
// over; what one has is running; and one completion counted.
func (found *findings) work(f Facts) {
	op, row := f.Operation, f.Operation.ID.Text(pawl.PrefixOperation)
	completed := 0
	for _, h := range f.History {
		if h.Kind == WorkLine && h.Reason == workCompleted {
			completed++
		}
	}
	waits := op.WaitingAt.IsSet()
	switch {
	case waits && op.State.Terminal():
		found.add(row, ruleWork, "%s, and it waits for a worker", op.State)
	case waits && op.Leased == ActWork:
		found.add(row, ruleWork, "it has a worker, and waits for one")
	case waits && op.DueAt == pawl.Never:
		found.add(row, ruleWork, "it waits for a worker, and would do so for ever")
	case op.Leased == ActWork && (op.State != pawl.Running || op.Creates < 1):
		found.add(row, ruleWork, "%s after %d leases, and it has a worker", op.State, op.Creates)
	case op.WorkDone && !op.State.Terminal():
		found.add(row, ruleWork, "%s, and its worker has completed it", op.State)
	}
	if completed > 1 || op.WorkDone != (completed == 1) {
		found.add(row, ruleWork, "it was completed %d times", completed)
	}
	if op.Adapter == WorkerAdapter && op.WorkFailed>>min(op.Creates, 63) != 0 {
		found.add(row, ruleWork, "a lease that was never given has failed")
	}
}
