package server

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// sequences are the last numbers in endpoints' streams, for those who wait for
// one to grow.
func (n *Node) sequences(ctx context.Context, endpoints ...pawl.ID) (map[pawl.ID]int64, error) {
	return store.Sequences(ctx, n.driver, endpoints...)
}
