package ledger

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl"
)

// LeaseDeliveries leases the oldest due deliveries of an endpoint and gives
// each that has none its place in the endpoint's stream (7-rules §3).
type LeaseDeliveries struct {
	Header
	Endpoint pawl.ID
	Limit    int
	Timeout  time.Duration
}

// Head is the command's header.
func (c LeaseDeliveries) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LeaseDeliveries) Keys(k *Keys) {
	k.Endpoints = add(k.Endpoints, c.Endpoint)
	k.Queues = add(k.Queues, DeliveryQueueID(c.Endpoint))
	k.DueDeliveries = add(k.DueDeliveries, Window{DeliveryQueueID(c.Endpoint), c.Limit})
}

// Decide leases what is due and answers with []Delivery.
func (c LeaseDeliveries) Decide(d *Draft) Outcome {
	ep, ok := d.Endpoints.Get(c.Endpoint)
	q := d.queue(DeliveryQueueID(c.Endpoint))
	if !ok || q.PausedUntil > d.Now && ep.DeletedAt == 0 {
		return done("paused", []Delivery(nil))
	}
	rows, next := d.dueDeliveries(Window{q.ID, c.Limit}, d.Now)
	d.needEvents(slices.DeleteFunc(slices.Clone(rows), func(row Delivery) bool {
		return ep.DeletedAt == 0 && !row.reported() && !row.awaited()
	}))
	leased := make([]Delivery, 0, len(rows))
	for _, row := range rows {
		if ep.DeletedAt != 0 {
			d.skip(row, "endpoint_deleted")
			continue
		}
		if row.reported() && !row.Replay || row.awaited() && d.overdue(ep, &row) {
			d.finish(row)
			continue
		}
		if row.Sequence == 0 {
			q.Sequence++
			row.Sequence = q.Sequence
		}
		row = d.handOut(row, c.Timeout)
		next = min(next, row.DueAt)
		leased = append(leased, row)
	}
	if q.NextDue = next; q != d.queue(q.ID) {
		d.Queues.Put(q.ID, q)
	}
	return done("leased", leased)
}

// skip ends a delivery that nobody will get. What was taken stays delivered: it
// is only sent once more no longer, nor asked for.
func (d *Draft) skip(row Delivery, reason string) {
	if row.State == pawl.DeliveryDelivered {
		row.DueAt, row.Leased, row.Replay, row.CompleteBy = pawl.Never, false, false, 0
		d.putDelivery(row)
		return
	}
	row.State, row.Reason, row.FinishedAt, row.DueAt, row.Leased = pawl.DeliverySkipped, reason, d.Now, pawl.Never, false
	d.putDelivery(row)
}

// RecordAttempt records one try of a delivery and decides what follows. A 2xx
// counts under any lease; a failure only under its own (7-rules §4).
type RecordAttempt struct {
	Header
	Delivery pawl.ID
	Endpoint pawl.ID
	// Event is that of a generic source, zero for others: its state may follow.
	Event      pawl.ID
	Fence      int64
	Policy     Policy
	At         pawl.Time
	Duration   time.Duration
	Status     int32
	Failure    AttemptFailure
	Error      string
	Excerpt    string
	RetryAfter time.Duration
	// Target and TargetDigest say where it went (see [Attempt]).
	Target, TargetDigest string
	// Body is what was sent, kept so that the next attempt repeats it.
	Body string
}

// Head is the command's header.
func (c RecordAttempt) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c RecordAttempt) Size() int { return len(c.Body) + len(c.Excerpt) }

// Keys names the rows the command needs.
func (c RecordAttempt) Keys(k *Keys) {
	k.Deliveries = add(k.Deliveries, c.Delivery)
	k.Endpoints = add(k.Endpoints, c.Endpoint)
	k.Events = addSet(k.Events, c.Event)
}

// Decide records the attempt and answers with the delivery.
func (c RecordAttempt) Decide(d *Draft) Outcome {
	row, ok := d.Deliveries.Get(c.Delivery)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such delivery")
	}
	if row.Reason == reasonErased {
		c.Body, c.Excerpt, c.Error = "", "", ""
	}
	mine := row.Lease == c.Fence && row.Leased
	verdict := c.Policy.judge(c.Status, c.Failure)
	if !mine && (verdict != delivered || row.State == pawl.DeliveryDelivered) {
		return done("old_lease", row)
	}
	row.Attempts++
	row.LastStatus, row.LastError = c.Status, c.Error
	d.attempts = append(d.attempts, Attempt{
		ID: d.NewID(), Delivery: row.ID, Number: row.Attempts, At: c.At, Duration: c.Duration, Status: c.Status,
		Error: c.Error, Excerpt: c.Excerpt, Replay: row.Replay, Actor: row.ReplayBy, Target: c.Target, TargetDigest: c.TargetDigest,
	})
	if mine {
		row.Leased, row.Replay, row.ReplayBy, row.Forced = false, false, "", false
		row.Tries++
	}
	reason := c.judged(d, &row, verdict)
	d.putDelivery(row)
	d.touch(DeliveryQueueID(row.Endpoint), row.DueAt)
	return done(reason, row)
}

