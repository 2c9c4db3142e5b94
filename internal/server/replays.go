package server

import "github.com/pawlhq/pawl/internal/ledger"

// replays wakes the loops that work past the queues, where a commit has left them
// something: a replay that is due, or a forced delivery.
func (n *Node) replays(rows *ledger.Rows) {
	if n.replayer == nil || n.outbox == nil {
		return
	}
	for _, change := range rows.Replays.Changes() {
		if !change.Now.Leased && !change.Now.State.Finished() {
			n.replayer.Wake()
			break
		}
	}
	for _, change := range rows.Deliveries.Changes() {
		if change.Now.Forced && !change.Now.Leased {
			n.outbox.Wake()
			return
		}
	}
}
