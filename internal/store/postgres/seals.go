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

var auditSeals = newTable("audit_seals", 1,
	func(k int64) ledger.AuditSeal { return ledger.AuditSeal{Number: k} },
	func(r ledger.AuditSeal) int64 { return r.Number },
	func(c *columns, r *ledger.AuditSeal) {
		number(c, "number", &r.Number)
		id(c, "last", &r.Last)
		number(c, "lines", &r.Lines)
		moment(c, "sealed_at", &r.SealedAt)
		blob(c, "mac", r.MAC[:])
		blob(c, "removal", r.Removal[:])
	}).claims()

const (
	sealsAfter = "WHERE number > $1::bigint ORDER BY number LIMIT $2::bigint"
	latestSeal = "ORDER BY number DESC LIMIT 1"
)

// AuditSeals are those after a number, in their order; see [store.Seals].
func (r *Reader) AuditSeals(ctx context.Context, after int64, most int) ([]ledger.AuditSeal, error) {
	return list(ctx, r, &auditSeals.relation, sealsAfter, intValue(after), limit(most))
}

// LatestAuditSeal is the one with the highest number; see [store.Seals].
func (r *Reader) LatestAuditSeal(ctx context.Context) (latest ledger.AuditSeal, err error) {
	rows, err := list(ctx, r, &auditSeals.relation, latestSeal)
	if len(rows) > 0 {
		latest = rows[0]
	}
	return latest, err
}
