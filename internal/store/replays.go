package store

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Replays find what is done again by hand.
type Replays interface {
	// Replays is a page of replays; an empty tenant means all.
	Replays(ctx context.Context, tenant string, p Page) ([]ledger.Replay, error)
	// DueReplays are due by a moment, those first that are due the longest. While a
	// replay is leased it is due when the lease ends.
	DueReplays(ctx context.Context, by pawl.Time, limit int) ([]ledger.Replay, error)
	// ForcedDeliveries are due by a moment past the pauses of their endpoints.
	ForcedDeliveries(ctx context.Context, by pawl.Time, limit int) ([]ledger.Delivery, error)
}