func (c RecordAttempt) judged(d *Draft, row *Delivery, verdict sentence) string {
	if row.State == pawl.DeliveryDelivered || row.State == pawl.DeliverySkipped && verdict != delivered {
		row.DueAt = pawl.Never
		return "recorded"
	}
	ep, _ := d.Endpoints.Get(row.Endpoint)
	if row.reported() {
		// Whatever the answer was: the receiver has said that it is done.
		verdict = delivered
	}
	switch verdict {
	case delivered:
		row.State, row.Reason, row.FinishedAt, row.DueAt, row.Leased = pawl.DeliveryDelivered, "", d.Now, pawl.Never, false
		if ep.CompleteWithin > 0 && !row.reported() {
			row.CompleteBy = d.Now.Add(ep.CompleteWithin)
			row.DueAt = row.CompleteBy
			c.keepBody(d, row)
		}
		return "delivered"
	case again:
		at, ok := c.Policy.next(d.Now, max(row.FirstDueAt, ep.EnabledAt), row.Tries, c.RetryAfter, d.vary)
		if ok {
			row.State, row.DueAt = pawl.DeliveryPending, at
			c.keepBody(d, row)
			return "retried"
		}
		return c.dead(d, row, "attempts_exhausted")
	case deadAndGone:
		d.disable(row.Endpoint, "answered_410")
		return c.dead(d, row, "gone")
	default:
		reason := "refused_by_endpoint"
		if c.Failure == EgressRefused {
			reason = "egress_refused"
		}
		if c.Failure == Unsendable {
			reason = "unsendable"
		}
		return c.dead(d, row, reason)
	}
}

func (c RecordAttempt) keepBody(d *Draft, row *Delivery) {
	if !row.BodyKept && c.Body != "" {
		row.BodyKept = true
		d.keep(row.ID, SentPayload, c.Body)
	}
}

// dead gives the delivery up. One review per endpoint stands for its dead
// letters, so that a dead endpoint does not flood the queue of reviews.
func (c RecordAttempt) dead(d *Draft, row *Delivery, reason string) string {
	row.State, row.Reason, row.FinishedAt, row.DueAt = pawl.DeliveryDead, reason, d.Now, pawl.Never
	c.keepBody(d, row)
	ep, ok := d.Endpoints.Get(row.Endpoint)
	d.notifyDead(ep, *row)
	detail := reason
	if c.Failure == Unsendable && c.Error != "" {
		detail += ": " + c.Error
	}
	if ok && ep.DeadLetter.IsZero() && ep.DeletedAt == 0 {
		ep.DeadLetter = d.openLoose(Review{
			Tenant: ep.Tenant, Reason: pawl.ReviewDeadLetter, Endpoint: ep.ID, Delivery: row.ID, Event: row.Event,
			Owner: ep.Owner, Detail: detail,
		})
		d.Endpoints.Put(ep.ID, ep)
	}
	return "dead"
}

func (d *Draft) disable(id pawl.ID, reason string) {
	ep, ok := d.Endpoints.Get(id)
	if !ok || ep.Disabled {
		return
	}
	ep.Disabled, ep.DisabledReason, ep.UpdatedAt = true, reason, d.Now
	ep.Version++
	d.Endpoints.Put(id, ep)
	d.pauseDeliveries(ep)
	d.notifyDisabled(ep)
	d.audit(ep.Tenant, "endpoint.disabled", id.Text(pawl.PrefixEndpoint), reason)
}

// pauseDeliveries keeps an endpoint's queue in step with it: disabled, nothing
// is sent; enabled, it goes on from the oldest; deleted, what waits is skipped
// as it comes due (7-rules R36).
func (d *Draft) pauseDeliveries(ep Endpoint) {
	q := d.queue(DeliveryQueueID(ep.ID))
	q.PausedUntil, q.PauseReason = 0, ""
	if ep.Disabled && ep.DeletedAt == 0 {
		q.PausedUntil, q.PauseReason = pawl.Never, ep.DisabledReason
	}
	d.Queues.Put(q.ID, q)
}

// RetryDelivery sends a delivery again by hand: a dead one gets a fresh
// schedule, a delivered one is sent once more and stays delivered (7-rules
// R37).
type RetryDelivery struct {
	Header
	Once
	Tenant   string
	Delivery pawl.ID
	Endpoint pawl.ID
	// Force sends it once even while its endpoint is disabled.
	Force bool
}

// Head is the command's header.
func (c RetryDelivery) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RetryDelivery) Keys(k *Keys) {
	c.needs(k)
	k.Deliveries = add(k.Deliveries, c.Delivery)
	k.Endpoints = add(k.Endpoints, c.Endpoint)
}

// Decide makes the delivery due now and answers with it.
func (c RetryDelivery) Decide(d *Draft) Outcome {
	row, ok := d.Deliveries.Get(c.Delivery)
	if !ok || c.Tenant != "" && row.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such delivery")
	}
	asked := ask(ForDelivery, c.Delivery.String())
	if c.Force {
		asked = ask(ForDelivery, c.Delivery.String(), "force")
	}
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value = row
		}
		return out
	}
	out := c.retry(d, row)
	if out.Err == nil {
		d.takeKey(c.Once, asked, row.ID)
	}
	return out
}

