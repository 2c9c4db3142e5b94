package storetest

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// testWorkLines: what waits for own workers is found by upstream, tenant and
// model, the longest waiting first; what waits for nobody is not.
func testWorkLines(t *testing.T, open Open) {
	p := newPair(t, open)
	lines := func(limit int) []store.Line {
		t.Helper()
		return ask(t, p, "lines", func(ctx context.Context, d store.Driver) ([]store.Line, error) { return d.WorkLines(ctx, limit) })
	}
	if got := lines(9); len(got) != 0 {
		t.Errorf("in an empty ledger wait %v", got)
	}
	waiting := func(n int, upstream, tenant, model string, since pawl.Time) ledger.Operation {
		o := operation(n, tenant, at(50))
		o.Upstream, o.Model, o.WaitingAt = upstream, model, since
		return o
	}
	putOperations(t, p,
		waiting(1, "a", "t", "m", at(5)), waiting(2, "a", "t", "m", at(3)), waiting(3, "a", "t", "m", at(3)),
		waiting(4, "a", "t", "n", at(9)), waiting(5, "a", "s", "m", at(7)), waiting(6, "b", "t", "m", at(1)),
		waiting(7, "a", "t", "m", 0), waiting(8, "c", "t", "m", 0), waiting(9, "a", "t", "m\x00", at(2)))
	all := []store.Line{
		{Upstream: "a", Tenant: "s", Model: "m", Since: at(7)}, {Upstream: "a", Tenant: "t", Model: "m", Since: at(3)},
		{Upstream: "a", Tenant: "t", Model: "m\x00", Since: at(2)}, {Upstream: "a", Tenant: "t", Model: "n", Since: at(9)},
		{Upstream: "b", Tenant: "t", Model: "m", Since: at(1)},
	}
	same(t, "lines", all, lines(9))
	same(t, "two lines", all[:2], lines(2))
	for _, tc := range []struct {
		line  store.Line
		by    pawl.Time
		limit int
		want  []pawl.ID
	}{
		{all[1], at(9), 9, numbered(2, 3, 1)},
		{all[1], at(9), 2, numbered(2, 3)},
		{all[1], at(5) - 1, 9, numbered(2, 3)},
		{all[1], at(3) - 1, 9, nil},
		{all[3], at(9), 9, numbered(4)},
		{store.Line{Upstream: "c", Tenant: "t", Model: "m"}, at(9), 9, nil},
		{store.Line{}, at(9), 9, nil},
	} {
		same(t, "waiting", tc.want, ask(t, p, "waiting", func(ctx context.Context, d store.Driver) ([]pawl.ID, error) {
			return d.WorkWaiting(ctx, tc.line, tc.by, tc.limit)
		}))
	}
}
