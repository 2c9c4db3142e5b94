package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// emit raises the operation's version and writes the one event of the change
// with a delivery for each endpoint that wants it: the outbox is part of the
// decision (7-rules §3). The caller has made the change already and saves the
// operation afterwards.
func (d *Draft) emit(op *Operation, kind string) { d.tell(op, kind, nil) }

// tell is emit; the event of a correction tells of it beside the operation.
func (d *Draft) tell(op *Operation, kind string, c *CorrectionJSON) {
	op.Version++
	op.Kept |= KeptDeliveries
	op.UpdatedAt = d.Now
	op.EventAt = max(d.Now, op.EventAt+1)
	e := d.outbound(*op, kind, c, d.endpoints(*op))
	h := d.line(*op, History{Kind: "event", Reason: kind, Event: e.ID, Version: op.Version})
	h.At = op.EventAt
	d.history = append(d.history, h)
}

// emitProgress tells those who asked for it that work goes on. It carries the
// current version, is for display only and comes at most once a second.
func (d *Draft) emitProgress(op *Operation) {
	if d.Now < op.EventAt.Add(time.Second) {
		return
	}
	// It is no part of what an endpoint must get, so one that is just being made
	// may go without.
	all := d.seenEndpoints(*op)
	if slices.ContainsFunc(all, func(ep Endpoint) bool { return wants(ep, pawl.TypeProgress) }) {
		op.EventAt = max(d.Now, op.EventAt+1)
		op.Kept |= KeptDeliveries
		d.outbound(*op, pawl.TypeProgress, nil, all)
	}
}

func (d *Draft) outbound(op Operation, kind string, c *CorrectionJSON, to []Endpoint) Event {
	e := Event{
		ID: d.NewID(), Direction: Outbound, Tenant: op.Tenant, Operation: op.ID, Type: kind,
		At: op.EventAt, Version: op.Version, Snapshot: d.snapshot(op, c), Result: op.ShownResult(), Traceparent: op.Traceparent,
	}
	d.Events.Put(e.ID, e)
	for _, ep := range to {
		if wants(ep, kind) {
			d.deliver(ep, e)
		}
	}
	return e
}

func (d *Draft) deliver(ep Endpoint, e Event) pawl.ID {
	row := Delivery{
		ID: d.NewID(), Event: e.ID, Endpoint: ep.ID, Operation: e.Operation, Tenant: e.Tenant,
		State: pawl.DeliveryPending, DueAt: e.At, FirstDueAt: e.At, CreatedAt: d.Now,
	}
	if ep.Feed() {
		d.lay(&row)
	}
	d.Deliveries.Put(row.ID, row)
	d.touch(DeliveryQueueID(ep.ID), row.DueAt)
	return row.ID
}

// endpoints are those that an operation's events go to: its tenant's, and the
// one that its callback_url became; in the order of their ids, so that it does
// not matter what else was loaded.
func (d *Draft) endpoints(op Operation) []Endpoint {
	if !d.rows.HasEndpointSet(op.Tenant) {
		panic(Miss{Keys: Keys{EndpointSets: []string{op.Tenant}}})
	}
	return d.seenEndpoints(op)
}

// seenEndpoints are [Draft.endpoints] as they were when the batch looked.
func (d *Draft) seenEndpoints(op Operation) []Endpoint {
	if !d.rows.SeesEndpointSet(op.Tenant) {
		panic(Miss{Keys: Keys{EndpointSets: []string{op.Tenant}}})
	}
	if !op.Callback.IsZero() {
		// Its absence from the batch must be a miss, not a lost delivery.
		d.Endpoints.Get(op.Callback)
	}
	var mine []Endpoint
	for id, ep := range d.Endpoints.all() {
		wanted := ep.Kind == WebhookEndpoint && ep.Tenant == op.Tenant || id == op.Callback
		if wanted && ep.DeletedAt == 0 {
			mine = append(mine, ep)
		}
	}
	slices.SortFunc(mine, func(a, b Endpoint) int { return a.ID.Compare(b.ID) })
	return mine
}

// wants reports whether an endpoint takes a type of event: all but progress
// unless it names its types. Those about the installation are for its own
// endpoints, and nothing else is. A dialect that has no word for what happened is
// not told: its receivers would take the same end for another one.
func wants(ep Endpoint, kind string) bool {
	switch {
	case ep.Installation() != pawl.InstallationType(kind):
		return false
	case dialect(ep.Scheme) && pawl.ValidOwnType(kind):
		return false
	}
	if ep.Types == "" {
		return kind != pawl.TypeProgress && speaks(ep.Scheme, kind)
	}
	for t := range strings.SplitSeq(ep.Types, ",") {
		if t == kind {
			return true
		}
	}
	return false
}

// speaks reports whether a scheme has a word for what happened, or is told of it
// nevertheless.
func speaks(scheme, kind string) bool {
	switch kind {
	case pawl.TypeRunning, pawl.TypeUnconfirmed:
		// The events of media-v2 have no version: one of these that comes late would
		// take the job back (7-rules R43). Who names the type has asked for it.
		return scheme != "media-v2"
	case pawl.TypeReviewOpened, pawl.TypeReviewClosed:
		return !dialect(scheme)
	case pawl.TypeSettled:
		return scheme != "body-timestamp"
	}
	return true
}

// dialect reports whether a scheme has bodies of its own, which can tell of
// tasks alone.
func dialect(scheme string) bool { return scheme == "media-v2" || scheme == "body-timestamp" }

// note adds a line to the operation's timeline.
func (d *Draft) note(op Operation, h History) { d.history = append(d.history, d.line(op, h)) }

// line completes a line of the timeline. Its id rises within the command, so
// that what happened at one moment stays in its order.
func (d *Draft) line(op Operation, h History) History {
	h.Operation, h.At, h.ID, h.State = op.ID, d.Now, d.NewID(), op.State
	h.ID[8], h.ID[9] = 0x80|byte(len(d.history)>>8)&0x3f, byte(len(d.history))
	if h.Actor == "" {
		h.Actor = d.Actor
	}
	return h
}
