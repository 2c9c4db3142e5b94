package simulate

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// database is the ledger's store as one node uses it. It tells the world of
// every transaction that took effect, whatever became of the node.
type database struct {
	*memory.Store
	node *node
}

// Update runs a transaction; see [store.Driver].
func (d *database) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	var saved *ledger.Rows
	defer func() {
		if saved == nil {
			return
		}
		d.node.world.quiet = true
		took, err := d.Store.Committed(noLimit, batch)
		d.node.world.quiet = false
		if err == nil && took {
			d.node.world.committed(d.node, saved)
		}
	}()
	return d.Store.Update(ctx, batch, func(tx store.Tx) error { return fn(&transaction{tx, &saved}) })
}

type transaction struct {
	store.Tx
	saved **ledger.Rows
}

// Save writes every changed row and everything added.
func (t *transaction) Save(rows *ledger.Rows) error {
	*t.saved = rows
	return t.Tx.Save(rows)
}

// strike is asked by the store at each step of a transaction: it fails the step
// that is to fail, and ends a node that is to die just there.
func (w *world) strike(s memory.Step) error {
	if w.quiet {
		return nil
	}
	if w.dying--; w.dying == 0 {
		panic(killed{})
	}
	if w.fault != s {
		return nil
	}
	w.fault = 0
	return errPlayed
}
