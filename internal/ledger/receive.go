package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// ReceiveEvent takes one verified event: lines 5 to 12 of 7-rules §1. What
// could not be verified never becomes a command.
type ReceiveEvent struct {
	Header
	Up Upstream
	// Token is the operation whose callback address the event came to, zero
	// for none.
	Token pawl.ID
	// Event is the key within the task, Type the sender's type.
	Event string
	Type  string
	Obs   Observation
	// Preset is the verdict of an event that is verified but unusable:
	// Rejected, UnknownState or UnknownType, with Reason; zero otherwise.
	Preset pawl.Verdict
	Reason string
	// Body and Headers are what is kept of the request; Digest is of the body.
	Body, Headers string
	Digest        Digest
	// Traceparent is the trace context of the request, empty for none.
	Traceparent string

	// again is the stored event that is judged anew, nil at its receipt.
	again *Event
}

// Received is what [ReceiveEvent] answers with.
type Received struct {
	Verdict   pawl.Verdict
	Reason    string
	Event     pawl.ID
	Operation pawl.ID
	// Submission is the trace context that the operation was submitted in.
	Submission string
}

// Head is the command's header.
func (c ReceiveEvent) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c ReceiveEvent) Size() int { return len(c.Body) + len(c.Headers) }

func (c ReceiveEvent) keyID() EventKeyID { return EventKeyID{c.Up.Name, c.Obs.Task, c.Event} }

func (c ReceiveEvent) taskID() TaskID { return TaskID{c.Up.Name, c.Obs.Task} }

// Keys names the rows the command needs.
func (c ReceiveEvent) Keys(k *Keys) {
	if !c.Token.IsZero() {
		k.Operations = add(k.Operations, c.Token)
	}
	if c.Obs.Task != "" {
		k.Tasks = add(k.Tasks, c.taskID())
	}
	if c.Preset == 0 {
		k.EventKeys = add(k.EventKeys, c.keyID())
	}
	if c.Preset == pawl.UnknownType {
		k.Sources = add(k.Sources, c.Up.Name)
	}
	if c.Up.Generic && c.Up.Tenant != "" && c.Preset == 0 {
		k.EndpointSets = add(k.EndpointSets, c.Up.Tenant)
	}
	if c.Preset == pawl.UnknownType {
		k.UnknownTypes = add(k.UnknownTypes, UnknownTypesID{c.Up.Name, c.Up.Tenant})
	}
}

// Alone reports whether the event names no end of its operation: one that only
// tells how work goes on moves no money, and what is due only later.
func (c ReceiveEvent) Alone() bool {
	return c.Preset == 0 && !c.Up.Generic && !c.Up.Confirm && !c.Obs.State.Terminal()
}

// Decide ends the event with one verdict and answers with [Received].
func (c ReceiveEvent) Decide(d *Draft) Outcome {
	op, known, refusal := c.operation(d)
	if refusal != nil {
		return *refusal
	}
	if known && op.ErasedAt.IsSet() {
		return c.erased(d, op)
	}
	if c.Preset != 0 {
		return c.unusable(d, op, c.Preset, c.Reason)
	}
	if reason := c.contradiction(d, op); reason != "" {
		return c.unusable(d, op, pawl.Rejected, reason)
	}
	if claim, taken := d.EventKeys.Get(c.keyID()); taken && !c.holds(claim) {
		if c.Up.Generic && c.again == nil {
			return c.repeatGeneric(d, claim)
		}
		return c.repeat(d, claim, op)
	}
	if c.Up.Generic {
		return c.handOver(d)
	}
	if !known {
		return c.orphan(d)
	}
	e := c.event(d)
	if op.Task == "" {
		if how := d.attach(c.Up, &op, c.Obs.Task, ""); how != attached {
			return c.unusable(d, op, pawl.Rejected, "task_mismatch")
		}
	}
	if c.Up.mustConfirm(op, c.Obs) {
		return c.confirm(d, e, op)
	}
	up, o := c.Up.restrained(op, c.Obs)
	j := d.observe(up, &op, o, e.ID)
	return c.record(d, e, op, j)
}

// holds reports whether a key is the event's own: it is judged anew.
func (c ReceiveEvent) holds(claim EventKey) bool { return c.again != nil && claim.Event == c.again.ID }

