package server

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// confirmed measures how long operations took from their create to the first
// end that their provider named, by whatever way it was learned. What expired by
// our own clock, or never had a task, was not confirmed by anybody.
func (n *Node) confirmed(rows *ledger.Rows) {
	for _, change := range rows.Operations.Changes() {
		was, now := change.Was, change.Now
		if change.Existed && !was.State.Terminal() && now.State.Terminal() && now.State != pawl.Expired && now.Task != "" {
			n.metrics.Confirmed.Observe(now.FinishedAt.Sub(now.CreatedAt).Seconds())
		}
	}
}
