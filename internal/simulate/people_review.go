package simulate

import (
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// wide is a page that holds everything of a run.
var wide = store.Page{Limit: 100_000}

// resolveReview has an operator decide one of the open reviews.
func (w *world) resolveReview() {
	open, err := w.driver.Reviews(noLimit, store.ReviewFilter{Open: true}, wide)
	if err != nil || len(open) == 0 {
		return
	}
	w.resolve(pick(w.dice, open...))
}

// resolve decides a review as a person would who has looked at the provider.
func (w *world) resolve(r ledger.Review) {
	c := ledger.ResolveReview{
		Tenant: r.Tenant, Review: r.ID, Operation: r.Operation, Event: r.Event, Delivery: r.Delivery, Endpoint: r.Endpoint,
		Source: r.Source, Whose: r.Tenant, Decision: pick(w.dice, r.Reason.Rule().Decisions...), Note: "looked at it",
	}
	c.Header.Actor = "operator"
	if r.Source != "" {
		c.Up = w.set[r.Source].Policy()
	}
	op, ok := w.operation(r.Operation)
	if ok {
		c.Up = w.set[op.Upstream].Policy()
	}
	switch {
	case r.Reason == pawl.ReviewUnconfirmed && op.State == pawl.Unconfirmed:
		if c.Decision, c.Task, ok = w.truth(op); !ok {
			return
		}
	case c.Decision == pawl.DecideAttach:
		e, _ := w.rows(ledger.Keys{Events: []pawl.ID{r.Event}}).Events.Get(r.Event)
		if c.Target, ok = w.ownerOf(e); !ok {
			c.Decision = pawl.DecideDiscard
		}
		c.Task = e.Task
	case c.Decision == pawl.DecideCreated:
		c.Decision = pawl.DecideFailed // Somebody else has decided meanwhile.
	}
	w.person("resolve a review", func(n *node) {
		w.trace("an operator decides review %s of %s: %s %s", r.Reason, r.Operation.Suffix(), c.Decision, c.Task)
		_, _ = n.Do(noLimit, c)
	})
}

// ownerOf is the operation whose create made an event's task.
func (w *world) ownerOf(e ledger.Event) (pawl.ID, bool) {
	for _, p := range w.providers {
		if t := p.tasks[e.Task]; t != nil && p.name == e.Source {
			id, err := pawl.ParseSuffix(t.op)
			return id, err == nil
		}
	}
	return pawl.ID{}, false
}

// resolveOperation has an operator decide an unconfirmed operation.
func (w *world) resolveOperation() {
	all, err := w.driver.Operations(noLimit, store.OperationFilter{State: pawl.Unconfirmed}, wide)
	if err != nil || len(all) == 0 {
		return
	}
	w.decide(pick(w.dice, all...).ID)
}

// decide has an operator decide about an operation that is unconfirmed.
func (w *world) decide(id pawl.ID) {
	op, ok := w.operation(id)
	if !ok || op.State != pawl.Unconfirmed {
		return
	}
	decision, task, ok := w.truth(op)
	if !ok {
		return
	}
	c := ledger.ResolveOperation{
		Tenant: op.Tenant, Operation: op.ID, Up: w.set[op.Upstream].Policy(), Decision: decision, Task: task, Note: "looked at it",
	}
	c.Header.Actor = "operator"
	w.person("resolve an operation", func(n *node) {
		w.trace("an operator decides operation %s: %s %s", op.ID.Suffix(), decision, task)
		_, _ = n.Do(noLimit, c)
	})
}

// truth is what an operator finds out at the provider about an unconfirmed
// operation; false where nothing is certain yet, since a create may be on its
// way. Now and then the operator errs in what the ledger can notice.
func (w *world) truth(op ledger.Operation) (decision, task string, certain bool) {
	p := w.providerOf(op.Upstream)
	if w.hit(WrongDecision, 250) {
		return pawl.DecideCreated, w.taskOfAnother(op), true
	}
	b := p.orderOf(op.ID.Suffix())
	switch {
	case len(b.tasks) > 0 && w.percent(70):
		return pawl.DecideCreated, b.tasks[0].id, true
	case len(b.tasks) > 0:
		return pawl.DecideFailed, "", true
	case b.flying > 0 || w.now < w.books.claimed[op.ID].Add(time.Minute):
		return "", "", false
	}
	return pick(w.dice, pawl.DecideNotCreated, pawl.DecideNotCreated, pawl.DecideFailed), "", true
}

// taskOfAnother is a task that the ledger has given to another operation, or
// none.
func (w *world) taskOfAnother(op ledger.Operation) string {
	all, err := w.driver.Operations(noLimit, store.OperationFilter{Upstream: op.Upstream}, wide)
	if err != nil || w.percent(30) {
		return ""
	}
	for _, other := range all {
		if other.ID != op.ID && other.Task != "" {
			return other.Task
		}
	}
	return ""
}

func (w *world) providerOf(name string) *provider {
	for _, p := range w.providers {
		if p.name == name {
			return p
		}
	}
	panic("simulate: no provider " + name)
}
