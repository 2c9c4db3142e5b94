package sqlite

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	removePayload  = "DELETE FROM payloads WHERE owner = ? AND kind = ?"
	removeAttempts = "DELETE FROM attempts WHERE delivery = ?"
	removeWords    = "UPDATE history SET detail = '' WHERE operation = ? AND detail <> ''"
	removeAudit    = "DELETE FROM audits WHERE id = ?"

	keptOperations = "WHERE kept > 0 AND kept = ? AND id > ? AND id < ? ORDER BY id LIMIT ?"
	keptEvents     = "WHERE operation IS NULL AND removed_at = 0 AND id > ? AND id < ? ORDER BY id LIMIT ?"
	oldKeys        = "WHERE operation > ? AND operation < ? ORDER BY operation LIMIT ?"
)

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

// Scrub makes sure that what was removed is in none of the ledger's files:
// deleted rows are overwritten in the file, and the log, which still has the
// pages of before, is emptied. The writer waits meanwhile.
func (d *Driver) Scrub(ctx context.Context) error {
	return explain(ctx, "scrub", d.checkpoints.truncate(ctx))
}
