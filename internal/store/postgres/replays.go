package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var replays = newTable("replays", 1,
	func(k pawl.ID) ledger.Replay { return ledger.Replay{ID: k} },
	func(r ledger.Replay) pawl.ID { return r.ID },
	func(c *columns, r *ledger.Replay) {
		key(c, "id", r.ID[:])
		text(c, "tenant", &r.Tenant)
		text(c, "actor", &r.Actor)
		number(c, "kind", &r.Kind)
		id(c, "endpoint", &r.Filter.Endpoint)
		id(c, "event", &r.Filter.Event)
		id(c, "operation", &r.Filter.Operation)
		number(c, "delivery_state", &r.Filter.State)
		text(c, "source", &r.Filter.Source)
		number(c, "verdict", &r.Filter.Verdict)
		text(c, "type", &r.Filter.Type)
		text(c, "task", &r.Filter.Task)
		moment(c, "from_at", &r.Filter.From)
		moment(c, "until_at", &r.Filter.Until)
		flag(c, "dry_run", &r.DryRun)
		flag(c, "force", &r.Force)
		number(c, "rate", &r.Rate)
		number(c, "state", &r.State)
		flag(c, "counted", &r.Counted)
		id(c, "after", &r.After)
		number(c, "total", &r.Total)
		number(c, "done", &r.Done)
		text(c, "outcomes", &r.Outcomes)
		moment(c, "due_at", &r.DueAt)
		number(c, "lease", &r.Lease)
		flag(c, "leased", &r.Leased)
		moment(c, "created_at", &r.CreatedAt)
		moment(c, "updated_at", &r.UpdatedAt)
		moment(c, "finished_at", &r.FinishedAt)
	})

const (
	dueReplays       = "WHERE due_at < 'infinity' AND due_at <= $1::timestamptz ORDER BY due_at, id LIMIT $2::bigint"
	forcedDeliveries = "WHERE forced AND due_at < 'infinity' AND due_at <= $1::timestamptz ORDER BY due_at, id LIMIT $2::bigint"
)

// Replays is a page of replays; an empty tenant means all.
func (r *Reader) Replays(ctx context.Context, tenant string, p store.Page) ([]ledger.Replay, error) {
	var s selection
	s.text("tenant", tenant)
	return page(ctx, r, &replays.relation, s, p)
}

// DueReplays are due by a moment, those first that are due the longest.
func (r *Reader) DueReplays(ctx context.Context, by pawl.Time, n int) ([]ledger.Replay, error) {
	return list(ctx, r, &replays.relation, dueReplays, timeValue(r.theirs(by)), limit(n))
}

// ForcedDeliveries are due by a moment past the pauses of their endpoints.
func (r *Reader) ForcedDeliveries(ctx context.Context, by pawl.Time, n int) ([]ledger.Delivery, error) {
	return list(ctx, r, &deliveries.relation, forcedDeliveries, timeValue(r.theirs(by)), limit(n))
}
