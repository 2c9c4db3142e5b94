package ledger

import (
	"strings"

	"github.com/pawlhq/pawl"
)

// ResolveReview closes a review with a decision of its reason's row in the
// table of reviews, and does what the decision says (7-rules §6).
type ResolveReview struct {
	Header
	Once
	Tenant string
	Review pawl.ID
	// Operation, Event, Delivery and Endpoint are the review's own, and EventTask
	// is the task that its event names; resolved beforehand: they never change.
	Operation, Event, Delivery, Endpoint pawl.ID
	Source, EventTask                    string
	Up                                   Upstream
	Decision, Task, Note                 string
	// Target is the operation that an orphan is attached to.
	Target pawl.ID
	// Whose is the review's tenant, resolved beforehand.
	Whose string
	// Begin only takes the key and notes who decided and why: what is decided
	// takes many commands, and the one of the end has Begun set.
	Begin, Begun bool
}

// Head is the command's header.
func (c ResolveReview) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ResolveReview) Keys(k *Keys) {
	c.needs(k)
	k.Reviews = add(k.Reviews, c.Review)
	k.Operations = addSet(addSet(k.Operations, c.Operation), c.Target)
	k.Events = addSet(k.Events, c.Event)
	k.Deliveries = addSet(k.Deliveries, c.Delivery)
	k.Endpoints = addSet(k.Endpoints, c.Endpoint)
	if c.Source != "" {
		k.Sources = add(k.Sources, c.Source)
	}
	if c.Source != "" && c.Operation.IsZero() {
		k.UnknownTypes = add(k.UnknownTypes, UnknownTypesID{c.Source, c.Whose})
	}
	if c.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
	if c.EventTask != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Source, c.EventTask})
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
	asked := ask(ForResolve, c.Review.String(), c.Decision, c.Task, c.Note, c.Target.String())
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value = r
		}
		return out
	}
	if r.ClosedAt != 0 {
		return dropped(pawl.Conflicting, "already_decided", "this review was decided already: "+r.Decision)
	}
	if !r.Reason.Allows(c.Decision) {
		return dropped(pawl.Invalid, "unknown_decision", "that is no decision of a review of reason "+r.Reason.String()+"; there are "+strings.Join(r.Reason.Rule().Decisions, ", "))
	}
	if !c.Begun {
		d.audit(r.Tenant, "review.resolve", r.ID.Text(pawl.PrefixReview), c.Decision)
	}
	if c.Begin {
		r.Note = c.Note
		d.Reviews.Put(r.ID, r)
		d.takeKey(c.Once, asked, r.ID)
		return done("begun", r)
	}
	about := c.operation
	if r.Operation.IsZero() {
		about = c.loose
	}
	if refusal := about(d, r); refusal != nil {
		return *refusal
	}
	d.takeKey(c.Once, asked, r.ID)
	r, _ = d.Reviews.Get(r.ID)
	return done(c.Decision, r)
}

// operation carries out the decision of a review that is about an operation.
func (c ResolveReview) operation(d *Draft, r Review) *Outcome {
	op, _ := d.Operations.Get(r.Operation)
	if r.Reason == pawl.ReviewUnconfirmed && op.State == pawl.Unconfirmed {
		decision := ResolveOperation{Operation: op.ID, Up: c.Up, Decision: c.Decision, Task: c.Task, Note: c.Note}
		if refusal := decision.decide(d, &op); refusal != nil {
			return refusal
		}
		r, _ = d.Reviews.Get(r.ID)
		r.Note = c.Note
		d.Reviews.Put(r.ID, r)
		d.saveDue(op)
		return nil
	}
	d.closeReview(r, &op, c.Decision, c.Note)
	if refusal := c.carryOut(d, r, &op); refusal != nil {
		return refusal
	}
	d.saveDue(op)
	return nil
}

// carryOut does what a decision about an operation says. What happened since
// the review was opened may have left nothing to do.
func (c ResolveReview) carryOut(d *Draft, r Review, op *Operation) *Outcome {
	switch {
	case r.Reason == pawl.ReviewRelease && c.Decision == pawl.DecideRelease:
		d.release(op, c.Note)
		return nil
	case r.Reason == pawl.ReviewCapture && c.Decision == pawl.DecideRetry:
		d.retryCaptures(op)
		return nil
	}
	switch c.Decision {
	case pawl.DecideRead:
		if r.Reason == pawl.ReviewUnknownState {
			// The same word asks again.
			op.UpstreamState = ""
		}
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
	case pawl.DecideAccept:
		return c.accept(d, r, op)
	}
	return nil
}

