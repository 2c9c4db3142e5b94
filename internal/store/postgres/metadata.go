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
// steps as a page takes, in one snapshot. Only what is found is read whole.
func (r *Reader) withMetadata(ctx context.Context, f store.OperationFilter, p store.Page) (rows []ledger.Operation, err error) {
	if p.Look != nil {
		p.Look.End = pawl.ID{}
	}
	err = r.read(ctx, "list operations", func(c *conn) error {
		found, err := findMetadata(ctx, c, f, p)
		if err != nil || len(found) == 0 {
			return err
		}
		order := " ORDER BY id DESC"
		if p.Oldest {
			order = " ORDER BY id"
		}
		rows, err = query(ctx, c, &operations.relation, "WHERE id = ANY($1::uuid[])"+order, idArray(found))
		return err
	})
	return rows, err
}

// findMetadata is the ids of a page, in its order.
func findMetadata(ctx context.Context, c *conn, f store.OperationFilter, p store.Page) (found []pawl.ID, err error) {
	step := store.Page{After: p.After, Limit: metadataStep, Oldest: p.Oldest}
	for looked := 0; len(found) < p.Limit; {
		seen, candidates := 0, []pawl.ID(nil)
		sql, args := selectOperations(f).step(operations.name, step)
		err := c.each(ctx, sql, args, func(row [][]byte) error {
			seen++
			step.After = pawl.ID(row[0])
			if row[1][0] == 1 {
				candidates = append(candidates, step.After)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		matching := make(map[pawl.ID]bool)
		err = c.each(ctx, metadataOf, []value{idArray(candidates)}, func(row [][]byte) error {
			matching[pawl.ID(row[0])] = hasMember(row[1], f.MetadataKey, f.MetadataValue)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, id := range candidates {
			if matching[id] && len(found) < p.Limit {
				found = append(found, id)
			}
		}
		looked += seen
		if seen < metadataStep {
			break
		}
		if p.Look != nil && looked >= p.Look.Most && len(found) < p.Limit {
			p.Look.End = step.After
			break
		}
	}
	return found, nil
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
