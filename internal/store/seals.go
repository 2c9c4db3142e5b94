package store

import (
	"context"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Seals tell what the secrets of a ledger are sealed with, and its audit.
type Seals interface {
	// WrappingKeys are all keys that were ever used, in the order of their names.
	WrappingKeys(ctx context.Context) ([]ledger.WrappingKey, error)
	// AuditSeals are those after a number, in their order.
	AuditSeals(ctx context.Context, after int64, limit int) ([]ledger.AuditSeal, error)
	// LatestAuditSeal is the one with the highest number, empty where there is none.
	LatestAuditSeal(ctx context.Context) (ledger.AuditSeal, error)
}
