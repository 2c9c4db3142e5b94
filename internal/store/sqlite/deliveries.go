package sqlite

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

var deliveries = newTable("deliveries", 1,
	func(k pawl.ID) ledger.Delivery { return ledger.Delivery{ID: k} },
	func(c *columns, r *ledger.Delivery) {
		key(c, "id", r.ID[:])
		id(c, "event", &r.Event)
		id(c, "endpoint", &r.Endpoint)
		id(c, "operation", &r.Operation)
		text(c, "tenant", &r.Tenant)
		number(c, "state", &r.State)
		number(c, "sequence", &r.Sequence)
		number(c, "attempts", &r.Attempts)
		number(c, "tries", &r.Tries)
		number(c, "lease", &r.Lease)
		flag(c, "leased", &r.Leased)
		number(c, "due_at", &r.DueAt)
		number(c, "first_due_at", &r.FirstDueAt)
		number(c, "created_at", &r.CreatedAt)
		number(c, "finished_at", &r.FinishedAt)
		number(c, "last_status", &r.LastStatus)
		text(c, "last_error", &r.LastError)
		text(c, "reason", &r.Reason)
		flag(c, "body_kept", &r.BodyKept)
		flag(c, "replay", &r.Replay)
		flag(c, "inbound", &r.Inbound)
		number(c, "complete_by", &r.CompleteBy)
		number(c, "overdue", &r.Overdue)
		id(c, "review", &r.Review)
		number(c, "completed_at", &r.CompletedAt)
		text(c, "completed_by", &r.CompletedBy)
		flag(c, "discarded", &r.Discarded)
		text(c, "replay_by", &r.ReplayBy)
		flag(c, "forced", &r.Forced)
	})

var attempts = newRelation("attempts", func(c *columns, r *ledger.Attempt) {
	key(c, "delivery", r.Delivery[:])
	key(c, "id", r.ID[:])
	number(c, "number", &r.Number)
	number(c, "at", &r.At)
	number(c, "duration_ns", &r.Duration)
	number(c, "status", &r.Status)
	text(c, "error", &r.Error)
	text(c, "excerpt", &r.Excerpt)
	flag(c, "replay", &r.Replay)
	text(c, "actor", &r.Actor)
	text(c, "target", &r.Target)
	text(c, "target_digest", &r.TargetDigest)
})

var endpoints = newTable("endpoints", 1,
	func(k pawl.ID) ledger.Endpoint { return ledger.Endpoint{ID: k} },
	func(c *columns, r *ledger.Endpoint) {
		key(c, "id", r.ID[:])
		text(c, "tenant", &r.Tenant)
		number(c, "kind", &r.Kind)
		id(c, "api_key", &r.APIKey)
		text(c, "url", &r.URL)
		text(c, "types", &r.Types)
		text(c, "scheme", &r.Scheme)
		text(c, "description", &r.Description)
		text(c, "owner", &r.Owner)
		text(c, "secret", &r.Secret)
		text(c, "former_secret", &r.FormerSecret)
		number(c, "former_until", &r.FormerUntil)
		text(c, "public_key", &r.PublicKey)
		text(c, "policy", &r.Policy)
		text(c, "content", &r.Content)
		number(c, "complete_within_ns", &r.CompleteWithin)
		number(c, "version", &r.Version)
		flag(c, "disabled", &r.Disabled)
		text(c, "disabled_reason", &r.DisabledReason)
		number(c, "enabled_at", &r.EnabledAt)
		id(c, "dead_letter", &r.DeadLetter)
		number(c, "created_at", &r.CreatedAt)
		number(c, "updated_at", &r.UpdatedAt)
		number(c, "deleted_at", &r.DeletedAt)
		number(c, "unused_at", &r.UnusedAt)
	})

var queues = newTable("queues", 4,
	func(k ledger.QueueID) ledger.Queue { return ledger.Queue{ID: k} },
	func(c *columns, r *ledger.Queue) {
		number(c, "kind", &r.ID.Kind)
		text(c, "upstream", &r.ID.Upstream)
		text(c, "tenant", &r.ID.Tenant)
		key(c, "endpoint", r.ID.Endpoint[:])
		number(c, "next_due", &r.NextDue)
		number(c, "paused_until", &r.PausedUntil)
		text(c, "pause_reason", &r.PauseReason)
		number(c, "sequence", &r.Sequence)
		number(c, "failures", &r.Failures)
	})
