package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// artifact is the n-th artifact, of an operation and at a host, whose link ends
// and which is due at moments.
func artifact(n int, operation pawl.ID, host string, ends, due pawl.Time) ledger.Artifact {
	return ledger.Artifact{
		ID: id(n), Operation: operation, Tenant: "t", Number: 1, State: pawl.ArtifactPending, Link: id(n), Host: host,
		EndsAt: ends, Size: -1, CreatedAt: at(n), DueAt: due,
	}
}

func putArtifacts(t *testing.T, p *pair, all ...ledger.Artifact) {
	t.Helper()
	p.put(t, func(d *ledger.Draft) {
		for _, a := range all {
			d.Artifacts.Put(a.ID, a)
		}
	})
}

// What is due comes in the order in which the links end, whatever became due
// first, and hosts and tenants can be left out (1-product G1, O-075).
func testDueArtifacts(t *testing.T, open Open) {
	p := newPair(t, open)
	leased := artifact(6, id(100), "b", at(1), at(9))
	leased.Leased = true
	other := artifact(1, id(100), "a", at(50), at(0))
	other.Tenant = "u"
	putArtifacts(t, p,
		other, artifact(2, id(100), "a", at(40), at(3)), artifact(3, id(100), "b", at(40), at(2)),
		artifact(4, id(100), "b", at(10), at(8)), artifact(5, id(100), "c", at(5), pawl.Never), leased,
	)
	for _, tc := range []struct {
		filter store.DueFilter
		limit  int
		want   []pawl.ID
	}{
		{store.DueFilter{By: at(3)}, 9, numbered(2, 3, 1)},
		{store.DueFilter{By: at(3)}, 1, numbered(2)},
		{store.DueFilter{By: at(2)}, 9, numbered(3, 1)},
		{store.DueFilter{By: at(8)}, 9, numbered(4, 2, 3, 1)},
		{store.DueFilter{By: at(8), WithoutHosts: []string{"b"}}, 9, numbered(2, 1)},
		{store.DueFilter{By: at(8), WithoutHosts: []string{"a", "b"}}, 9, nil},
		{store.DueFilter{By: at(9), WithoutHosts: []string{"a", "z"}}, 9, numbered(6, 4, 3)},
		{store.DueFilter{By: at(8), EndsBy: at(40)}, 9, numbered(4, 2, 3)},
		{store.DueFilter{By: at(8), EndsBy: at(39)}, 9, numbered(4)},
		{store.DueFilter{By: at(8), Host: "b"}, 9, numbered(4, 3)},
		{store.DueFilter{By: at(8), WithoutTenants: []string{"u", "v"}}, 9, numbered(4, 2, 3)},
		{store.DueFilter{By: at(8), WithoutTenants: []string{"t"}, WithoutHosts: []string{"b"}}, 9, numbered(1)},
	} {
		same(t, "due artifacts", tc.want, ids(ask(t, p, "due artifacts", func(ctx context.Context, d store.Driver) ([]ledger.Artifact, error) {
			return d.DueArtifacts(ctx, tc.filter, tc.limit)
		}), artifactID))
	}
	same(t, "leased artifacts", numbered(6), ids(ask(t, p, "leased artifacts", func(ctx context.Context, d store.Driver) ([]ledger.Artifact, error) {
		return d.LeasedArtifacts(ctx, store.Page{After: id(5), Limit: 9})
	}), artifactID))
	same(t, "leased artifacts after the last", []pawl.ID{}, ids(ask(t, p, "leased artifacts", func(ctx context.Context, d store.Driver) ([]ledger.Artifact, error) {
		return d.LeasedArtifacts(ctx, store.Page{After: id(6), Limit: 9})
	}), artifactID))
	stats := ask(t, p, "stats", func(ctx context.Context, d store.Driver) (store.Stats, error) { return d.Stats(ctx) })
	if stats.ArtifactsWaiting != 5 || stats.FirstLinkEnd != at(1) || stats.ArtifactDue != at(0) {
		t.Errorf("%d artifacts wait, the first link ends at %v, the first is due at %v", stats.ArtifactsWaiting, stats.FirstLinkEnd, stats.ArtifactDue)
	}
}

