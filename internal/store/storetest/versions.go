package storetest

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// testVersions: those that exist have their version, the others none.
func testVersions(t *testing.T, open Open) {
	p := newPair(t, open)
	one, two := operation(1, "t", pawl.Never), operation(2, "u", pawl.Never)
	two.Version = 7
	putOperations(t, p, one, two)
	want := map[pawl.ID]int64{one.ID: 1, two.ID: 7}
	same(t, "versions", want, ask(t, p, "versions", func(ctx context.Context, d store.Driver) (map[pawl.ID]int64, error) {
		return d.Versions(ctx, two.ID, id(9), one.ID)
	}))
	same(t, "versions of none", map[pawl.ID]int64{}, ask(t, p, "versions", func(ctx context.Context, d store.Driver) (map[pawl.ID]int64, error) {
		return d.Versions(ctx)
	}))
}
