package storetest

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// testReplays holds the lists of what is done again by hand: those of a tenant,
// and what is due of them and of forced deliveries, the longest due first.
func testReplays(t *testing.T, open Open) {
	p := newPair(t, open)
	replay := func(n int, tenant string, due pawl.Time) ledger.Replay {
		return ledger.Replay{ID: id(n), Tenant: tenant, State: pawl.ReplayRunning, DueAt: due}
	}
	forced := func(n int, due pawl.Time, is bool) ledger.Delivery {
		return ledger.Delivery{ID: id(n), Event: id(n), Endpoint: id(100), State: pawl.DeliveryPending, DueAt: due, Forced: is}
	}
	replays := []ledger.Replay{replay(1, "t", at(5)), replay(2, "u", at(3)), replay(3, "t", pawl.Never), replay(4, "t", at(3)), replay(5, "", at(9))}
	deliveries := []ledger.Delivery{forced(1, at(5), true), forced(2, at(3), true), forced(3, at(1), false), forced(4, pawl.Never, true), forced(5, at(9), true)}
	p.put(t, func(d *ledger.Draft) {
		for _, r := range replays {
			d.Replays.Put(r.ID, r)
		}
		for _, row := range deliveries {
			d.Deliveries.Put(row.ID, row)
		}
	})
	ctx := context.Background()
	for _, tc := range []struct {
		name   string
		tenant string
		page   store.Page
		want   []int
	}{
		{"all", "", store.Page{Limit: 9}, []int{5, 4, 3, 2, 1}},
		{"a tenant's", "t", store.Page{Limit: 9}, []int{4, 3, 1}},
		{"the next page", "t", store.Page{Limit: 1, After: id(4)}, []int{3}},
	} {
		got, err := p.Replays(ctx, tc.tenant, tc.page)
		if err != nil {
			t.Fatal(err)
		}
		same(t, tc.name, theirRows(replays, tc.want), got)
	}
	for _, tc := range []struct {
		by    int
		limit int
		want  []int
	}{{2, 9, nil}, {3, 9, []int{2, 4}}, {8, 9, []int{2, 4, 1}}, {9, 2, []int{2, 4}}} {
		got, err := p.DueReplays(ctx, at(tc.by), tc.limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "due replays", theirRows(replays, tc.want), got)
	}
	for _, tc := range []struct {
		by    int
		limit int
		want  []int
	}{{2, 9, nil}, {5, 9, []int{2, 1}}, {9, 1, []int{2}}, {9, 9, []int{2, 1, 5}}} {
		got, err := p.ForcedDeliveries(ctx, at(tc.by), tc.limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "forced deliveries", theirRows(deliveries, tc.want), got)
	}
}

// theirRows are the rows with these numbers, which count from 1.
func theirRows[R any](all []R, numbers []int) (rows []R) {
	for _, n := range numbers {
		rows = append(rows, all[n-1])
	}
	return rows
}
