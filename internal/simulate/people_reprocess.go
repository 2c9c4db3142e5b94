package simulate

import (
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// reprocess has an operator judge a stored event anew.
func (w *world) reprocess() {
	all, err := w.driver.Events(noLimit, store.EventFilter{Direction: ledger.Inbound}, wide)
	if err != nil || len(all) == 0 {
		return
	}
	e := pick(w.dice, all...)
	id := ledger.PayloadID{Owner: e.ID, Kind: ledger.BodyPayload}
	bodies, err := w.driver.Payloads(noLimit, id)
	if err != nil {
		panic(err)
	}
	c := ledger.ReprocessEvent{ReceiveEvent: w.set[e.Source].Reread(e, []byte(bodies[id])), Tenant: e.Tenant, ID: e.ID, Whose: e.Tenant}
	c.Token = e.Operation
	w.providerOf(e.Source).perhapsTaken(e.ExternalID)
	w.person("reprocess", func(n *node) {
		out, err := n.Do(noLimit, c)
		if err == nil {
			w.trace("event %s of %s was %s and is %s", e.ExternalID, e.Task, e.Verdict, out.Reason)
		}
	})
}

// perhapsTaken notes that an event which was refused may count now.
func (p *provider) perhapsTaken(id string) {
	for _, t := range p.tasks {
		for _, e := range t.events {
			if e.id == id {
				e.perhaps++
			}
		}
	}
}
