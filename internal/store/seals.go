package store

import (
	"context"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Seals tell what the secrets of a ledger are sealed with.
type Seals interface {
	// WrappingKeys are all keys that were ever used, in the order of their names.
	WrappingKeys(ctx context.Context) ([]ledger.WrappingKey, error)
}
