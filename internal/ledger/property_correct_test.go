package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
	"pgregory.net/rapid"
)

func (l *life) cancelAny(r *rapid.T) {
	ids := l.opIDs()
	if len(ids) == 0 {
		r.Skip()
	}
	id := rapid.SampledFrom(ids).Draw(r, "operation")
	c := Cancel{Tenant: tenant, Operation: id, Up: l.upOf(l.ops[id].Upstream)}
	if rapid.Bool().Draw(r, "keyed") {
		c.Once = Once{APIKey: apiKey, KeyTenant: tenant, Key: rapid.SampledFrom([]string{"k0", "stop"}).Draw(r, "key"), Window: time.Hour}
	}
	l.do(c)
}

func (l *life) stopped(r *rapid.T, up Upstream, lease Lease) RecordCancel {
	c := RecordCancel{
		Up: up, Operation: lease.Operation.ID, Fence: lease.Fence, Observed: rapid.Bool().Draw(r, "observed"), Obs: l.observation(r),
		Outcome: CancelOutcome(rapid.IntRange(int(CancelTaken), int(CancelUnreachable)).Draw(r, "stopped")),
	}
	if rapid.IntRange(0, 3).Draw(r, "right task") > 0 {
		c.Obs.Task = lease.Operation.Task
	}
	return c
}

func (l *life) correctAny(r *rapid.T) {
	var ids []pawl.ID
	for _, id := range l.opIDs() {
		if l.ops[id].State.Terminal() {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		r.Skip()
	}
	id := rapid.SampledFrom(ids).Draw(r, "operation")
	to := rapid.SampledFrom([]pawl.State{pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired}).Draw(r, "to")
	l.do(ResolveOperation{
		Operation: id, Up: l.upOf(l.ops[id].Upstream), Decision: to.String(), From: l.ops[id].State, Note: "n",
		HasCharge: rapid.Bool().Draw(r, "charge"), Charge: pawl.Amount(rapid.Int64Range(0, 12).Draw(r, "amount")),
	})
}

// orphaned is the task of the event that a review of an orphan is about.
func (l *life) orphaned(rv Review) string {
	if rv.Reason != pawl.ReviewOrphan {
		return ""
	}
	return l.events[rv.Event].Task
}

func (l *life) target(r *rapid.T, rv Review) pawl.ID {
	ids := l.opIDs()
	if rv.Reason != pawl.ReviewOrphan || len(ids) == 0 {
		return pawl.ID{}
	}
	return rapid.SampledFrom(ids).Draw(r, "target")
}

// conserved walks over the journal as it was written: at no entry does a bucket
// of an account fall below zero, nothing comes out of nowhere, and no operation
// has ever cost more than its price (1-product F).
func (l *life) conserved(r *rapid.T) {
	type account = map[Bucket]pawl.Amount
	accounts, spent := map[pawl.ID]account{}, map[pawl.ID]pawl.Amount{}
	for i, e := range l.entries {
		if accounts[e.Account] == nil {
			accounts[e.Account] = account{}
		}
		a := accounts[e.Account]
		a[e.From] -= e.Amount
		a[e.To] += e.Amount
		for _, b := range []Bucket{Available, Reserving, Spent} {
			if a[b] < 0 {
				r.Fatalf("entry %d, a %s: %s is %s", i, e.Kind, b, a[b])
			}
		}
		if a[Funding]+a[Available]+a[Reserving]+a[Spent] != 0 {
			r.Fatalf("entry %d, a %s: the buckets do not add up", i, e.Kind)
		}
		if e.Operation.IsZero() {
			continue
		}
		spent[e.Operation] += e.into(Spent)
		if s := spent[e.Operation]; s < 0 || s > l.ops[e.Operation].Reserved {
			r.Fatalf("entry %d, a %s: the operation has cost %s", i, e.Kind, s)
		}
	}
	for id, a := range l.accounts {
		if sums := accounts[id]; a.available() != sums[Available] || a.Reserved != sums[Reserving] || a.Charged != sums[Spent] {
			r.Fatalf("account %+v, its journal says %v", a, sums)
		}
	}
}
