package desk

import (
	"math/bits"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// Committed makes the desk look where a commit has brought work, and counts what
// became of leases.
func (d *Desk) Committed(rows *ledger.Rows) {
	for _, change := range rows.Operations.Changes() {
		was, now := change.Was, change.Now
		if now.Adapter != ledger.WorkerAdapter {
			continue
		}
		if now.WaitingAt.IsSet() && now.WaitingAt != was.WaitingAt {
			d.Wake()
		}
		if d.o.Metrics != nil {
			d.count(was, now)
		}
	}
}

func (d *Desk) count(was, now ledger.Operation) {
	add := func(outcome string, n int) {
		if n > 0 {
			d.o.Metrics.Worker.Leases.WithLabelValues(now.Upstream, outcome).Add(float64(n))
		}
	}
	add(telemetry.LeaseBegun, int(now.Creates-was.Creates))
	add(telemetry.LeaseFailed, bits.OnesCount64(uint64(now.WorkFailed&^was.WorkFailed)))
	if now.WorkDone && !was.WorkDone {
		add(telemetry.LeaseCompleted, 1)
	}
	// The node's own action follows a lease that ran out; one that nobody had
	// waited.
	advanced := was.Leased == ledger.ActAdvance && now.Leased == ledger.NoAction
	said := now.WorkFailed != was.WorkFailed || now.WorkDone
	if advanced && !was.WaitingAt.IsSet() && was.Creates > 0 && !said {
		add(telemetry.LeaseExpired, 1)
	}
}