// operation finds the operation by token, else by task. A token whose
// operation is another source's is unknown.
func (c ReceiveEvent) operation(d *Draft) (op Operation, known bool, refusal *Outcome) {
	if !c.Token.IsZero() {
		op, known = d.Operations.Get(c.Token)
		if !known || op.Upstream != c.Up.Name {
			out := dropped(pawl.NotFound, "unknown_token", "no such callback address")
			return op, false, &out
		}
		return op, true, nil
	}
	if c.Obs.Task == "" {
		return op, false, nil
	}
	if claim, ok := d.Tasks.Get(c.taskID()); ok && !claim.Operation.IsZero() {
		op, known = d.Operations.Get(claim.Operation)
	}
	return op, known, nil
}

// contradiction is line 5: the body names another task than the token does, or
// none.
func (c ReceiveEvent) contradiction(d *Draft, op Operation) string {
	if c.Up.Generic {
		return ""
	}
	if c.Obs.Task == "" {
		return "missing_task"
	}
	if c.Token.IsZero() {
		return ""
	}
	if op.Task != "" && op.Task != c.Obs.Task {
		return "task_mismatch"
	}
	if claim, ok := d.Tasks.Get(c.taskID()); ok && !claim.Operation.IsZero() && claim.Operation != op.ID {
		return "task_mismatch"
	}
	return ""
}

// event is the row to be stored: a new one, or the stored one as it reads now.
func (c ReceiveEvent) event(d *Draft) Event {
	e := Event{ID: d.NewID(), Direction: Inbound, At: d.Now, Source: c.Up.Name, Digest: c.Digest, Headers: c.Headers, Tenant: c.Up.Tenant, Traceparent: c.Traceparent}
	if c.again != nil {
		e = *c.again
	}
	e.Reads = c.Up.Generic && c.Up.Reads
	e.Type, e.Task, e.ExternalID, e.Word = c.Type, c.Obs.Task, c.Event, c.Obs.Word
	return e
}

// record stores the event with its verdict and takes its key, in the same
// change that it made.
func (c ReceiveEvent) record(d *Draft, e Event, op Operation, j judgment) Outcome {
	e.Operation, e.Tenant = op.ID, op.Tenant
	op.Kept |= KeptCallbacks
	c.store(d, e, j.verdict, j.reason)
	c.takeKey(d, e)
	d.note(op, History{Kind: CallbackLine, Verdict: j.verdict, Reason: c.line(j.reason), Event: e.ID, Version: op.Version})
	d.saveDue(op)
	return c.answer(e, op, j.verdict, j.reason)
}

func (c ReceiveEvent) takeKey(d *Draft, e Event) {
	d.EventKeys.Put(c.keyID(), EventKey{ID: c.keyID(), Event: e.ID, Digest: c.Digest, Word: c.word()})
}

// line is the reason that the timeline shows.
func (c ReceiveEvent) line(reason string) string {
	if c.again != nil {
		return "reprocessed: " + reason
	}
	return reason
}

// store puts the event with its verdict: the first one, or the latest beside
// it.
func (c ReceiveEvent) store(d *Draft, e Event, v pawl.Verdict, reason string) {
	if c.again != nil {
		c.storeAgain(d, e, v, reason)
		return
	}
	e.Verdict, e.Reason = v, reason
	if c.Up.Generic {
		e.place()
	}
	d.Events.Put(e.ID, e)
	d.keep(e.ID, BodyPayload, c.Body)
}

func (c ReceiveEvent) answer(e Event, op Operation, v pawl.Verdict, reason string) Outcome {
	return done(reason, Received{v, reason, e.ID, op.ID, op.Traceparent})
}

// unusable stores a verified event that changes nothing and leaves its key
// free, so that a repeat is judged anew (7-rules §2).
func (c ReceiveEvent) unusable(d *Draft, op Operation, v pawl.Verdict, reason string) Outcome {
	d.discard()
	e := c.event(d)
	if !op.ID.IsZero() {
		e.Operation, e.Tenant = op.ID, op.Tenant
		kept, _ := d.Operations.Get(op.ID)
		kept.Kept |= KeptCallbacks
		d.Operations.Put(op.ID, kept)
		if c.alien(d, op) {
			e.Tenant = ""
		}
		d.note(op, History{Kind: CallbackLine, Verdict: v, Reason: c.line(reason), Event: e.ID, Version: op.Version})
	}
	if v == pawl.UnknownType {
		c.reviewType(d, e)
	}
	c.store(d, e, v, reason)
	return c.answer(e, op, v, reason)
}

