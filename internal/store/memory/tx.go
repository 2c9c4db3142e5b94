package memory

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// tx writes into the tables at once and remembers how to take that back;
// nobody else sees it before the mutex is free.
type tx struct {
	store *Store
	now   pawl.Time
	undo  []func()
}

// Update runs fn in one transaction; see [store.Driver]. An error or panic of
// fn leaves nothing.
func (s *Store) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	t := &tx{store: s, now: s.opts.Now()}
	committed := false
	defer func() {
		if !committed {
			t.rollback()
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	if err := s.opts.Fault(BeforeCommit); err != nil {
		return &store.CommitError{Err: err}
	}
	committed = true
	s.batches[batch] = true
	if err := s.opts.Fault(AfterCommit); err != nil {
		return &store.CommitError{Err: err}
	}
	return nil
}

func (t *tx) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
}

// Now is the clock's reading at the start of the transaction.
func (t *tx) Now() pawl.Time { return t.now }

// Load adds the wanted rows stage by stage; see [store.Tx].
func (t *tx) Load(keys *ledger.Keys, rows *ledger.Rows) error {
	if err := t.store.opts.Fault(OnLoad); err != nil {
		return err
	}
	t.store.tables.load(keys, rows)
	return nil
}

// Save writes every changed row and everything added. It refuses a change of a
// row that is not as it was loaded, which only a fault of a caller can bring.
func (t *tx) Save(rows *ledger.Rows) error {
	if err := t.store.opts.Fault(OnSave); err != nil {
		return err
	}
	s := &t.store.tables
	err := first(
		save(t, "idempotency key", s.idempotencyKeys, &rows.IdempotencyKeys),
		save(t, "correlation", s.correlations, &rows.Correlations),
		save(t, "event key", s.eventKeys, &rows.EventKeys),
		save(t, "task", s.tasks, &rows.Tasks),
		save(t, "source", s.sources, &rows.Sources),
		save(t, "unknown types", s.unknownTypes, &rows.UnknownTypes),
		save(t, "tenant", s.tenants, &rows.Tenants),
		save(t, "api key", s.apiKeys, &rows.APIKeys),
		save(t, "wrapping key", s.wrappingKeys, &rows.WrappingKeys),
		save(t, "audit seal", s.auditSeals, &rows.AuditSeals),
		save(t, "replay", s.replays, &rows.Replays),
		save(t, "operation", s.operations, &rows.Operations),
		save(t, "event", s.events, &rows.Events),
		save(t, "review", s.reviews, &rows.Reviews),
		save(t, "account", s.accounts, &rows.Accounts),
		save(t, "budget", s.budgets, &rows.Budgets),
		save(t, "endpoint", s.endpoints, &rows.Endpoints),
		save(t, "queue", s.queues, &rows.Queues),
		save(t, "delivery", s.deliveries, &rows.Deliveries),
		save(t, "artifact", s.artifacts, &rows.Artifacts),
	)
	if err != nil {
		return err
	}
	t.removeAll(rows.Removed)
	for _, p := range rows.Payloads {
		if _, kept := s.payloads[p.ID]; !kept {
			put(t, s.payloads, p.ID, p.Body)
		}
	}
	for _, h := range rows.History {
		t.line(h)
	}
	extend(t, &s.entries, rows.Entries)
	extend(t, &s.attempts, rows.Attempts)
	extend(t, &s.audits, rows.Audits)
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func save[K, R comparable](t *tx, what string, to map[K]R, from *ledger.Table[K, R]) error {
	for k, c := range from.Changes() {
		if old, ok := to[k]; ok != c.Existed || ok && old != c.Was {
			return fmt.Errorf("memory: save: %s is not as it was loaded", what)
		}
		if c.Gone {
			remove(t, to, k)
			continue
		}
		put(t, to, k, c.Now)
	}
	return nil
}

func put[K comparable, V any](t *tx, to map[K]V, k K, v V) {
	old, existed := to[k]
	t.undo = append(t.undo, func() {
		if existed {
			to[k] = old
		} else {
			delete(to, k)
		}
	})
	to[k] = v
}

// line adds a line of a timeline. One that is there already is the same with a
// higher count.
func (t *tx) line(h ledger.History) {
	all := t.store.tables.history
	if h.Repeats > 0 {
		for i, old := range all {
			if old.Operation == h.Operation && old.At == h.At && old.ID == h.ID {
				t.undo = append(t.undo, func() { t.store.tables.history[i] = old })
				all[i].Repeats, all[i].LastAt = h.Repeats, h.LastAt
				return
			}
		}
	}
	extend(t, &t.store.tables.history, []ledger.History{h})
}

func extend[V any](t *tx, to *[]V, more []V) {
	n := len(*to)
	t.undo = append(t.undo, func() { *to = (*to)[:n] })
	*to = append(*to, more...)
}
