package memory

import (
	"cmp"
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Replays is a page of replays; an empty tenant means all.
func (s *Store) Replays(ctx context.Context, tenant string, p store.Page) ([]ledger.Replay, error) {
	from := func(t *tables) map[pawl.ID]ledger.Replay { return t.replays }
	return page(ctx, s, from, p, func(_ *tables, r ledger.Replay) bool { return passes(tenant, r.Tenant) })
}

// DueReplays are due by a moment, those first that are due the longest.
func (s *Store) DueReplays(ctx context.Context, by pawl.Time, limit int) (rows []ledger.Replay, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.replays, func(a, b ledger.Replay) int {
			return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.ID.Compare(b.ID))
		}, func(r ledger.Replay) bool { return r.DueAt <= by && r.DueAt != pawl.Never }), limit)
	})
	return rows, err
}

// ForcedDeliveries are due by a moment past the pauses of their endpoints.
func (s *Store) ForcedDeliveries(ctx context.Context, by pawl.Time, limit int) (rows []ledger.Delivery, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.deliveries, func(a, b ledger.Delivery) int {
			return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.ID.Compare(b.ID))
		}, func(d ledger.Delivery) bool { return d.Forced && d.DueAt <= by && d.DueAt != pawl.Never }), limit)
	})
	return rows, err
}
