package sqlite

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

var events = newTable("events", 1,
	func(k pawl.ID) ledger.Event { return ledger.Event{ID: k} },
	func(c *columns, r *ledger.Event) {
		key(c, "id", r.ID[:])
		number(c, "direction", &r.Direction)
		text(c, "tenant", &r.Tenant)
		id(c, "operation", &r.Operation)
		text(c, "type", &r.Type)
		number(c, "at", &r.At)
		text(c, "source", &r.Source)
		text(c, "task", &r.Task)
		text(c, "external_id", &r.ExternalID)
		text(c, "word", &r.Word)
		number(c, "verdict", &r.Verdict)
		text(c, "reason", &r.Reason)
		blob(c, "digest", r.Digest[:])
		text(c, "headers", &r.Headers)
		flag(c, "parked", &r.Parked)
		id(c, "review", &r.Review)
		number(c, "rejudged_at", &r.Rejudged.At)
		number(c, "rejudged_verdict", &r.Rejudged.Verdict)
		text(c, "rejudged_reason", &r.Rejudged.Reason)
		text(c, "rejudged_by", &r.Rejudged.Actor)
		number(c, "inbox", &r.Inbox)
		number(c, "waiting", &r.Waiting)
		number(c, "troubled", &r.Troubled)
		number(c, "handled", &r.Handled)
		number(c, "nudged_at", &r.NudgedAt)
		flag(c, "reads", &r.Reads)
		number(c, "version", &r.Version)
		text(c, "snapshot", &r.Snapshot)
		id(c, "result", &r.Result)
		text(c, "traceparent", &r.Traceparent)
		number(c, "removed_at", &r.RemovedAt)
	})

// The first body under an id is kept: payloads never change.
var payloads = newRelation("payloads", func(c *columns, r *ledger.Payload) {
	key(c, "owner", r.ID.Owner[:])
	number(c, "kind", &r.ID.Kind)
	body(c, "body", &r.Body)
}).keepingFirst()

// A line that is added again is the same with a higher count.
var history = newRelation("history", func(c *columns, r *ledger.History) {
	key(c, "operation", r.Operation[:])
	number(c, "at", &r.At)
	key(c, "id", r.ID[:])
	text(c, "kind", &r.Kind)
	number(c, "verdict", &r.Verdict)
	text(c, "reason", &r.Reason)
	id(c, "event", &r.Event)
	number(c, "version", &r.Version)
	number(c, "state", &r.State)
	text(c, "actor", &r.Actor)
	text(c, "detail", &r.Detail)
	number(c, "repeats", &r.Repeats)
	number(c, "last_at", &r.LastAt)
}).counting("operation, at, id", "repeats", "last_at")
