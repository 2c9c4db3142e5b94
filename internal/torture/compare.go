package torture

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
)

// compare ends the nodes, checks the ledger that they leave behind, and holds
// all books against each other.
func (r *run) compare(ctx context.Context, at rest) (Report, error) {
	out := newReport(r)
	if err := r.cluster.stop(); err != nil {
		return out, err
	}
	if err := r.check(ctx, &out); err != nil {
		return out, err
	}
	r.ends(at, &out)
	r.creates(at, &out)
	r.money(at, &out)
	r.callbacks(at, &out)
	r.received(at, &out)
	r.answered(at, &out)
	return out, r.complaints(ctx, &out)
}

// check runs the ledger's own check over what the nodes leave behind.
func (r *run) check(ctx context.Context, out *Report) error {
	reader, err := server.OpenReadOnly(ctx, r.cluster.ledger)
	if err != nil {
		return err
	}
	defer reader.Close()
	_, err = store.Check(ctx, reader, func(v ledger.Violation) error {
		out.wrong(v.Invariant(), "ledger check: %s", v)
		return nil
	}, nil)
	return err
}

// ends: each operation ended as the provider ended it, or nobody can know and
// it is held as unconfirmed.
func (r *run) ends(at rest, out *Report) {
	for _, what := range at.open {
		out.wrong(1, "not at rest after %s: %s", r.o.Patience, what)
	}
	held := 0
	for n, id := range r.load.answered {
		op, ok := at.operations[id]
		script, _ := r.plan.Script(n)
		switch {
		case !ok: // That is for the sixth.
		case op.State == pawl.Unconfirmed:
			held++
		case op.State.Terminal() && op.State != script.Final:
			out.wrong(1, "operation %d (%s) is %s, and the provider says %s", n, id, op.State, script.Final)
		}
		out.States[op.State.String()]++
	}
	out.found(1, "%d operations ended as the provider says, %d cannot be known and are held", len(r.load.answered)-held, held)
}

// creates: at most one create that may have made a task where creates are not
// idempotent, one key an operation elsewhere, and never two tasks.
func (r *run) creates(at rest, out *Report) {
	calls, tasks := 0, 0
	for _, op := range at.provider.Operations {
		script, _ := r.plan.Script(op.N)
		keys, unsafe := make(map[string]bool), 0
		for _, c := range op.Creates {
			calls++
			keys[c.ClientRef] = true
			if c.Status == 0 || c.Status/100 == 2 || c.Status >= 500 {
				unsafe++
			}
		}
		tasks += len(op.Tasks)
		switch {
		case len(op.Tasks) > 1:
			out.wrong(2, "operation %d has %d tasks at the provider", op.N, len(op.Tasks))
		case script.Dialect.Idempotent() && len(keys) > 1:
			out.wrong(2, "operation %d was created under %d keys", op.N, len(keys))
		case !script.Dialect.Idempotent() && unsafe > 1:
			out.wrong(2, "operation %d was created %d times at an upstream that takes no repeats: %+v", op.N, unsafe, op.Creates)
		}
	}
	if at.provider.Unauthorized > 0 {
		out.wrong(2, "%d calls were unauthorized", at.provider.Unauthorized)
	}
	out.found(2, "%d creates made %d tasks", calls, tasks)
}

// money: every charge is the provider's figure, and the account's sums are
// those of its operations.
func (r *run) money(at rest, out *Report) {
	var charged, reserved pawl.Amount
	for _, op := range at.operations {
		switch {
		case op.Cost == nil:
			out.wrong(3, "%s has no price", op.ID)
		case op.State.Terminal():
			charged += op.Cost.Amount
		default:
			reserved += op.Cost.Amount
		}
	}
	for n, id := range r.load.answered {
		script, _ := r.plan.Script(n)
		if op := at.operations[id]; op.State.Terminal() && op.Cost.Amount != script.Cost {
			out.wrong(3, "operation %d (%s) is charged %s, and the provider says %s", n, id, op.Cost.Amount, script.Cost)
		}
	}
	balance := pawl.Amount(credit)*pawl.AmountScale - charged
	if a := at.account; a.Balance != balance || a.Reserved != reserved || a.Available != balance-reserved {
		out.wrong(3, "the account has a balance of %s, %s reserved, %s available; its operations leave %s, %s, %s",
			a.Balance, a.Reserved, a.Available, balance, reserved, balance-reserved)
	}
	out.found(3, "%s %s charged, %s held", charged, currency, reserved)
}