// alien reports whether an event that came to the address of one operation is
// about the task of another tenant's: then its body is that tenant's, and the
// event is shown to neither.
func (c ReceiveEvent) alien(d *Draft, op Operation) bool {
	if c.Obs.Task == "" {
		return false
	}
	claim, ok := d.Tasks.Get(c.taskID())
	if !ok || claim.Operation.IsZero() || claim.Operation == op.ID {
		return false
	}
	of, ok := d.Operations.Get(claim.Operation)
	return !ok || of.Tenant != op.Tenant
}

// repeat is line 6. A repeat of a parked event that now has a token attaches.
func (c ReceiveEvent) repeat(d *Draft, claim EventKey, op Operation) Outcome {
	if c.again != nil {
		e := c.event(d)
		c.store(d, e, pawl.Duplicate, "repeat")
		return c.answer(e, op, pawl.Duplicate, "repeat")
	}
	claim.Repeats++
	if !op.ID.IsZero() && !claim.Differs && claim.Digest != c.Digest {
		d.note(op, History{Kind: CallbackLine, Verdict: pawl.Duplicate, Reason: "body_differs", Event: claim.Event, Version: op.Version})
	}
	claim.Differs = claim.Differs || claim.Digest != c.Digest
	d.EventKeys.Put(claim.ID, claim)
	if !op.ID.IsZero() && op.Task == "" && d.attach(c.Up, &op, c.Obs.Task, "") == attached {
		// The first one may wait no more: then this line alone tells where the
		// task came from.
		d.note(op, History{Kind: CallbackLine, Verdict: pawl.Duplicate, Reason: "attached", Event: claim.Event, Version: op.Version})
	}
	if !op.ID.IsZero() {
		if claim.Differs && claim.Word != c.Obs.Word {
			d.openReview(&op, pawl.ReviewBodyDiffers, claim.Event, c.Up.Owner, "first "+claim.Word+", then "+c.Obs.Word)
		}
		d.saveDue(op)
	}
	reason := "repeat"
	if claim.Digest != c.Digest {
		reason = "body_differs"
	}
	return done(reason, Received{pawl.Duplicate, reason, claim.Event, op.ID, op.Traceparent})
}

// orphan is line 7: verified, and no operation is known for its task yet.
func (c ReceiveEvent) orphan(d *Draft) Outcome {
	if !c.Up.ParkOrphans {
		return c.unusable(d, Operation{}, pawl.Rejected, "unknown_task")
	}
	waits := c.again != nil && c.again.Parked
	if !waits && !c.discarded() {
		src, _ := d.Sources.Get(c.Up.Name)
		src.Name = c.Up.Name
		if src.Parked >= c.Up.OrphanLimit {
			return dropped(pawl.Unavailable, "too_many_orphans", "too many events of unknown tasks are waiting; send it again later")
		}
		src.Parked++
		d.Sources.Put(src.Name, src)
	}
	e := c.event(d)
	if !c.discarded() {
		e.Parked, e.Snapshot = true, park(c.Obs)
	}
	// Times of one task's parked events only rise, so that they are judged in
	// the order received even if they came at one moment.
	claim, _ := d.Tasks.Get(c.taskID())
	if c.again == nil {
		e.At = max(d.Now, claim.ClaimedAt+1)
	}
	d.Tasks.Put(c.taskID(), Task{ID: c.taskID(), ClaimedAt: max(claim.ClaimedAt, e.At)})
	c.store(d, e, pawl.Orphan, "unknown_task")
	c.takeKey(d, e)
	return c.answer(e, Operation{}, pawl.Orphan, "unknown_task")
}

// OrphanOverdue opens the review of an event that has been parked for longer
// than its source's grace time (1-product C5).
type OrphanOverdue struct {
	Header
	Event pawl.ID
	// Grace is that time, 0 for none. Who asks goes by the clock of its own machine.
	Grace time.Duration
	Owner string
}

// Head is the command's header.
func (c OrphanOverdue) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c OrphanOverdue) Keys(k *Keys) { k.Events = add(k.Events, c.Event) }

// Decide opens the review unless the event has been matched, has one, or may be
// matched still.
func (c OrphanOverdue) Decide(d *Draft) Outcome {
	e, ok := d.Events.Get(c.Event)
	if !ok || !e.Parked || !e.Review.IsZero() {
		return done("not_parked", nil)
	}
	if c.Grace > 0 && d.Now < e.At.Add(c.Grace) {
		return done("waiting", nil)
	}
	e.Review = d.openLoose(Review{Tenant: e.Tenant, Reason: pawl.ReviewOrphan, Event: e.ID, Source: e.Source, Owner: c.Owner})
	d.Events.Put(e.ID, e)
	return done("review", e.Review)
}