func (c RetryDelivery) retry(d *Draft, row Delivery) Outcome {
	ep, _ := d.Endpoints.Get(row.Endpoint)
	if refusal := ep.refuses(c.Force); refusal != nil {
		return *refusal
	}
	forced := ep.Disabled
	if row.Leased {
		return done("under_way", row)
	}
	if row.State == pawl.DeliverySkipped {
		return dropped(pawl.Conflicting, "skipped", "the delivery was skipped and has no place in the endpoint's stream: "+row.Reason)
	}
	if forced && row.Sequence == 0 {
		return dropped(pawl.Conflicting, "never_sent", "the delivery was never sent, so that others come before it; enable the endpoint to send them in their order")
	}
	if row.Replay && row.Forced == forced && (row.Sequence == 0 || row.DueAt <= d.Now) {
		return done("due", row)
	}
	row.Forced = forced
	d.replay(&row)
	return done("due", row)
}

// refuses says why nothing is sent again to an endpoint, nil where it may be: the
// pause of a disabled one is passed by force alone.
func (ep Endpoint) refuses(force bool) *Outcome {
	var out Outcome
	switch {
	case ep.Feed():
		out = dropped(pawl.Conflicting, "endpoint_feed", "nothing is sent to an endpoint of kind feed: read the feed from a lower sequence")
	case ep.DeletedAt != 0 || ep.Disabled && !force:
		out = dropped(pawl.Conflicting, "endpoint_disabled", "the endpoint is disabled or deleted; enable it first, or send to a disabled one with force")
	default:
		return nil
	}
	return &out
}

// LeaseForced leases a delivery that is to be sent once past the pause of its
// disabled endpoint. Its place in the stream it has already.
type LeaseForced struct {
	Header
	Delivery pawl.ID
	Endpoint pawl.ID
	Timeout  time.Duration
}

// Head is the command's header.
func (c LeaseForced) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LeaseForced) Keys(k *Keys) {
	k.Deliveries = add(k.Deliveries, c.Delivery)
	k.Endpoints = add(k.Endpoints, c.Endpoint)
}

// Decide leases the delivery and answers with []Delivery, empty where there is
// nothing to be sent.
func (c LeaseForced) Decide(d *Draft) Outcome {
	row, ok := d.Deliveries.Get(c.Delivery)
	ep, known := d.Endpoints.Get(c.Endpoint)
	if !ok || !known || ep.DeletedAt != 0 || !row.Forced || row.DueAt > d.Now {
		return done("not_due", []Delivery(nil))
	}
	return done("leased", []Delivery{d.handOut(row, c.Timeout)})
}

// handOut leases a due delivery to whoever sends it now.
func (d *Draft) handOut(row Delivery, timeout time.Duration) Delivery {
	row.Lease++
	row.Leased, row.DueAt = true, d.Now.Add(timeout+LeaseMargin)
	if row.State == pawl.DeliveryPending {
		row.State = pawl.DeliveryDelivering
	}
	d.Deliveries.Put(row.ID, row)
	return row
}

func (d *Draft) replay(row *Delivery) {
	row.Replay, row.ReplayBy, row.Tries = true, d.Actor, 0
	if row.Sequence > 0 {
		// One without its place in the endpoint's stream waits for its turn.
		row.DueAt = d.Now
	}
	if row.State != pawl.DeliveryDelivered || row.unreported() {
		row.State, row.Reason, row.FinishedAt, row.FirstDueAt = pawl.DeliveryPending, "", 0, d.Now
	}
	d.askAnew(row, pawl.DecideRetry)
	d.putDelivery(*row)
	d.touch(DeliveryQueueID(row.Endpoint), row.DueAt)
	d.audit(row.Tenant, "delivery.retry", row.ID.Text(pawl.PrefixDelivery), "")
}

// ReleaseDelivery hands back a leased delivery, unsent or of a holder that is
// known to be dead: to send an event twice is harmless, not to send it is not.
type ReleaseDelivery struct {
	Header
	Delivery pawl.ID
	Endpoint pawl.ID
	Fence    int64
}

// Head is the command's header.
func (c ReleaseDelivery) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ReleaseDelivery) Keys(k *Keys) {
	k.Deliveries = add(k.Deliveries, c.Delivery)
	if !c.Endpoint.IsZero() {
		k.Queues = add(k.Queues, DeliveryQueueID(c.Endpoint))
	}
}

// Decide makes the delivery due now.
func (c ReleaseDelivery) Decide(d *Draft) Outcome {
	row, ok := d.Deliveries.Get(c.Delivery)
	if !ok || row.Lease != c.Fence || !row.Leased {
		return done("not_leased", nil)
	}
	row.Leased, row.DueAt = false, d.Now
	if row.State == pawl.DeliveryDelivering {
		row.State = pawl.DeliveryPending
	}
	d.Deliveries.Put(row.ID, row)
	d.touch(DeliveryQueueID(row.Endpoint), row.DueAt)
	return done("released", nil)
}
