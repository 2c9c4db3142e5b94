package ledger

import "github.com/pawlhq/pawl"

func (c Submit) correlation() CorrelationID { return CorrelationID{c.Tenant, c.CorrelationID} }

// correlated answers for an application's own id that an unfinished operation
// has: two requests under two idempotency keys are still one job, and the new
// key stands for it too (1-product A8). As with idempotency keys, a sibling API
// key is refused and told nothing of the operation (1-product A4).
func (c Submit) correlated(d *Draft) (Outcome, bool) {
	if c.CorrelationID == "" {
		return Outcome{}, false
	}
	claim, ok := d.Correlations.Get(c.correlation())
	if !ok {
		return Outcome{}, false
	}
	op, ok := d.Operations.Get(claim.Operation)
	switch {
	case !ok || op.State.Terminal():
		return Outcome{}, false
	case claim.APIKey != c.APIKey:
		return dropped(pawl.Conflicting, "correlation_id_in_use", "an unfinished operation of another API key of this tenant has this correlation_id; wait for its end or choose another"), true
	case claim.Work != c.work():
		out := dropped(pawl.Conflicting, "correlation_id_in_use", "an unfinished operation that was asked for something else has this correlation_id; wait for its end or choose another")
		out.Err.Operation = op.ID
		return out, true
	}
	c.takeKey(d, op.ID)
	return done("correlated", Submitted{op, true}), true
}

// takeCorrelation makes the application's id stand for a new operation; what it
// stood for before has ended.
func (c Submit) takeCorrelation(d *Draft, op pawl.ID) {
	if c.CorrelationID != "" {
		d.Correlations.Put(c.correlation(), Correlation{ID: c.correlation(), APIKey: c.APIKey, Operation: op, Work: c.work()})
	}
}
