package server

import (
	"github.com/pawlhq/pawl/internal/audit"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/retention"
)

// keeping is how long what is kept, by the configuration.
func keeping(r config.Retention) retention.Settings {
	return retention.Settings{
		Ages:  ledger.Ages{Input: r.Inputs, Result: r.Results, Callbacks: r.Callbacks, Deliveries: r.Deliveries},
		Audit: r.Audit, Keys: r.Idempotency,
	}
}

// retain makes what removes old and erased content, and seals the audit.
func (n *Node) retain(root []byte) (err error) {
	n.keeping = config.NewLive(keeping(n.cfg.Retention))
	o := retention.Options{Store: n.store, Reader: n.driver, Settings: n.keeping, RemoveFiles: n.capturer.Remove, Metrics: n.metrics, Log: n.log}
	o.Scrub = n.scrub
	if o.AuditKey, err = audit.KeyOf(root); err != nil {
		return err
	}
	n.remover = retention.New(o)
	return nil
}

// erasing wakes the remover where a commit has left something to erase.
func (n *Node) erasing(rows *ledger.Rows) {
	if n.remover == nil {
		return
	}
	for _, change := range rows.Operations.Changes() {
		if change.Now.ErasedAt != change.Was.ErasedAt {
			n.remover.Wake()
		}
	}
	for _, change := range rows.Tenants.Changes() {
		if change.Now.EraseBefore > change.Was.EraseBefore {
			n.remover.Wake()
		}
	}
}
