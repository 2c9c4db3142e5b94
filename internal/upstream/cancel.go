package upstream

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
)

// CancelResult is what became of a cancel.
type CancelResult struct {
	Outcome ledger.CancelOutcome
	// Read is what the answer showed of the task, as for a read. It may show
	// nothing although the cancel was taken; where it shows the end, the answer is
	// the provider's last word.
	Read ReadResult
}

// Cancel asks the provider to stop the task.
func (u Upstream) Cancel(ctx context.Context, client *egress.Client, task string) CancelResult {
	unsupported := CancelResult{ledger.CancelRefused, ReadResult{Outcome: ledger.ReadUnreachable, Reason: ReasonUnsupported}}
	if u.spec.Cancel == nil || !usableID(task) {
		return unsupported
	}
	req, err := u.request(ctx, *u.spec.Cancel, values{task: task}, nil)
	if err != nil {
		return unsupported
	}
	a, failure := u.send(ctx, client, req)
	if failure != nil {
		r := CancelResult{ledger.CancelUnknown, ReadResult{Outcome: ledger.ReadUnreachable, Reason: failure.reason}}
		if failure.nothingWritten {
			r.Outcome = ledger.CancelUnreachable
		}
		return r
	}
	r := u.readAnswer(a, u.spec.Cancel.Fields, task, time.Now())
	return CancelResult{cancelOutcome(r), r}
}

// cancelOutcome classes an answer that arrived whole. A cancel may be sent again
// without harm, so that what is not a plain refusal is.
func cancelOutcome(r ReadResult) ledger.CancelOutcome {
	switch {
	case success(r.Status) && r.Outcome != ledger.ReadOtherTask:
		return ledger.CancelTaken
	case success(r.Status):
		return ledger.CancelRefused
	}
	switch r.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return ledger.CancelUnreachable
	}
	if r.Status >= 300 && r.Status <= 499 {
		return ledger.CancelRefused
	}
	return ledger.CancelUnknown
}
