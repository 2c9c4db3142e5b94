package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Load is the transaction's Load outside of one; see [store.Reader].
func (s *Store) Load(ctx context.Context, keys *ledger.Keys, rows *ledger.Rows) error {
	return s.read(ctx, func(t *tables) { t.load(keys, rows) })
}

// Payloads returns those of the wanted payloads that exist.
func (s *Store) Payloads(ctx context.Context, ids ...ledger.PayloadID) (map[ledger.PayloadID]string, error) {
	found := make(map[ledger.PayloadID]string)
	err := s.read(ctx, func(t *tables) {
		for _, id := range ids {
			if body, ok := t.payloads[id]; ok {
				found[id] = body
			}
		}
	})
	return found, err
}

func (t *tables) load(keys *ledger.Keys, rows *ledger.Rows) {
	rows.Follow(ledger.StageClaims, keys)
	load(t.idempotencyKeys, &rows.IdempotencyKeys, keys.IdempotencyKeys)
	load(t.correlations, &rows.Correlations, keys.Correlations)
	load(t.eventKeys, &rows.EventKeys, keys.EventKeys)
	load(t.tasks, &rows.Tasks, keys.Tasks)
	load(t.tenants, &rows.Tenants, keys.Tenants)
	load(t.apiKeys, &rows.APIKeys, keys.APIKeys)
	load(t.wrappingKeys, &rows.WrappingKeys, keys.WrappingKeys)
	load(t.auditSeals, &rows.AuditSeals, keys.AuditSeals)
	load(t.replays, &rows.Replays, keys.Replays)

	rows.Follow(ledger.StageOperations, keys)
	load(t.operations, &rows.Operations, keys.Operations)
	load(t.events, &rows.Events, keys.Events)
	load(t.sources, &rows.Sources, keys.Sources)
	load(t.unknownTypes, &rows.UnknownTypes, keys.UnknownTypes)
	t.loadParked(keys.Parked, rows)

	rows.Follow(ledger.StageAccounts, keys)
	load(t.unknownTypes, &rows.UnknownTypes, keys.UnknownTypes)
	load(t.reviews, &rows.Reviews, keys.Reviews)
	t.loadOpenReviews(keys.OpenReviews, rows)
	load(t.accounts, &rows.Accounts, keys.Accounts)
	load(t.budgets, &rows.Budgets, keys.Budgets)
	load(t.endpoints, &rows.Endpoints, keys.Endpoints)
	t.loadEndpointSets(keys.EndpointSets, rows)
	load(t.artifacts, &rows.Artifacts, keys.Artifacts)
	t.loadArtifactSets(keys.ArtifactSets, rows)

	rows.Follow(ledger.StageQueues, keys)
	load(t.queues, &rows.Queues, keys.Queues)

	rows.Follow(ledger.StageDeliveries, keys)
	load(t.deliveries, &rows.Deliveries, keys.Deliveries)
	for _, w := range keys.DueWork {
		if !rows.HasDueWork(w) {
			rows.DueWorkLoaded(w, limited(t.dueWork(w.Queue), w.Limit+1))
		}
	}
	for _, w := range keys.DueDeliveries {
		if !rows.HasDueDeliveries(w) {
			rows.DueDeliveriesLoaded(w, limited(t.dueDeliveries(w.Queue), w.Limit+1))
		}
	}
}

func load[K, R comparable](from map[K]R, into *ledger.Table[K, R], keys []K) {
	for _, k := range keys {
		r, ok := from[k]
		into.Loaded(k, r, ok)
	}
}

// loadOpenReviews takes an operation's reviews that wait for a decision.
func (t *tables) loadOpenReviews(operations []pawl.ID, rows *ledger.Rows) {
	for _, op := range operations {
		if rows.HasOpenReviews(op) {
			continue
		}
		for _, r := range sorted(t.reviews, byID, func(r ledger.Review) bool { return r.Operation == op && r.ClosedAt == 0 }) {
			rows.Reviews.Loaded(r.ID, r, true)
		}
		rows.OpenReviewsLoaded(op)
	}
}

// loadParked takes the events of the task that still wait, oldest first.
func (t *tables) loadParked(tasks []ledger.TaskID, rows *ledger.Rows) {
	for _, task := range tasks {
		if rows.HasParked(task) {
			continue
		}
		for _, e := range sorted(t.events, oldestEvent, func(e ledger.Event) bool {
			return e.Parked && e.Source == task.Upstream && e.Task == task.Task
		}) {
			rows.Events.Loaded(e.ID, e, true)
		}
		rows.ParkedLoaded(task)
	}
}

// loadEndpointSets takes the webhook endpoints that live.
func (t *tables) loadEndpointSets(tenants []string, rows *ledger.Rows) {
	for _, tenant := range tenants {
		if rows.HasEndpointSet(tenant) {
			continue
		}
		for _, e := range sorted(t.endpoints, byID, func(e ledger.Endpoint) bool {
			return e.Tenant == tenant && e.Kind == ledger.WebhookEndpoint && e.DeletedAt == 0
		}) {
			rows.Endpoints.Loaded(e.ID, e, true)
		}
		rows.EndpointSetLoaded(tenant)
	}
}

// dueWork is a work queue: every operation with something due, be it in the
// future, in (due, id) order.
func (t *tables) dueWork(q ledger.QueueID) []ledger.Operation {
	return sorted(t.operations, func(a, b ledger.Operation) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.ID.Compare(b.ID))
	}, func(o ledger.Operation) bool {
		return o.DueAt != pawl.Never && ledger.WorkQueueID(o.Queue, o.Upstream, o.Tenant) == q
	})
}

// dueDeliveries is a delivery queue, likewise.
func (t *tables) dueDeliveries(q ledger.QueueID) []ledger.Delivery {
	return sorted(t.deliveries, func(a, b ledger.Delivery) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.ID.Compare(b.ID))
	}, func(d ledger.Delivery) bool { return d.DueAt != pawl.Never && ledger.DeliveryQueueID(d.Endpoint) == q })
}

// sorted is the rows that are wanted, in order.
func sorted[K comparable, R any](from map[K]R, order func(a, b R) int, want func(R) bool) []R {
	var rows []R
	for _, r := range from {
		if want(r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, order)
	return rows
}

func limited[R any](rows []R, n int) []R { return rows[:min(len(rows), max(n, 0))] }

// identified is a row whose id says where it stands in a list.
type identified interface {
	ledger.Operation | ledger.Event | ledger.Delivery | ledger.Endpoint | ledger.Review | ledger.Account |
		ledger.APIKey | ledger.Replay | ledger.Artifact | ledger.Entry | ledger.Audit | ledger.Attempt
}

func byID[R identified](a, b R) int { return idOf(a).Compare(idOf(b)) }

func newest[R identified](a, b R) int { return byID(b, a) }

func idOf(row any) pawl.ID {
	switch r := row.(type) {
	case ledger.Operation:
		return r.ID
	case ledger.Event:
		return r.ID
	case ledger.Delivery:
		return r.ID
	case ledger.Endpoint:
		return r.ID
	case ledger.Review:
		return r.ID
	case ledger.Account:
		return r.ID
	case ledger.APIKey:
		return r.ID
	case ledger.Replay:
		return r.ID
	case ledger.Artifact:
		return r.ID
	case ledger.Entry:
		return r.ID
	case ledger.Audit:
		return r.ID
	case ledger.Attempt:
		return r.ID
	}
	return pawl.ID{}
}

func oldestEvent(a, b ledger.Event) int {
	return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID))
}
