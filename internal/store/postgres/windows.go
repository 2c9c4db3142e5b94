package postgres

import (
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The members of sets and windows are found by these and locked by their ids
// afterwards, together with what else is locked of their table. Each set is held
// still by a lock that was taken before: parked events by their task's, open
// reviews and artifacts by their operation's, windows by their queue's.
const (
	parkedOf = `SELECT t.id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k(source, task, n)
JOIN events t ON t.source = k.source AND t.task = k.task WHERE t.parked ORDER BY k.n, t.at, t.id`

	// An operation has at most one open review a reason.
	openReviewsOf = "SELECT id FROM reviews WHERE operation = ANY($1::uuid[]) AND closed_at = 'epoch' ORDER BY id"

	artifactsOf = "SELECT id FROM artifacts WHERE operation = ANY($1::uuid[]) ORDER BY id"

	dueWork = `SELECT w.n, due.id, due.due_at FROM unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[], $5::bigint[]) WITH ORDINALITY AS w(kind, upstream, tenant, endpoint, want, n)
CROSS JOIN LATERAL (SELECT id, due_at FROM operations t WHERE t.upstream = w.upstream AND t.tenant = w.tenant AND t.queue = w.kind
	AND t.due_at < 'infinity' ORDER BY t.due_at, t.id LIMIT w.want) due ORDER BY w.n, due.due_at, due.id`

	dueDelivery = `SELECT w.n, due.id, due.due_at FROM unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[], $5::bigint[]) WITH ORDINALITY AS w(kind, upstream, tenant, endpoint, want, n)
CROSS JOIN LATERAL (SELECT id, due_at FROM deliveries t WHERE (t.due_at < 'infinity' OR t.state <= 2) AND t.endpoint = w.endpoint
	AND t.due_at < 'infinity' ORDER BY t.due_at, t.id LIMIT w.want) due ORDER BY w.n, due.due_at, due.id`

	endpointsOf = "WHERE tenant = ANY($1::text[]) AND kind = 1 AND deleted_at = 'epoch' ORDER BY id"

	placeSets  = "INSERT INTO endpoint_sets (tenant) SELECT * FROM unnest($1::text[]) ORDER BY 1 ON CONFLICT DO NOTHING"
	shareSets  = "SELECT 1 FROM endpoint_sets WHERE tenant = ANY($1::text[]) ORDER BY tenant FOR SHARE"
	extendSets = "SELECT 1 FROM endpoint_sets WHERE tenant = ANY($1::text[]) ORDER BY tenant FOR NO KEY UPDATE"
)

// member is one row of a set.
type member struct{ id pawl.ID }

func (l *loader) findParked(p *pipe, tasks []ledger.TaskID, rows *ledger.Rows) *[]member {
	var found []member
	sources, names := array{kind: words}, array{kind: words}
	for _, k := range tasks {
		if !rows.HasParked(k) {
			sources.text(k.Upstream)
			names.text(k.Task)
		}
	}
	if sources.n > 0 {
		p.query(parkedOf, []value{sources.value(), names.value()}, func(row [][]byte) error {
			found = append(found, member{pawl.ID(row[0])})
			return nil
		})
	}
	return &found
}

func (l *loader) findOpenReviews(p *pipe, operations []pawl.ID, rows *ledger.Rows) *[]pawl.ID {
	var found, wanted []pawl.ID
	for _, op := range operations {
		if !rows.HasOpenReviews(op) {
			wanted = append(wanted, op)
		}
	}
	if len(wanted) > 0 {
		p.query(openReviewsOf, []value{idArray(wanted)}, func(row [][]byte) error {
			found = append(found, pawl.ID(row[0]))
			return nil
		})
	}
	return &found
}

// loadEndpointSets reads the sets of endpoints, whose members are not locked:
// what is changed is asked for by its id. Whoever may add an endpoint, since one
// that was asked for does not exist, holds the sets alone.
func (l *loader) loadEndpointSets(keys *ledger.Keys, rows *ledger.Rows) error {
	var wanted []string
	for _, tenant := range keys.EndpointSets {
		if !rows.HasEndpointSet(tenant) {
			wanted = append(wanted, tenant)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	args := []value{textArray(wanted)}
	p := l.pipe()
	if l.tx != nil && !keys.Alone {
		lock := shareSets
		for _, id := range keys.Endpoints {
			if _, ok := rows.Endpoints.Get(id); !ok {
				lock = extendSets
			}
		}
		p.exec(placeSets, args, nil)
		p.exec(lock, args, nil)
	}
	var set []ledger.Endpoint
	p.query("SELECT "+endpoints.list+" FROM endpoints "+endpointsOf, args, into(&endpoints.relation, &set))
	if err := l.locked(p); err != nil {
		return err
	}
	for _, e := range set {
		if l.tx != nil && !rows.Endpoints.Has(e.ID) {
			if l.tx.shared == nil {
				l.tx.shared = make(map[pawl.ID]bool)
			}
			l.tx.shared[e.ID] = true
		}
		rows.Endpoints.Loaded(e.ID, e, true)
	}
	for _, tenant := range wanted {
		if l.tx != nil && keys.Alone {
			rows.EndpointSetSeen(tenant)
		} else {
			rows.EndpointSetLoaded(tenant)
		}
	}
	return nil
}

// window is a window with its rows as they were found, those due first coming
// first.
type window struct {
	ledger.Window
	found []ledger.Due
}

func (w *window) ids() []pawl.ID {
	ids := make([]pawl.ID, len(w.found))
	for i, row := range w.found {
		ids[i] = row.ID
	}
	return ids
}

// openWindows asks for windows of whatever will be due, now or later: the row
// after the last wanted one says when the queue is due next. Of several windows
// of one queue the widest is opened. The ids are there when the pipe has run.
func openWindows(p *pipe, sql string, wanted []ledger.Window, has func(ledger.Window) bool) []*window {
	var windows []*window
	kinds, upstreams, tenants := array{kind: integer}, array{kind: words}, array{kind: words}
	endpoints, limits := array{kind: uuid}, array{kind: integer}
	for i, w := range wanted {
		wider := func(o ledger.Window) bool { return o.Queue == w.Queue && o.Limit > w.Limit }
		if has(w) || slices.ContainsFunc(wanted, wider) || slices.Contains(wanted[:i], w) {
			continue
		}
		windows = append(windows, &window{Window: w})
		kinds.int(int64(w.Queue.Kind))
		upstreams.text(w.Queue.Upstream)
		tenants.text(w.Queue.Tenant)
		endpoints.put(w.Queue.Endpoint[:])
		limits.int(int64(max(w.Limit+1, 0)))
	}
	if len(windows) > 0 {
		args := []value{kinds.value(), upstreams.value(), tenants.value(), endpoints.value(), limits.value()}
		p.query(sql, args, func(row [][]byte) error {
			w := windows[fromInt(row[0])-1]
			w.found = append(w.found, ledger.Due{At: fromInstant(row[2]), ID: pawl.ID(row[1])})
			return nil
		})
	}
	return windows
}
