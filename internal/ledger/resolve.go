package ledger

import "github.com/pawlhq/pawl"

// ResolveOperation is an operator's decision about an unconfirmed operation
// (7-rules R8).
type ResolveOperation struct {
	Header
	Tenant    string
	Operation pawl.ID
	Up        Upstream
	Decision  string
	Task      string
	Note      string
}

// Head is the command's header.
func (c ResolveOperation) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ResolveOperation) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	if c.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
}

// Decide carries the decision out and answers with the operation.
func (c ResolveOperation) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || c.Tenant != "" && op.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if op.State != pawl.Unconfirmed {
		return dropped(pawl.Conflicting, "not_unconfirmed", "only an unconfirmed operation is decided so; this one is "+op.State.String())
	}
	d.closeOpen(&op, pawl.ReviewUnconfirmed, c.Decision)
	if out := c.decide(d, &op); out != nil {
		return *out
	}
	d.note(op, History{Kind: ResolvedLine, Reason: c.Decision, Detail: c.Note, Version: op.Version})
	d.saveDue(op)
	d.audit(op.Tenant, "operation.resolve", op.ID.Text(pawl.PrefixOperation), c.Decision)
	return done(c.Decision, op)
}

func (c ResolveOperation) decide(d *Draft, op *Operation) *Outcome {
	switch c.Decision {
	case pawl.DecideCreated:
		if c.Task == "" {
			out := dropped(pawl.Invalid, "task_id_missing", `"created" needs the "task_id" that the provider gave`)
			return &out
		}
		renewDeadline(op, d.Now)
		if d.attach(c.Up, op, c.Task, "") != attached {
			out := dropped(pawl.Conflicting, "task_of_another_operation", "that task belongs to another operation")
			return &out
		}
	case pawl.DecideNotCreated:
		op.State, op.MayExist, op.InFlight = pawl.Pending, false, false
		op.Creates, op.FirstCreateAt, op.DueAt = 0, 0, d.Now
		renewDeadline(op, d.Now)
		d.emit(op, pawl.TypeCorrected)
	case pawl.DecideFailed:
		d.fail(c.Up, op, pawl.FailUpstream, "", "given up by an operator")
	default:
		out := dropped(pawl.Invalid, "unknown_decision", `the decision must be "created", "not_created" or "failed"`)
		return &out
	}
	return nil
}

// renewDeadline gives an operation that a person lets go on as long as it had
// at first, if its deadline has passed meanwhile.
func renewDeadline(op *Operation, now pawl.Time) {
	if op.Deadline.IsSet() && op.Deadline <= now {
		op.Deadline = now.Add(op.Deadline.Sub(op.CreatedAt))
	}
}

// ResolveReview closes a review with a decision of its reason's row in the
// table of reviews, and does what the decision says (7-rules §6).
type ResolveReview struct {
	Header
	Tenant string
	Review pawl.ID
	// Operation, Event, Delivery and Endpoint are the review's own, resolved
	// beforehand: they never change.
	Operation, Event, Delivery, Endpoint pawl.ID
	Source                               string
	Up                                   Upstream
	Decision, Task, Note                 string
}

// Head is the command's header.
func (c ResolveReview) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ResolveReview) Keys(k *Keys) {
	k.Reviews = add(k.Reviews, c.Review)
	k.Operations = addSet(k.Operations, c.Operation)
	k.Events = addSet(k.Events, c.Event)
	k.Deliveries = addSet(k.Deliveries, c.Delivery)
	k.Endpoints = addSet(k.Endpoints, c.Endpoint)
	if c.Source != "" {
		k.Sources = add(k.Sources, c.Source)
	}
	if c.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
}

func addSet(ids []pawl.ID, id pawl.ID) []pawl.ID {
	if id.IsZero() {
		return ids
	}
	return add(ids, id)
}

// Decide carries the decision out and answers with the [Review].
func (c ResolveReview) Decide(d *Draft) Outcome {
	r, ok := d.Reviews.Get(c.Review)
	if !ok || c.Tenant != "" && r.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such review")
	}
	if r.ClosedAt != 0 {
		return dropped(pawl.Conflicting, "already_decided", "this review was decided already: "+r.Decision)
	}
	if !r.Reason.Allows(c.Decision) {
		return dropped(pawl.Invalid, "unknown_decision", "that is no decision of a review of reason "+r.Reason.String())
	}
	d.audit(r.Tenant, "review.resolve", r.ID.Text(pawl.PrefixReview), c.Decision)
	if r.Operation.IsZero() {
		return c.loose(d, r)
	}
	op, _ := d.Operations.Get(r.Operation)
	if r.Reason == pawl.ReviewUnconfirmed && op.State == pawl.Unconfirmed {
		return c.unconfirmed(d, r, op)
	}
	d.closeReview(r, &op, c.Decision, c.Note)
	c.carryOut(d, &op)
	d.saveDue(op)
	r, _ = d.Reviews.Get(r.ID)
	return done(c.Decision, r)
}

// carryOut does what a decision about an operation says. What happened since
// the review was opened may have left nothing to do.
func (c ResolveReview) carryOut(d *Draft, op *Operation) {
	switch c.Decision {
	case pawl.DecideRead:
		if !op.State.Terminal() || !op.Settled {
			d.readNow(op)
		}
	case pawl.DecideExpired:
		if !op.State.Terminal() {
			d.end(c.Up, op, pawl.Expired)
		}
	case pawl.DecideCharge:
		d.settleByHand(c.Up, op, op.Reserved)
	case pawl.DecideRelease:
		d.settleByHand(c.Up, op, 0)
	}
}

func (c ResolveReview) unconfirmed(d *Draft, r Review, op Operation) Outcome {
	out := ResolveOperation{Header: c.Header, Operation: op.ID, Up: c.Up, Decision: c.Decision, Task: c.Task, Note: c.Note}.Decide(d)
	if out.Err == nil {
		out.Value, _ = d.Reviews.Get(r.ID)
	}
	return out
}

// loose carries out the decision of a review that is about no operation.
func (c ResolveReview) loose(d *Draft, r Review) Outcome {
	switch r.Reason {
	case pawl.ReviewUnknownType:
		src, _ := d.Sources.Get(r.Source)
		src.UnknownType = pawl.ID{}
		d.Sources.Put(r.Source, src)
	case pawl.ReviewOrphan:
		c.discardOrphan(d, r)
	case pawl.ReviewDeadLetter:
		ep, _ := d.Endpoints.Get(r.Endpoint)
		ep.DeadLetter = pawl.ID{}
		d.Endpoints.Put(ep.ID, ep)
		if row, ok := d.Deliveries.Get(r.Delivery); ok && c.Decision == pawl.DecideRetry && row.State == pawl.DeliveryDead {
			d.replay(&row)
		}
	}
	d.closeReview(r, nil, c.Decision, c.Note)
	r, _ = d.Reviews.Get(r.ID)
	return done(c.Decision, r)
}

// discardOrphan stops waiting for an event's task; the event stays stored.
func (c ResolveReview) discardOrphan(d *Draft, r Review) {
	e, ok := d.Events.Get(r.Event)
	if !ok || !e.Parked {
		return
	}
	e.Parked, e.Reason, e.Snapshot = false, "discarded", ""
	d.Events.Put(e.ID, e)
	src, _ := d.Sources.Get(e.Source)
	src.Name = e.Source
	src.Parked--
	d.Sources.Put(src.Name, src)
}
