package postgres

import (
	"context"

	"github.com/pawlhq/pawl/internal/ledger"
)

var wrappingKeys = newTable("wrapping_keys", 1,
	func(k string) ledger.WrappingKey { return ledger.WrappingKey{Name: k} },
	func(r ledger.WrappingKey) string { return r.Name },
	func(c *columns, r *ledger.WrappingKey) {
		text(c, "name", &r.Name)
		text(c, "root", &r.Root)
		moment(c, "created_at", &r.CreatedAt)
		moment(c, "retired_at", &r.RetiredAt)
	}).claims()

// WrappingKeys are all keys that were ever used, in the order of their names.
func (r *Reader) WrappingKeys(ctx context.Context) ([]ledger.WrappingKey, error) {
	return list(ctx, r, &wrappingKeys.relation, "ORDER BY name")
}