// An operation leads to all of its artifacts.
func testArtifactSets(t *testing.T, open Open) {
	p := newPair(t, open)
	op := operation(1, "t", pawl.Never)
	op.Artifacts = 2
	putOperations(t, p, op)
	putArtifacts(t, p, artifact(11, id(1), "a", at(1), at(1)), artifact(12, id(1), "a", at(1), pawl.Never), artifact(13, id(2), "a", at(1), at(1)))
	loaded := load(t, p, ledger.Keys{Operations: []pawl.ID{id(1)}})
	got := present(&loaded.Artifacts)
	slices.SortFunc(got, pawl.ID.Compare)
	same(t, "artifacts of the operation", numbered(11, 12), got)
	if !loaded.HasArtifactSet(id(1)) || loaded.HasArtifactSet(id(2)) {
		t.Error("the set is not marked as loaded, or another one is")
	}
}

// drawArtifact is an artifact that exists.
func (l Live) drawArtifact(t *rapid.T) (ledger.Artifact, bool) {
	ops, err := l.Operations(context.Background(), store.OperationFilter{State: pawl.Succeeded}, store.Page{Limit: 50})
	if err != nil {
		panic(err)
	}
	var keys ledger.Keys
	for _, op := range ops {
		keys.ArtifactSets = append(keys.ArtifactSets, op.ID)
	}
	var rows ledger.Rows
	if err := l.Load(context.Background(), &keys, &rows); err != nil {
		panic(err)
	}
	var all []ledger.Artifact
	for _, a := range rows.Artifacts.All() {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b ledger.Artifact) int { return a.ID.Compare(b.ID) })
	return pickRow(t, "artifact", all, nil)
}

// onArtifact makes commands about artifacts that exist.
func onArtifact(make func(*rapid.T, Live, ledger.Artifact) ledger.Command) func(*rapid.T, Live) ledger.Command {
	return func(t *rapid.T, l Live) ledger.Command {
		a, ok := l.drawArtifact(t)
		if !ok {
			return nil
		}
		return make(t, l, a)
	}
}

// artifactCommands are those about result files and held results.
func artifactCommands() []Generator {
	return []Generator{
		{Name: "LeaseArtifact", Make: onArtifact(func(t *rapid.T, l Live, a ledger.Artifact) ledger.Command {
			return ledger.LeaseArtifact{Header: l.Header, Artifact: a.ID, For: pick(t, "for", time.Second, time.Minute)}
		}), Repeat: []string{"*"}},
		{Name: "RecordArtifact", Make: onArtifact(recordArtifact)},
		{Name: "RecordArtifact", Make: onArtifact(recordArtifact)},
		{Name: "RenewArtifact", Make: onArtifact(func(t *rapid.T, l Live, a ledger.Artifact) ledger.Command {
			return ledger.RenewArtifact{Header: l.Header, Artifact: a.ID, Fence: fence(t, a.Lease), For: time.Minute, Lost: rapid.Bool().Draw(t, "lost")}
		})},
		{Name: "EndArtifact", Make: onArtifact(func(_ *rapid.T, l Live, a ledger.Artifact) ledger.Command {
			return ledger.EndArtifact{Header: l.Header, Up: upstreamOf("up"), Operation: a.Operation, Artifact: a.ID}
		})},
		{Name: "RetryCaptures", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
			return ledger.RetryCaptures{Header: l.Header, Tenant: drawTenant(t), Operation: op.ID}
		})},
		{Name: "Release", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
			return ledger.Release{Header: l.Header, Tenant: drawTenant(t), Operation: op.ID, Note: "n"}
		})},
	}
}

func recordArtifact(t *rapid.T, l Live, a ledger.Artifact) ledger.Command {
	return ledger.RecordArtifact{
		Header: l.Header, Up: upstreamOf("up"), Operation: a.Operation, Artifact: a.ID, Fence: fence(t, a.Lease),
		Outcome: pick(t, "outcome", ledger.ArtifactStored, ledger.ArtifactAgain, ledger.ArtifactGone, ledger.ArtifactRefused, ledger.ArtifactMismatch),
		Size:    5, SHA256: ledger.Digest{1}, ContentType: "text/plain", Moved: rapid.Bool().Draw(t, "moved"), Message: "m",
	}
}
