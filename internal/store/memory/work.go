package memory

import (
	"cmp"
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// WorkLines lists the lines in which something waits for own workers.
func (s *Store) WorkLines(ctx context.Context, limit int) (lines []store.Line, err error) {
	err = s.read(ctx, func(t *tables) {
		heads := make(map[store.Line]store.Line)
		for _, o := range t.operations {
			key := store.Line{Upstream: o.Upstream, Tenant: o.Tenant, Model: o.Model}
			if head, ok := heads[key]; o.WaitingAt > 0 && (!ok || o.WaitingAt < head.Since) {
				key.Since = o.WaitingAt
				heads[store.Line{Upstream: o.Upstream, Tenant: o.Tenant, Model: o.Model}] = key
			}
		}
		lines = limited(sorted(heads, func(a, b store.Line) int {
			return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Model, b.Model))
		}, func(store.Line) bool { return true }), limit)
	})
	return lines, err
}

// WorkWaiting names operations of a line that may be leased, oldest first.
func (s *Store) WorkWaiting(ctx context.Context, l store.Line, by pawl.Time, limit int) (ids []pawl.ID, err error) {
	err = s.read(ctx, func(t *tables) {
		for _, o := range limited(sorted(t.operations, func(a, b ledger.Operation) int {
			return cmp.Or(cmp.Compare(a.WaitingAt, b.WaitingAt), a.ID.Compare(b.ID))
		}, func(o ledger.Operation) bool {
			return o.Upstream == l.Upstream && o.Tenant == l.Tenant && o.Model == l.Model && o.WaitingAt > 0 && o.WaitingAt <= by
		}), limit) {
			ids = append(ids, o.ID)
		}
	})
	return ids, err
}
