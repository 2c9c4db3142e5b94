package sqlite

import (
	"context"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func operationArtifacts(c *columns, r *ledger.Operation) {
	number(c, "artifacts", &r.Artifacts)
	number(c, "captures", &r.Captures)
	flag(c, "wants_links", &r.WantsLinks)
	flag(c, "hold", &r.Hold)
	number(c, "released_at", &r.ReleasedAt)
}

var artifacts = newTable("artifacts", 1,
	func(k pawl.ID) ledger.Artifact { return ledger.Artifact{ID: k} },
	func(c *columns, r *ledger.Artifact) {
		key(c, "id", r.ID[:])
		id(c, "operation", &r.Operation)
		text(c, "tenant", &r.Tenant)
		text(c, "upstream", &r.Upstream)
		number(c, "number", &r.Number)
		number(c, "state", &r.State)
		id(c, "link", &r.Link)
		blob(c, "link_digest", r.LinkDigest[:])
		text(c, "host", &r.Host)
		number(c, "expires_at", &r.ExpiresAt)
		number(c, "ends_at", &r.EndsAt)
		text(c, "content_type", &r.ContentType)
		text(c, "filename", &r.Filename)
		number(c, "size", &r.Size)
		blob(c, "sha256", r.SHA256[:])
		number(c, "stored", &r.Stored)
		number(c, "created_at", &r.CreatedAt)
		number(c, "captured_at", &r.CapturedAt)
		number(c, "due_at", &r.DueAt)
		number(c, "lease", &r.Lease)
		flag(c, "leased", &r.Leased)
		number(c, "attempts", &r.Attempts)
		number(c, "tries", &r.Tries)
		number(c, "mismatches", &r.Mismatches)
		flag(c, "waiting", &r.Waiting)
		number(c, "fresh", &r.Fresh)
		text(c, "last_error", &r.LastError)
	})

// The partial indexes hold what is to be captured alone.
const (
	dueArtifacts    = "WHERE due_at < 9223372036854775807 AND due_at <= ?"
	earliestEnd     = " ORDER BY ends_at, id LIMIT ?"
	leasedArtifacts = "WHERE leased = 1 AND id > ? ORDER BY id LIMIT ?"
)

func (c *conn) loadArtifactSets(operations []pawl.ID, rows *ledger.Rows) error {
	for _, op := range operations {
		if rows.HasArtifactSet(op) {
			continue
		}
		all, err := query(c, &artifacts.relation, ofOperation, idValue(op))
		if err != nil {
			return err
		}
		for _, a := range all {
			rows.Artifacts.Loaded(a.ID, a, true)
		}
		rows.ArtifactSetLoaded(op)
	}
	return nil
}

// DueArtifacts are due by a moment, those first whose links end first.
func (r *Reader) DueArtifacts(ctx context.Context, f store.DueFilter, n int) ([]ledger.Artifact, error) {
	rest, args := dueArtifacts, []value{intValue(f.By)}
	if f.EndsBy != 0 {
		rest += " AND ends_at <= ?"
		args = append(args, intValue(f.EndsBy))
	}
	if f.Host != "" {
		rest += " AND host = ?"
		args = append(args, textValue(f.Host))
	}
	for _, without := range [...]struct {
		column string
		values []string
	}{{"host", f.WithoutHosts}, {"tenant", f.WithoutTenants}} {
		if len(without.values) == 0 {
			continue
		}
		rest += " AND " + without.column + " NOT IN (" + strings.TrimSuffix(strings.Repeat("?, ", len(without.values)), ", ") + ")"
		for _, v := range without.values {
			args = append(args, textValue(v))
		}
	}
	return list(ctx, r, &artifacts.relation, rest+earliestEnd, append(args, limit(n))...)
}

// LeasedArtifacts lists what is leased now, in the order of ids.
func (r *Reader) LeasedArtifacts(ctx context.Context, p store.Page) ([]ledger.Artifact, error) {
	return list(ctx, r, &artifacts.relation, leasedArtifacts, idValue(p.After), limit(p.Limit))
}