// callbacks: no event is in the ledger twice, and each that was answered 2xx is
// there.
func (r *run) callbacks(at rest, out *Report) {
	type key struct{ task, event string }
	stored := make(map[key]int)
	for _, e := range at.callbacks {
		k := key{e.TaskID, e.ExternalID}
		if e.Verdict == pawl.Applied.String() {
			if stored[k]++; stored[k] > 1 {
				out.wrong(4, "event %s of task %s was applied %d times", e.ExternalID, e.TaskID, stored[k])
			}
		} else {
			stored[k] += 0
		}
	}
	taken := 0
	for _, op := range at.provider.Operations {
		for _, a := range op.Callbacks {
			if a.Status/100 != 2 || !a.Fault.Honest() {
				continue
			}
			taken++
			if _, ok := stored[key{a.Task, a.Event}]; !ok {
				out.wrong(6, "event %s of task %s was answered %d and is not in the ledger", a.Event, a.Task, a.Status)
			}
		}
	}
	out.found(4, "%d inbound events in the ledger", len(at.callbacks))
	out.found(6, "%d callbacks answered 2xx", taken)
}

// received: the receiver has every version of every operation, each event with
// the same bytes, in a sequence without gaps, and whatever the ledger calls
// delivered.
func (r *run) received(at rest, out *Report) {
	for _, v := range at.receiver.Violations {
		out.wrong(5, "the receiver complains: %+v", v)
	}
	for reason, n := range at.receiver.Refused {
		out.wrong(5, "the receiver refused %d deliveries: %s", n, reason)
	}
	versions, sequences := make(map[string]map[int64]bool), make(map[int64]bool)
	for _, op := range at.receiver.Operations {
		versions[op.ID] = make(map[int64]bool)
		for _, e := range op.Seen {
			versions[op.ID][e.Version], sequences[e.Sequence] = true, true
		}
	}
	for id, op := range at.operations {
		for v := int64(2); v <= op.Version; v++ {
			if !versions[id][v] {
				out.wrong(5, "version %d of %s did not reach the receiver", v, id)
			}
		}
	}
	for i := int64(1); i <= int64(len(sequences)); i++ {
		if !sequences[i] {
			out.wrong(5, "no event with sequence %d reached the receiver", i)
		}
	}
	attempts, has := 0, make(map[string]bool)
	for _, e := range at.receiver.Events {
		attempts += e.Count
		has[e.Event] = true
	}
	for _, d := range at.deliveries {
		if d.State == "delivered" && !has[d.EventID] {
			out.wrong(5, "event %s is delivered, and the receiver does not have it", d.EventID)
		}
		if d.State == "dead" || d.State == "skipped" {
			out.wrong(5, "delivery %s is %s: %s", d.ID, d.State, d.Reason)
		}
	}
	out.found(5, "%d events reached the receiver in %d attempts, verified", len(has), attempts)
}

// answered: what was answered 2xx is there.
func (r *run) answered(at rest, out *Report) {
	for _, refused := range r.load.refused {
		out.wrong(6, "refused: %s", refused)
	}
	for n, id := range r.load.answered {
		if _, ok := at.operations[id]; !ok {
			out.wrong(6, "operation %d (%q) was answered 2xx and is missing", n, id)
		}
	}
	if extra := len(at.operations) - r.plan.Len(); extra > 0 {
		out.wrong(6, "%d operations more than were submitted", extra)
	}
	out.found(6, "%d submissions answered 2xx", len(r.load.answered))
}

// complaints are what no fault excuses, whatever the invariants say.
func (r *run) complaints(ctx context.Context, out *Report) error {
	for _, n := range r.cluster.nodes {
		lines, err := n.complaints()
		if err != nil {
			return err
		}
		out.Complaints = append(out.Complaints, lines...)
	}
	if r.cluster.database == nil {
		return nil
	}
	n, err := r.cluster.database.deadlocks(ctx)
	if n > 0 {
		out.Complaints = append(out.Complaints, fmt.Sprintf("the database broke %d deadlocks", n))
	}
	return err
}
