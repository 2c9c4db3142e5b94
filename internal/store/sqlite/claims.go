package sqlite

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

var idempotencyKeys = newTable("idempotency_keys", 2,
	func(k ledger.IdempotencyKeyID) ledger.IdempotencyKey { return ledger.IdempotencyKey{ID: k} },
	func(c *columns, r *ledger.IdempotencyKey) {
		text(c, "tenant", &r.ID.Tenant)
		text(c, "value", &r.ID.Value)
		id(c, "api_key", &r.APIKey)
		text(c, "purpose", &r.For)
		key(c, "operation", r.Operation[:])
		blob(c, "fingerprint", r.Fingerprint[:])
		number(c, "expires_at", &r.ExpiresAt)
	})

var correlations = newTable("correlations", 2,
	func(k ledger.CorrelationID) ledger.Correlation { return ledger.Correlation{ID: k} },
	func(c *columns, r *ledger.Correlation) {
		text(c, "tenant", &r.ID.Tenant)
		text(c, "value", &r.ID.Value)
		id(c, "api_key", &r.APIKey)
		key(c, "operation", r.Operation[:])
		blob(c, "work", r.Work[:])
	})

var eventKeys = newTable("event_keys", 3,
	func(k ledger.EventKeyID) ledger.EventKey { return ledger.EventKey{ID: k} },
	func(c *columns, r *ledger.EventKey) {
		text(c, "source", &r.ID.Source)
		text(c, "task", &r.ID.Task)
		text(c, "external_id", &r.ID.Event)
		id(c, "event", &r.Event)
		blob(c, "digest", r.Digest[:])
		text(c, "word", &r.Word)
		number(c, "repeats", &r.Repeats)
		flag(c, "differs", &r.Differs)
	})

var tasks = newTable("tasks", 2,
	func(k ledger.TaskID) ledger.Task { return ledger.Task{ID: k} },
	func(c *columns, r *ledger.Task) {
		text(c, "upstream", &r.ID.Upstream)
		text(c, "task", &r.ID.Task)
		id(c, "operation", &r.Operation)
		number(c, "claimed_at", &r.ClaimedAt)
	})

var sources = newTable("sources", 1,
	func(k string) ledger.Source { return ledger.Source{Name: k} },
	func(c *columns, r *ledger.Source) {
		text(c, "name", &r.Name)
		number(c, "parked", &r.Parked)
		number(c, "unknown_types", &r.UnknownTypes)
	})

var unknownTypes = newTable("unknown_types", 2,
	func(k ledger.UnknownTypesID) ledger.UnknownTypes { return ledger.UnknownTypes{ID: k} },
	func(c *columns, r *ledger.UnknownTypes) {
		text(c, "source", &r.ID.Source)
		text(c, "tenant", &r.ID.Tenant)
		id(c, "review", &r.Review)
		number(c, "events", &r.Events)
	})

var tenants = newTable("tenants", 1,
	func(k string) ledger.Tenant { return ledger.Tenant{Name: k} },
	func(c *columns, r *ledger.Tenant) {
		text(c, "name", &r.Name)
		id(c, "account", &r.Account)
		number(c, "created_at", &r.CreatedAt)
		number(c, "erase_before", &r.EraseBefore)
	})

var apiKeys = newTable("api_keys", 1,
	func(k pawl.ID) ledger.APIKey { return ledger.APIKey{ID: k} },
	func(c *columns, r *ledger.APIKey) {
		key(c, "id", r.ID[:])
		text(c, "tenant", &r.Tenant)
		text(c, "name", &r.Name)
		blob(c, "hash", r.Hash[:])
		number(c, "scopes", &r.Scopes)
		text(c, "webhook_secret", &r.WebhookSecret)
		text(c, "former_secret", &r.FormerSecret)
		number(c, "former_until", &r.FormerUntil)
		number(c, "created_at", &r.CreatedAt)
		number(c, "expires_at", &r.ExpiresAt)
		number(c, "revoked_at", &r.RevokedAt)
		blob(c, "former_hash", r.FormerHash[:])
		number(c, "former_hash_until", &r.FormerHashUntil)
		number(c, "last_used_at", &r.LastUsedAt)
		number(c, "version", &r.Version)
		number(c, "rate", &r.Limits.Rate)
		number(c, "burst", &r.Limits.Burst)
		number(c, "budget", &r.Limits.Budget)
		text(c, "budget_currency", &r.Limits.Currency)
		text(c, "upstreams", &r.Limits.Upstreams)
	})
