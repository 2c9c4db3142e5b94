package postgres

import (
	"context"
	"encoding/json"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// metadataStep is how many operations are looked at together for a member of
// their metadata.
const metadataStep = 500

const metadataOf = "SELECT owner, body FROM payloads WHERE owner = ANY($1::uuid[]) AND kind = 2"

// withMetadata finds operations by one member of their metadata. PostgreSQL
// would refuse JSON that holds a zero as \u0000, and reads numbers where ours are
// compared as they are written; so members are compared here, over as many
// steps as a page takes, in one snapshot.
func (r *Reader) withMetadata(ctx context.Context, f store.OperationFilter, p store.Page) ([]ledger.Operation, error) {
	var found []ledger.Operation
	step, looked := store.Page{After: p.After, Limit: metadataStep, Oldest: p.Oldest}, 0
	if p.Look != nil {
		p.Look.End = pawl.ID{}
	}
	err := r.read(ctx, "list operations", func(c *conn) error {
		for len(found) < p.Limit {
			s := selectOperations(f)
			rest, args := s.newest(step)
			rows, err := query(ctx, c, &operations.relation, rest, args...)
			if err != nil || len(rows) == 0 {
				return err
			}
			ids := make([]pawl.ID, len(rows))
			for i := range rows {
				ids[i] = rows[i].ID
			}
			matching := make(map[pawl.ID]bool)
			err = c.each(ctx, metadataOf, []value{idArray(ids)}, func(row [][]byte) error {
				matching[pawl.ID(row[0])] = hasMember(row[1], f.MetadataKey, f.MetadataValue)
				return nil
			})
			if err != nil {
				return err
			}
			for _, o := range rows {
				if matching[o.ID] && len(found) < p.Limit {
					found = append(found, o)
				}
			}
			looked += len(rows)
			if step.After = ids[len(ids)-1]; len(rows) < metadataStep {
				return nil
			}
			if p.Look != nil && looked >= p.Look.Most {
				p.Look.End = step.After
				return nil
			}
		}
		return nil
	})
	return found, err
}

// hasMember reports whether an object has the member with that value: a text,
// or a number or boolean as it is written.
func hasMember(object []byte, key, value string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || len(members[key]) == 0 {
		return false
	}
	switch member := members[key]; member[0] {
	case '"':
		var text string
		return json.Unmarshal(member, &text) == nil && text == value
	case '{', '[', 'n':
		return false
	default:
		return string(member) == value
	}
}
