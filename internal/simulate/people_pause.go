package simulate

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// pauseUpstream has an operator stop an upstream's creates, or let them go on.
func (w *world) pauseUpstream() {
	p := pick(w.dice, w.providers...)
	w.person("pause", func(n *node) {
		if w.percent(50) {
			_, _ = n.Do(noLimit, ledger.PauseUpstream{Upstream: p.name, Reason: ledger.PausedByHand})
			return
		}
		_, _ = n.Do(noLimit, w.resumption(p))
	})
}

// resumption opens everything of an upstream that is paused.
func (w *world) resumption(p *provider) ledger.ResumeUpstream {
	c := ledger.ResumeUpstream{Upstream: p.name}
	for _, kind := range []ledger.QueueKind{ledger.SubmitQueue, ledger.ReadQueue} {
		queues, err := w.driver.Ready(noLimit, kind, p.name, pawl.Never, wide.Limit)
		if err != nil {
			panic(err)
		}
		for _, q := range queues {
			if q.PausedUntil > 0 {
				c.Queues = append(c.Queues, q.ID)
			}
		}
	}
	return c
}
