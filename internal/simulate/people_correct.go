package simulate

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// correct has an operator say that an operation ended otherwise (7-rules R9).
func (w *world) correct() {
	op, up, ok := w.someOperation()
	if !ok || !op.State.Terminal() {
		return
	}
	to := pick(w.dice, pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired)
	c := ledger.ResolveOperation{Tenant: op.Tenant, Operation: op.ID, Up: up, Decision: to.String(), From: op.State, Note: "the invoice says so"}
	if w.percent(30) && op.Reserved > 0 {
		c.HasCharge, c.Charge = true, pawl.Amount(w.Int64N(int64(op.Reserved)+1))
	}
	c.Header.Actor = "operator"
	w.person("correct", func(n *node) {
		w.trace("an operator corrects operation %s from %s to %s", op.ID.Suffix(), op.State, to)
		_, _ = n.Do(noLimit, c)
	})
}
