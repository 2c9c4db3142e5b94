package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	removePayloads = "DELETE FROM payloads p USING unnest($1::uuid[], $2::bigint[]) AS k(owner, kind) WHERE p.owner = k.owner AND p.kind = k.kind"
	removeAttempts = "DELETE FROM attempts WHERE delivery = ANY ($1::uuid[])"
	removeWords    = "UPDATE history SET detail = '' WHERE operation = ANY ($1::uuid[]) AND detail <> ''"
	removeAudits   = "DELETE FROM audits WHERE id = ANY ($1::uuid[])"

	keptOperations = "WHERE kept > 0 AND kept = $1::bigint AND id > $2::uuid AND id < $3::uuid ORDER BY id LIMIT $4::bigint"
	keptEvents     = "WHERE operation IS NULL AND removed_at = 'epoch' AND id > $1::uuid AND id < $2::uuid ORDER BY id LIMIT $3::bigint"
	oldKeys        = "WHERE operation > $1::uuid AND operation < $2::uuid ORDER BY operation LIMIT $3::bigint"
)

// removeAll takes out what is removed of the tables that are otherwise only
// added to, before anything is added.
func removeAll(p *pipe, gone ledger.Removals) {
	if len(gone.Payloads) > 0 {
		w := payloads.writer(2)
		for _, id := range gone.Payloads {
			payloads.add(w, &ledger.Payload{ID: id})
		}
		p.exec(removePayloads, w.values(), nil)
	}
	for _, some := range [...]struct {
		sql string
		ids []pawl.ID
	}{{removeAttempts, gone.Attempts}, {removeWords, gone.Words}, {removeAudits, gone.Audits}} {
		if len(some.ids) > 0 {
			p.exec(some.sql, []value{idArray(some.ids)}, nil)
		}
	}
}

// KeptOperations are those that hold exactly some classes; see [store.Aging].
func (r *Reader) KeptOperations(ctx context.Context, kept ledger.Kept, before pawl.ID, p store.Page) ([]ledger.Operation, error) {
	return list(ctx, r, &operations.relation, keptOperations, intValue(kept), idValue(p.After), idValue(before), limit(p.Limit))
}

// KeptEvents are those of no operation that hold anything; see [store.Aging].
func (r *Reader) KeptEvents(ctx context.Context, before pawl.ID, p store.Page) ([]ledger.Event, error) {
	return list(ctx, r, &events.relation, keptEvents, idValue(p.After), idValue(before), limit(p.Limit))
}

// OldKeys are idempotency keys of old things; see [store.Aging].
func (r *Reader) OldKeys(ctx context.Context, before pawl.ID, p store.Page) ([]ledger.IdempotencyKey, error) {
	return list(ctx, r, &idempotencyKeys.relation, oldKeys, idValue(p.After), idValue(before), limit(p.Limit))
}
