package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// loader loads rows stage by stage (3-architecture, "The store"): in a
// transaction it locks them, elsewhere tx is nil.
//
// The stages are those of all drivers but for the queues of work, which come
// before the operations that they hold. Whoever holds an operation waits for no
// queue of work, so the window of a queue can be locked under that queue.
type loader struct {
	ctx  context.Context
	conn *conn
	tx   *tx
}

func (l *loader) load(keys *ledger.Keys, rows *ledger.Rows) error {
	for _, stage := range [...]struct {
		stage ledger.Stage
		load  func(*ledger.Keys, *ledger.Rows) error
	}{
		{ledger.StageClaims, l.loadClaims},
		{ledger.StageOperations, l.loadOperations},
		{ledger.StageAccounts, l.loadAccounts},
		{ledger.StageQueues, l.loadQueues},
		{ledger.StageDeliveries, l.loadDeliveries},
	} {
		rows.Follow(stage.stage, keys)
		if err := stage.load(keys, rows); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) pipe() *pipe { return l.conn.pipe(l.ctx) }

func (l *loader) loadClaims(keys *ledger.Keys, rows *ledger.Rows) error {
	p := l.pipe()
	found := l.findTasks(p, keys.Tasks, rows)
	first := []loaded{
		fetch(l, p, &idempotencyKeys, &rows.IdempotencyKeys, keys.IdempotencyKeys),
		fetch(l, p, &correlations, &rows.Correlations, keys.Correlations),
		fetch(l, p, &eventKeys, &rows.EventKeys, keys.EventKeys),
	}
	if found {
		if err := l.fetch(p, first...); err != nil {
			return err
		}
		p, first = l.pipe(), nil
	}
	return l.fetch(p, append(first,
		fetch(l, p, &tasks, &rows.Tasks, keys.Tasks),
		fetch(l, p, &tenants, &rows.Tenants, keys.Tenants),
		fetch(l, p, &apiKeys, &rows.APIKeys, keys.APIKeys),
		fetch(l, p, &wrappingKeys, &rows.WrappingKeys, keys.WrappingKeys),
		fetch(l, p, &auditSeals, &rows.AuditSeals, keys.AuditSeals),
		fetch(l, p, &replays, &rows.Replays, keys.Replays),
	)...)
}

// findTasks asks for those tasks that an operation has: it has them for good, so
// that there is nothing to be locked. It reports whether there is an answer to
// be waited for.
func (l *loader) findTasks(p *pipe, wanted []ledger.TaskID, rows *ledger.Rows) bool {
	if wanted = missing(&rows.Tasks, wanted); l.tx == nil || len(wanted) == 0 {
		return false
	}
	p.query(tasks.get, tasks.written(wanted), func(row [][]byte) error {
		if t := tasks.read(row); !t.Operation.IsZero() {
			rows.Tasks.Loaded(t.ID, t, true)
		}
		return nil
	})
	return true
}

// loadOperations loads the queues of work, then the operations that are asked
// for or in a window, and what hangs on claims.
func (l *loader) loadOperations(keys *ledger.Keys, rows *ledger.Rows) error {
	if err := l.findWorkQueues(keys, rows); err != nil {
		return err
	}
	p := l.pipe()
	locked := fetch(l, p, &queues, &rows.Queues, workQueues(keys.Queues))
	windows := openWindows(p, dueWork, keys.DueWork, rows.HasDueWork)
	parked := l.findParked(p, keys.Parked, rows)
	if err := l.fetch(p, locked); err != nil {
		return err
	}
	p = l.pipe()
	var due, waiting []pawl.ID
	for _, w := range windows {
		due = append(due, w.ids()...)
	}
	for _, e := range *parked {
		waiting = append(waiting, e.id)
	}
	asked := fetchWith(l, p, &operations, &rows.Operations, keys.Operations, due)
	held := fetchWith(l, p, &events, &rows.Events, keys.Events, waiting)
	err := l.fetch(p, asked, held,
		fetch(l, p, &sources, &rows.Sources, keys.Sources),
		// Whoever asks for one of a source holds the source.
		fetch(l, p, &unknownTypes, &rows.UnknownTypes, keys.UnknownTypes),
	)
	if err != nil {
		return err
	}
	for _, w := range windows {
		rows.DueWorkFound(w.Window, w.found, asked.in(w.ids()))
	}
	for _, e := range held.in(waiting) {
		rows.Events.Loaded(e.ID, e, true)
	}
	for _, k := range keys.Parked {
		rows.ParkedLoaded(k)
	}
	return nil
}

// placeOf is what never changes about operations.
const placeOf = "SELECT upstream, tenant FROM operations WHERE id = ANY($1::uuid[])"

// findWorkQueues adds the queues of the operations and windows to come.
func (l *loader) findWorkQueues(keys *ledger.Keys, rows *ledger.Rows) error {
	add := func(q ledger.QueueID) {
		if !slices.Contains(keys.Queues, q) {
			keys.Queues = append(keys.Queues, q)
		}
	}
	for _, w := range keys.DueWork {
		add(w.Queue)
	}
	wanted := missing(&rows.Operations, keys.Operations)
	if l.tx == nil || keys.Alone || len(wanted) == 0 {
		return nil
	}
	return l.conn.each(l.ctx, placeOf, []value{idArray(wanted)}, func(row [][]byte) error {
		up, tenant := fromText(row[0]), fromText(row[1])
		add(ledger.WorkQueueID(ledger.SubmitQueue, up, tenant))
		add(ledger.WorkQueueID(ledger.ReadQueue, up, tenant))
		return nil
	})
}

func workQueues(all []ledger.QueueID) (work []ledger.QueueID) {
	for _, q := range all {
		if q.Kind != ledger.DeliveryQueue {
			work = append(work, q)
		}
	}
	return work
}

func (l *loader) loadAccounts(keys *ledger.Keys, rows *ledger.Rows) error {
	p := l.pipe()
	open := l.findOpenReviews(p, keys.OpenReviews, rows)
	files := l.findArtifacts(p, keys.ArtifactSets, rows)
	if err := p.run(); err != nil {
		return err
	}
	p = l.pipe()
	odd := fetch(l, p, &unknownTypes, &rows.UnknownTypes, keys.UnknownTypes)
	held := fetchWith(l, p, &reviews, &rows.Reviews, keys.Reviews, *open)
	err := l.fetch(p, odd, held,
		fetch(l, p, &accounts, &rows.Accounts, keys.Accounts),
		fetch(l, p, &budgets, &rows.Budgets, keys.Budgets),
		fetch(l.forEndpoints(keys), p, &endpoints, &rows.Endpoints, keys.Endpoints),
	)
	if err != nil {
		return err
	}
	for _, r := range held.in(*open) {
		rows.Reviews.Loaded(r.ID, r, true)
	}
	for _, op := range keys.OpenReviews {
		rows.OpenReviewsLoaded(op)
	}
	if err := l.loadEndpointSets(keys, rows); err != nil {
		return err
	}
	return l.loadArtifacts(keys, rows, *files)
}

// forEndpoints loads the endpoints of callbacks, which are read alone where the
// operations are wanted alone.
func (l *loader) forEndpoints(keys *ledger.Keys) *loader {
	if l.tx == nil || !keys.Alone {
		return l
	}
	l.tx.alone = true
	return &loader{ctx: l.ctx, conn: l.conn}
}

func (l *loader) loadQueues(keys *ledger.Keys, rows *ledger.Rows) error {
	for _, w := range keys.DueDeliveries {
		if !slices.Contains(keys.Queues, w.Queue) {
			keys.Queues = append(keys.Queues, w.Queue)
		}
	}
	p := l.pipe()
	return l.fetch(p, fetch(l, p, &queues, &rows.Queues, keys.Queues))
}

func (l *loader) loadDeliveries(keys *ledger.Keys, rows *ledger.Rows) error {
	p := l.pipe()
	windows := openWindows(p, dueDelivery, keys.DueDeliveries, rows.HasDueDeliveries)
	if err := p.run(); err != nil {
		return err
	}
	var due []pawl.ID
	for _, w := range windows {
		due = append(due, w.ids()...)
	}
	p = l.pipe()
	held := fetchWith(l, p, &deliveries, &rows.Deliveries, keys.Deliveries, due)
	if err := l.fetch(p, held); err != nil {
		return err
	}
	for _, w := range windows {
		rows.DueDeliveriesLoaded(w.Window, held.in(w.ids()))
	}
	return nil
}

// fetched is what a table gave for some keys.
type fetched[K, R comparable] struct {
	rows map[K]R
	// finish records the rows as loaded.
	finish func() error
}

func (f *fetched[K, R]) end() error { return f.finish() }

// loaded is what a table gave, whichever it is.
type loaded interface{ end() error }

// in are the rows of some keys in their order.
func (f *fetched[K, R]) in(keys []K) (rows []R) {
	for _, k := range keys {
		if r, ok := f.rows[k]; ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// fetch runs what the fetched have put into a pipe and records it as loaded.
func (l *loader) fetch(p *pipe, all ...loaded) error {
	if err := l.locked(p); err != nil {
		return err
	}
	for _, f := range all {
		if err := f.end(); err != nil {
			return err
		}
	}
	return nil
}

// locked runs what locks rows, and reads the clock after it: the latest reading
// is one with all locks held.
func (l *loader) locked(p *pipe) error {
	if l.tx != nil && len(p.steps) > 0 {
		l.tx.readClock(p)
	}
	return p.run()
}

// missing are those of the keys that are not loaded, each once.
func missing[K, R comparable](into *ledger.Table[K, R], keys []K) (wanted []K) {
	for _, k := range keys {
		if !into.Has(k) && !slices.Contains(wanted, k) {
			wanted = append(wanted, k)
		}
	}
	return wanted
}

// fetch asks for the rows of some keys; absent ones are recorded as absent.
func fetch[K, R comparable](l *loader, p *pipe, t *table[K, R], into *ledger.Table[K, R], keys []K) *fetched[K, R] {
	return fetchWith(l, p, t, into, keys, nil)
}

// fetchWith is fetch with further rows that are known to exist, which are
// locked in the same order and left to the caller to record.
func fetchWith[K, R comparable](l *loader, p *pipe, t *table[K, R], into *ledger.Table[K, R], keys, more []K) *fetched[K, R] {
	wanted := missing(into, keys)
	all := wanted
	if extra := missing(into, more); len(extra) > 0 {
		all = append(slices.Clip(wanted), extra...)
	}
	f := &fetched[K, R]{rows: make(map[K]R, len(all))}
	f.finish = func() error { return nil }
	if len(all) == 0 {
		return f
	}
	args := t.written(all)
	sql := t.get
	if l.tx != nil {
		sql = t.lock
	}
	if l.tx != nil && t.claimed {
		place(l.tx, p, t, args)
	}
	p.query(sql, args, func(row [][]byte) error {
		r := t.read(row)
		f.rows[t.key(r)] = r
		return nil
	})
	f.finish = func() error {
		for _, k := range wanted {
			r, found := f.rows[k]
			if l.tx != nil && t.claimed {
				if _, empty := placedIn(l.tx, t)[k]; empty {
					r, found = *new(R), false
				} else if !found {
					return fmt.Errorf("a row of %s went while it was locked: %w", t.name, store.ErrOvertaken)
				}
			}
			into.Loaded(k, r, found)
		}
		return nil
	}
	return f
}

// place makes placeholders for the absent rows of some keys and notes them.
func place[K, R comparable](tx *tx, p *pipe, t *table[K, R], args []value) {
	p.query(t.place, args, func(row [][]byte) error {
		placed := placedIn(tx, t)
		if placed == nil {
			placed = make(map[K]struct{})
			if tx.placed == nil {
				tx.placed = make(map[string]any)
			}
			tx.placed[t.name] = placed
		}
		placed[t.key(t.read(row))] = struct{}{}
		return nil
	})
}

func first(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
