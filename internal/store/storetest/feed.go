package storetest

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// testFeed: an endpoint's stream comes in the order of its sequences, from
// after one on, without what has none yet and without other endpoints'.
func testFeed(t *testing.T, open Open) {
	p := newPair(t, open)
	p.save(t, rows{put: func(d *ledger.Draft) {
		// The ids rise as the sequences fall; the first two have none.
		for n, sequence := range []int64{0, 0, 5, 4, 3, 2, 1} {
			d.Deliveries.Put(id(n), ledger.Delivery{ID: id(n), Endpoint: id(100), Event: id(n), Tenant: "t", Sequence: sequence, DueAt: pawl.Never})
		}
		d.Deliveries.Put(id(9), ledger.Delivery{ID: id(9), Endpoint: id(101), Event: id(9), Tenant: "t", Sequence: 2, DueAt: pawl.Never})
	}})
	for _, tc := range []struct {
		name  string
		after int64
		limit int
		want  []pawl.ID
	}{
		{"all", 0, 10, []pawl.ID{id(6), id(5), id(4), id(3), id(2)}},
		{"bounded", 0, 2, []pawl.ID{id(6), id(5)}},
		{"from the middle", 2, 2, []pawl.ID{id(4), id(3)}},
		{"the last", 4, 2, []pawl.ID{id(2)}},
		{"after the end", 5, 2, []pawl.ID{}},
		{"before the beginning", -1, 1, []pawl.ID{id(6)}},
	} {
		same(t, tc.name, tc.want, ids(ask(t, p, tc.name, func(ctx context.Context, d store.Driver) ([]ledger.Delivery, error) {
			return d.Feed(ctx, id(100), tc.after, tc.limit)
		}), func(d ledger.Delivery) pawl.ID { return d.ID }))
	}
}
