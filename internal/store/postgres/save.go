package postgres

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// errShared: a row is to be changed that was read without a lock of its own.
var errShared = errors.New("an endpoint was changed that was not locked")

// save gathers what a batch changed and added, one statement a table each for
// what is new and for what is not. They are sent together with what comes next.
func (t *tx) save(rows *ledger.Rows) error {
	for id := range rows.Endpoints.Changes() {
		if t.alone || t.shared[id] {
			return errShared
		}
	}
	p := t.conn.pipe(t.ctx)
	removeAll(p, rows.Removed)
	saveAll(t, p, &idempotencyKeys, &rows.IdempotencyKeys)
	saveAll(t, p, &correlations, &rows.Correlations)
	saveAll(t, p, &eventKeys, &rows.EventKeys)
	saveAll(t, p, &tasks, &rows.Tasks)
	saveAll(t, p, &sources, &rows.Sources)
	saveAll(t, p, &unknownTypes, &rows.UnknownTypes)
	saveAll(t, p, &tenants, &rows.Tenants)
	saveAll(t, p, &apiKeys, &rows.APIKeys)
	saveAll(t, p, &wrappingKeys, &rows.WrappingKeys)
	saveAll(t, p, &auditSeals, &rows.AuditSeals)
	saveAll(t, p, &replays, &rows.Replays)
	saveAll(t, p, &operations, &rows.Operations)
	saveAll(t, p, &events, &rows.Events)
	saveAll(t, p, &reviews, &rows.Reviews)
	saveAll(t, p, &accounts, &rows.Accounts)
	saveAll(t, p, &budgets, &rows.Budgets)
	saveAll(t, p, &endpoints, &rows.Endpoints)
	saveAll(t, p, &queues, &rows.Queues)
	saveAll(t, p, &deliveries, &rows.Deliveries)
	saveAll(t, p, &artifacts, &rows.Artifacts)
	addAll(p, &payloads, rows.Payloads)
	addAll(p, &history, latest(rows.History))
	addAll(p, &entries, rows.Entries)
	addAll(p, &attempts, rows.Attempts)
	addAll(p, &audits, rows.Audits)
	t.unsent = p
	return p.err
}

// flush sends what was saved and not sent yet.
func (t *tx) flush() error {
	p := t.unsent
	if p == nil {
		return nil
	}
	t.unsent = nil
	return explain(t.ctx, "save", p.run())
}

// saveAll writes the changed rows of a table: a placeholder is there already.
func saveAll[K, R comparable](t *tx, p *pipe, table *table[K, R], rows *ledger.Table[K, R]) {
	var added, changed *columns
	placed := placedIn(t, table)
	var gone []K
	for k, ch := range rows.Changes() {
		if ch.Gone {
			gone = append(gone, k)
			continue
		}
		into := &added
		if _, filled := placed[k]; ch.Existed || filled {
			into = &changed
			delete(placed, k)
		}
		if *into == nil {
			*into = table.writer(0)
		}
		table.add(*into, &ch.Now)
	}
	if gone != nil {
		p.exec(table.remove, table.written(gone), nil)
	}
	if added != nil {
		p.exec(table.insert, added.values(), nil)
	}
	if changed != nil {
		want := int64(changed.rows())
		p.exec(table.update, changed.values(), func(n int64) error {
			if n != want {
				return fmt.Errorf("update of %s changed %d rows of %d", table.name, n, want)
			}
			return nil
		})
	}
}

func addAll[R any](p *pipe, t *relation[R], rows []R) {
	if len(rows) == 0 {
		return
	}
	w := t.writer(0)
	for i := range rows {
		t.add(w, &rows[i])
	}
	p.exec(t.insert, w.values(), nil)
}

// latest are the lines of a timeline without those that the same batch has
// counted on: one statement changes a row once.
func latest(lines []ledger.History) []ledger.History {
	type line struct {
		operation, id pawl.ID
		at            pawl.Time
	}
	last := make(map[line]int, len(lines))
	for i, h := range lines {
		last[line{h.Operation, h.ID, h.At}] = i
	}
	if len(last) == len(lines) {
		return lines
	}
	kept := make([]ledger.History, 0, len(last))
	for i, h := range lines {
		if last[line{h.Operation, h.ID, h.At}] == i {
			kept = append(kept, h)
		}
	}
	return kept
}

// placedIn are a table's placeholders of this transaction.
func placedIn[K, R comparable](t *tx, table *table[K, R]) map[K]struct{} {
	placed, _ := t.placed[table.name].(map[K]struct{})
	return placed
}

// release takes away the placeholders that were not filled.
func (t *tx) release(p *pipe) {
	releaseAll(t, p, &idempotencyKeys)
	releaseAll(t, p, &correlations)
	releaseAll(t, p, &eventKeys)
	releaseAll(t, p, &tasks)
	releaseAll(t, p, &sources)
	releaseAll(t, p, &unknownTypes)
	releaseAll(t, p, &tenants)
	releaseAll(t, p, &apiKeys)
	releaseAll(t, p, &wrappingKeys)
	releaseAll(t, p, &auditSeals)
	releaseAll(t, p, &budgets)
	releaseAll(t, p, &endpoints)
	releaseAll(t, p, &queues)
}

func releaseAll[K, R comparable](t *tx, p *pipe, table *table[K, R]) {
	left := make([]K, 0, len(placedIn(t, table)))
	for k := range placedIn(t, table) {
		left = append(left, k)
	}
	if len(left) > 0 {
		p.exec(table.remove, table.written(left), nil)
	}
}
