package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// loadArtifactSets takes all artifacts of operations.
func (t *tables) loadArtifactSets(operations []pawl.ID, rows *ledger.Rows) {
	for _, op := range operations {
		if rows.HasArtifactSet(op) {
			continue
		}
		for _, a := range t.artifactsOf(op) {
			rows.Artifacts.Loaded(a.ID, a, true)
		}
		rows.ArtifactSetLoaded(op)
	}
}

func (t *tables) artifactsOf(op pawl.ID) []ledger.Artifact {
	return sorted(t.artifacts, byID, func(a ledger.Artifact) bool { return a.Operation == op })
}

// DueArtifacts are due by a moment, those first whose links end first.
func (s *Store) DueArtifacts(ctx context.Context, f store.DueFilter, limit int) (rows []ledger.Artifact, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.artifacts, func(a, b ledger.Artifact) int {
			return cmp.Or(cmp.Compare(a.EndsAt, b.EndsAt), a.ID.Compare(b.ID))
		}, func(a ledger.Artifact) bool {
			return a.DueAt != pawl.Never && a.DueAt <= f.By && (f.EndsBy == 0 || a.EndsAt <= f.EndsBy) && (f.Host == "" || a.Host == f.Host) &&
				!slices.Contains(f.WithoutHosts, a.Host) && !slices.Contains(f.WithoutTenants, a.Tenant)
		}), limit)
	})
	return rows, err
}

// LeasedArtifacts lists what is leased now, in the order of ids.
func (s *Store) LeasedArtifacts(ctx context.Context, p store.Page) (rows []ledger.Artifact, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.artifacts, byID, func(a ledger.Artifact) bool {
			return a.Leased && a.ID.Compare(p.After) > 0
		}), p.Limit)
	})
	return rows, err
}