// accept corrects an operation to the end that its provider reported against
// the first one (7-rules R9).
func (c ResolveReview) accept(d *Draft, r Review, op *Operation) *Outcome {
	rep, ok := r.Report()
	if !ok || !op.State.Terminal() || rep.State == op.State {
		return nil
	}
	kept := pawl.ID{}
	if rep.HasResult {
		kept = r.ID
	}
	return d.correctTo(c.Up, op, rep, kept, correction{word: r.Reason.String(), note: c.Note, event: r.Event})
}

// loose carries out the decision of a review that is about no operation.
func (c ResolveReview) loose(d *Draft, r Review) *Outcome {
	d.closeReview(r, nil, c.Decision, c.Note)
	switch r.Reason {
	case pawl.ReviewUnknownType:
		row := d.unknownTypes(r.Source, r.Tenant)
		row.Review = pawl.ID{}
		if c.Decision == pawl.DecideReprocess && row.Events > 0 {
			row.Review = d.openLoose(Review{Tenant: r.Tenant, Reason: r.Reason, Event: r.Event, Source: r.Source, Owner: r.Owner, Detail: r.Detail})
		}
		d.UnknownTypes.Put(row.ID, row)
	case pawl.ReviewOrphan:
		if c.Decision == pawl.DecideAttach {
			return c.attachOrphan(d, r)
		}
		c.discardOrphan(d, r)
	case pawl.ReviewDeadLetter:
		ep, _ := d.Endpoints.Get(r.Endpoint)
		ep.DeadLetter = pawl.ID{}
		d.Endpoints.Put(ep.ID, ep)
		if row, ok := d.Deliveries.Get(r.Delivery); ok && c.Decision == pawl.DecideRetry && row.State == pawl.DeliveryDead {
			if out := (RetryDelivery{}).retry(d, row); out.Err != nil {
				return &out
			}
		}
		c.discardDelivery(d, pawl.DeliveryDead)
	case pawl.ReviewCompletionOverdue:
		if row, ok := d.Deliveries.Get(r.Delivery); ok && c.Decision == pawl.DecideRetry && row.unreported() {
			if out := (RetryDelivery{}).retry(d, row); out.Err != nil {
				return &out
			}
		}
		c.discardDelivery(d, pawl.DeliveryDelivered)
	}
	return nil
}

// discardDelivery marks that nothing will be done with the review's delivery, if
// that was decided and it is still in the state that the review is about.
func (c ResolveReview) discardDelivery(d *Draft, state pawl.DeliveryState) {
	if c.Decision != pawl.DecideDiscard {
		return
	}
	if row, ok := d.Deliveries.Get(c.Delivery); ok && row.State == state && (row.Inbound || row.unreported()) {
		row.Discarded, row.Review = true, pawl.ID{}
		d.putDelivery(row)
	}
}

// discardOrphan stops waiting for an event's task; the event stays stored.
func (c ResolveReview) discardOrphan(d *Draft, r Review) {
	e, ok := d.Events.Get(r.Event)
	if !ok || !e.Parked {
		return
	}
	e.Parked, e.Reason, e.Snapshot = false, discardedReason, ""
	d.Events.Put(e.ID, e)
	d.parked(e.Source, -1)
}

// attachOrphan gives the task of an event that nobody claimed to the operation
// that a person names; all events that wait for the task are judged.
func (c ResolveReview) attachOrphan(d *Draft, r Review) *Outcome {
	refuse := func(kind pawl.Kind, reason, message string) *Outcome {
		out := dropped(kind, reason, message)
		return &out
	}
	if c.Target.IsZero() {
		return refuse(pawl.Invalid, "operation_id_missing", `"attach" needs the "operation_id" of the operation that the task belongs to`)
	}
	e, _ := d.Events.Get(r.Event)
	op, ok := d.Operations.Get(c.Target)
	switch {
	case !ok || c.Tenant != "" && op.Tenant != c.Tenant || e.Tenant != "" && op.Tenant != e.Tenant:
		return refuse(pawl.NotFound, "not_found", "no such operation")
	case op.Upstream != e.Source:
		return refuse(pawl.Conflicting, "other_upstream", "the event came from "+e.Source+", and the operation is at "+op.Upstream)
	case op.Task != "":
		return refuse(pawl.Conflicting, "task_known", "the operation has a task already")
	case op.FormerCreates+op.Creates == 0:
		return refuse(pawl.Conflicting, "never_created", "no create was ever sent for this operation, so that the task cannot be its own")
	}
	renewDeadline(&op, d.Now)
	if d.attach(c.Up, &op, e.Task, "") != attached {
		return refuse(pawl.Conflicting, "task_of_another_operation", "that task belongs to another operation")
	}
	d.note(op, History{Kind: ResolvedLine, Reason: c.Decision, Detail: c.Note, Event: e.ID, Version: op.Version})
	d.audit(op.Tenant, "operation.resolve", op.ID.Text(pawl.PrefixOperation), c.Decision)
	d.saveDue(op)
	return nil
}
