package simulate

import (
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// someOperation is one of all operations.
func (w *world) someOperation() (op ledger.Operation, up ledger.Upstream, ok bool) {
	all, err := w.driver.Operations(noLimit, store.OperationFilter{}, wide)
	if err != nil || len(all) == 0 {
		return op, up, false
	}
	op = pick(w.dice, all...)
	return op, w.set[op.Upstream].Policy(), true
}

// readNow has somebody ask for a read.
func (w *world) readNow() {
	op, up, ok := w.someOperation()
	if !ok {
		return
	}
	w.person("read now", func(n *node) {
		_, _ = n.Do(noLimit, ledger.ReadNow{Tenant: op.Tenant, Operation: op.ID, Up: up})
	})
}

// cancel has an application ask that an operation be stopped.
func (w *world) cancel() {
	op, up, ok := w.someOperation()
	if !ok {
		return
	}
	w.person("cancel", func(n *node) {
		out, err := n.Do(noLimit, ledger.Cancel{Tenant: op.Tenant, Operation: op.ID, Up: up})
		if err == nil {
			w.trace("cancel of %s: %s", op.ID.Suffix(), out.Reason)
		}
	})
}
