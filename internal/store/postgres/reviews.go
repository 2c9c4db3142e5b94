package postgres

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

var reviews = newTable("reviews", 1,
	func(k pawl.ID) ledger.Review { return ledger.Review{ID: k} },
	func(r ledger.Review) pawl.ID { return r.ID },
	func(c *columns, r *ledger.Review) {
		key(c, "id", r.ID[:])
		text(c, "tenant", &r.Tenant)
		number(c, "reason", &r.Reason)
		id(c, "operation", &r.Operation)
		id(c, "event", &r.Event)
		id(c, "endpoint", &r.Endpoint)
		id(c, "delivery", &r.Delivery)
		text(c, "source", &r.Source)
		text(c, "owner", &r.Owner)
		text(c, "detail", &r.Detail)
		text(c, "reported", &r.Reported)
		moment(c, "opened_at", &r.OpenedAt)
		moment(c, "closed_at", &r.ClosedAt)
		text(c, "decision", &r.Decision)
		text(c, "note", &r.Note)
		text(c, "decided_by", &r.DecidedBy)
		text(c, "notes", &r.Notes)
	})

var audits = newRelation("audits", func(c *columns, r *ledger.Audit) {
	key(c, "id", r.ID[:])
	text(c, "tenant", &r.Tenant)
	moment(c, "at", &r.At)
	text(c, "actor", &r.Actor)
	text(c, "action", &r.Action)
	text(c, "subject", &r.Subject)
	text(c, "detail", &r.Detail)
})
