package memory

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// removeAll takes out what is removed of what is otherwise only added.
func (t *tx) removeAll(gone ledger.Removals) {
	if gone.Empty() {
		return
	}
	s := &t.store.tables
	for _, id := range gone.Payloads {
		remove(t, s.payloads, id)
	}
	// New slices, so that the old ones can be put back.
	attempts, audits, history := s.attempts, s.audits, s.history
	t.undo = append(t.undo, func() { s.attempts, s.audits, s.history = attempts, audits, history })
	s.attempts = slices.DeleteFunc(slices.Clone(attempts), func(a ledger.Attempt) bool { return slices.Contains(gone.Attempts, a.Delivery) })
	s.audits = slices.DeleteFunc(slices.Clone(audits), func(a ledger.Audit) bool { return slices.Contains(gone.Audits, a.ID) })
	s.history = slices.Clone(history)
	for i := range s.history {
		if slices.Contains(gone.Words, s.history[i].Operation) {
			s.history[i].Detail = ""
		}
	}
}

func remove[K comparable, V any](t *tx, from map[K]V, k K) {
	if old, existed := from[k]; existed {
		t.undo = append(t.undo, func() { from[k] = old })
		delete(from, k)
	}
}

func between(id pawl.ID, p store.Page, before pawl.ID) bool {
	return id.Compare(p.After) > 0 && id.Compare(before) < 0
}

// KeptOperations are those that hold exactly some classes; see [store.Aging].
func (s *Store) KeptOperations(ctx context.Context, kept ledger.Kept, before pawl.ID, p store.Page) (rows []ledger.Operation, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.operations, byID, func(o ledger.Operation) bool {
			return o.Kept > 0 && o.Kept == kept && between(o.ID, p, before)
		}), p.Limit)
	})
	return rows, err
}

// KeptEvents are those of no operation that hold anything; see [store.Aging].
func (s *Store) KeptEvents(ctx context.Context, before pawl.ID, p store.Page) (rows []ledger.Event, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.events, byID, func(e ledger.Event) bool {
			return e.Operation.IsZero() && e.RemovedAt == 0 && between(e.ID, p, before)
		}), p.Limit)
	})
	return rows, err
}

// OldKeys are idempotency keys of old things; see [store.Aging].
func (s *Store) OldKeys(ctx context.Context, before pawl.ID, p store.Page) (rows []ledger.IdempotencyKey, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.idempotencyKeys, func(a, b ledger.IdempotencyKey) int {
			return a.Operation.Compare(b.Operation)
		}, func(k ledger.IdempotencyKey) bool { return between(k.Operation, p, before) }), p.Limit)
	})
	return rows, err
}
