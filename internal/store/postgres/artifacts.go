package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func operationArtifacts(c *columns, r *ledger.Operation) {
	number(c, "artifacts", &r.Artifacts)
	number(c, "captures", &r.Captures)
	flag(c, "wants_links", &r.WantsLinks)
	flag(c, "hold", &r.Hold)
	moment(c, "released_at", &r.ReleasedAt)
}

var artifacts = newTable("artifacts", 1,
	func(k pawl.ID) ledger.Artifact { return ledger.Artifact{ID: k} },
	func(r ledger.Artifact) pawl.ID { return r.ID },
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
		moment(c, "expires_at", &r.ExpiresAt)
		moment(c, "ends_at", &r.EndsAt)
		text(c, "content_type", &r.ContentType)
		text(c, "filename", &r.Filename)
		number(c, "size", &r.Size)
		blob(c, "sha256", r.SHA256[:])
		number(c, "stored", &r.Stored)
		moment(c, "created_at", &r.CreatedAt)
		moment(c, "captured_at", &r.CapturedAt)
		moment(c, "due_at", &r.DueAt)
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
	dueArtifacts = `WHERE due_at < 'infinity' AND due_at <= $1::timestamptz AND ends_at <= $2::timestamptz
AND ($3::text = '' OR host = $3::text) AND host <> ALL ($4::text[]) AND tenant <> ALL ($5::text[])
ORDER BY ends_at, id LIMIT $6::bigint`
	leasedArtifacts = "WHERE leased AND id > $1::uuid ORDER BY id LIMIT $2::bigint"
)

// findArtifacts finds the sets of artifacts that are not loaded yet.
func (l *loader) findArtifacts(p *pipe, operations []pawl.ID, rows *ledger.Rows) *[]pawl.ID {
	var found, wanted []pawl.ID
	for _, op := range operations {
		if !rows.HasArtifactSet(op) {
			wanted = append(wanted, op)
		}
	}
	if len(wanted) > 0 {
		p.query(artifactsOf, []value{idArray(wanted)}, func(row [][]byte) error {
			found = append(found, pawl.ID(row[0]))
			return nil
		})
	}
	return &found
}

// loadArtifacts loads the artifacts that are asked for and the sets, whose
// members are those of before: who adds one holds the operation.
func (l *loader) loadArtifacts(keys *ledger.Keys, rows *ledger.Rows, members []pawl.ID) error {
	p := l.pipe()
	held := fetchWith(l, p, &artifacts, &rows.Artifacts, keys.Artifacts, members)
	if err := l.fetch(p, held); err != nil {
		return err
	}
	for _, a := range held.in(members) {
		rows.Artifacts.Loaded(a.ID, a, true)
	}
	for _, op := range keys.ArtifactSets {
		rows.ArtifactSetLoaded(op)
	}
	return nil
}

// DueArtifacts are due by a moment, those first whose links end first. Moments are
// by the caller's clock, and are taken over to the database's.
func (r *Reader) DueArtifacts(ctx context.Context, f store.DueFilter, n int) ([]ledger.Artifact, error) {
	endsBy := pawl.Never
	if f.EndsBy != 0 {
		endsBy = r.theirs(f.EndsBy)
	}
	return list(ctx, r, &artifacts.relation, dueArtifacts, timeValue(r.theirs(f.By)), timeValue(endsBy), textValue(f.Host),
		textArray(f.WithoutHosts), textArray(f.WithoutTenants), limit(n))
}

// LeasedArtifacts lists what is leased now, in the order of ids.
func (r *Reader) LeasedArtifacts(ctx context.Context, p store.Page) ([]ledger.Artifact, error) {
	return list(ctx, r, &artifacts.relation, leasedArtifacts, idValue(p.After), limit(p.Limit))
}
