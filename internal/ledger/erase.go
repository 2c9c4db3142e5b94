package ledger

import "github.com/pawlhq/pawl"

// EraseOperation erases what an operation holds (1-product I8, 4-standards
// PR-05): from its commit on nothing of it is shown. What hangs on it follows in
// steps ([RemoveContent]). The ledger's facts stay: ids, states, versions, money.
type EraseOperation struct {
	Header
	// Tenant restricts whose operation it may be; "" does not.
	Tenant    string
	Operation pawl.ID
	// Whose is the operation's tenant and Correlation its application's own id of
	// it, resolved beforehand.
	Whose, Correlation string
	// Reason says why; it is kept in the audit.
	Reason string
}

// Head is the command's header.
func (c EraseOperation) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c EraseOperation) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	if c.Correlation != "" {
		k.Correlations = add(k.Correlations, CorrelationID{c.Whose, c.Correlation})
	}
}

// Erasable says why an operation cannot be erased yet, in a stable word; empty if
// it can.
func (op Operation) Erasable() string {
	if op.ErasedAt.IsSet() {
		return ""
	}
	return op.unrest()
}

// Decide marks the operation erased and answers with it. One that is not over
// yet is refused: somebody still works for it, or must decide.
func (c EraseOperation) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || c.Tenant != "" && op.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if op.ErasedAt.IsSet() {
		return done("repeat", op)
	}
	switch op.unrest() {
	case "unfinished":
		return dropped(pawl.Conflicting, "not_erasable", "the operation has not ended; cancel it, and erase it once it has ended")
	case "open_review":
		return dropped(pawl.Conflicting, "not_erasable", "a person must decide about the operation first: see its open reviews")
	case "unsettled":
		return dropped(pawl.Conflicting, "not_erasable", "the operation's final cost or its files are still to come; erase it once they have")
	}
	id := CorrelationID{op.Tenant, op.CorrelationID}
	if op.CorrelationID != "" {
		if claim, ok := d.Correlations.Get(id); ok && claim.Operation == op.ID {
			d.Correlations.Remove(id)
		}
	}
	d.drop(op.ID, InputPayload)
	d.drop(op.ID, MetadataPayload)
	d.drop(op.Result, ResultPayload)
	d.removeArtifacts(&op)
	op.CorrelationID, op.CallbackURL, op.Owner, op.ErrorMessage, op.ErrorWord, op.UpstreamRequestID, op.Traceparent = "", "", "", "", "", "", ""
	op.ErasedAt, op.Kept = d.Now, keptAll&^KeptInput
	d.Operations.Put(op.ID, op)
	d.audit(op.Tenant, "operation.erase", op.ID.Text(pawl.PrefixOperation), c.Reason)
	return done("erased", op)
}

// EraseTenant begins to erase all that a tenant has by now: its operations as
// each of them can be, and its events of no operation. Last ends that.
type EraseTenant struct {
	Header
	Tenant string
	Reason string
	// Last says that nothing is left of what was made before that moment.
	Last   bool
	Before pawl.Time
}

// Head is the command's header.
func (c EraseTenant) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c EraseTenant) Keys(k *Keys) { k.Tenants = add(k.Tenants, c.Tenant) }

// Decide begins or ends it and answers with the [Tenant].
func (c EraseTenant) Decide(d *Draft) Outcome {
	t, ok := d.Tenants.Get(c.Tenant)
	switch {
	case !ok:
		return dropped(pawl.NotFound, "not_found", "no such tenant")
	case c.Last && t.EraseBefore != c.Before:
		return done("repeat", t)
	case c.Last:
		t.EraseBefore = 0
		d.audit(t.Name, "tenant.erased", t.Name, "")
	default:
		t.EraseBefore = d.Now
		d.audit(t.Name, "tenant.erase", t.Name, c.Reason)
	}
	d.Tenants.Put(t.Name, t)
	return done("erasing", t)
}

// erased takes down that an event came for an operation that was erased: its key
// is taken as ever, and nothing that it holds is kept.
func (c ReceiveEvent) erased(d *Draft, op Operation) Outcome {
	if c.again != nil {
		return done("repeat", Received{Verdict: pawl.Duplicate, Reason: "repeat", Event: c.again.ID, Operation: op.ID})
	}
	c.Body, c.Headers = "", ""
	e := c.event(d)
	e.Operation, e.Tenant, e.RemovedAt = op.ID, op.Tenant, d.Now
	if c.Preset != 0 {
		c.store(d, e, c.Preset, c.Reason)
		return c.answer(e, op, c.Preset, c.Reason)
	}
	if claim, taken := d.EventKeys.Get(c.keyID()); taken {
		claim.Repeats++
		d.EventKeys.Put(claim.ID, claim)
		return c.answer(Event{ID: claim.Event}, op, pawl.Duplicate, "repeat")
	}
	c.takeKey(d, e)
	c.store(d, e, pawl.Stale, reasonErased)
	d.note(op, History{Kind: CallbackLine, Verdict: pawl.Stale, Reason: reasonErased, Event: e.ID, Version: op.Version})
	return c.answer(e, op, pawl.Stale, reasonErased)
}
