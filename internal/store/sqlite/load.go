package sqlite

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// load adds the wanted rows stage by stage (3-architecture, "The store"). The
// one writer needs no locks, but the order is that of all drivers.
func (c *conn) load(keys *ledger.Keys, rows *ledger.Rows) error {
	for _, stage := range [...]struct {
		stage ledger.Stage
		load  func(*ledger.Keys, *ledger.Rows) error
	}{
		{ledger.StageClaims, c.loadClaims},
		{ledger.StageOperations, c.loadOperations},
		{ledger.StageAccounts, c.loadAccounts},
		{ledger.StageQueues, c.loadQueues},
		{ledger.StageDeliveries, c.loadDeliveries},
	} {
		rows.Follow(stage.stage, keys)
		if err := stage.load(keys, rows); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) loadClaims(keys *ledger.Keys, rows *ledger.Rows) error {
	return first(
		func() error { return loadAll(c, &idempotencyKeys, &rows.IdempotencyKeys, keys.IdempotencyKeys) },
		func() error { return loadAll(c, &correlations, &rows.Correlations, keys.Correlations) },
		func() error { return loadAll(c, &eventKeys, &rows.EventKeys, keys.EventKeys) },
		func() error { return loadAll(c, &tasks, &rows.Tasks, keys.Tasks) },
		func() error { return loadAll(c, &tenants, &rows.Tenants, keys.Tenants) },
		func() error { return loadAll(c, &apiKeys, &rows.APIKeys, keys.APIKeys) },
		func() error { return loadAll(c, &wrappingKeys, &rows.WrappingKeys, keys.WrappingKeys) },
		func() error { return loadAll(c, &auditSeals, &rows.AuditSeals, keys.AuditSeals) },
		func() error { return loadAll(c, &replays, &rows.Replays, keys.Replays) },
	)
}

func (c *conn) loadOperations(keys *ledger.Keys, rows *ledger.Rows) error {
	return first(
		func() error { return loadAll(c, &operations, &rows.Operations, keys.Operations) },
		func() error { return loadAll(c, &events, &rows.Events, keys.Events) },
		func() error { return loadAll(c, &sources, &rows.Sources, keys.Sources) },
		func() error { return loadAll(c, &unknownTypes, &rows.UnknownTypes, keys.UnknownTypes) },
		func() error { return c.loadParked(keys.Parked, rows) },
	)
}

func (c *conn) loadAccounts(keys *ledger.Keys, rows *ledger.Rows) error {
	return first(
		func() error { return loadAll(c, &unknownTypes, &rows.UnknownTypes, keys.UnknownTypes) },
		func() error { return loadAll(c, &reviews, &rows.Reviews, keys.Reviews) },
		func() error { return c.loadOpenReviews(keys.OpenReviews, rows) },
		func() error { return loadAll(c, &accounts, &rows.Accounts, keys.Accounts) },
		func() error { return loadAll(c, &budgets, &rows.Budgets, keys.Budgets) },
		func() error { return loadAll(c, &endpoints, &rows.Endpoints, keys.Endpoints) },
		func() error { return c.loadEndpointSets(keys.EndpointSets, rows) },
		func() error { return loadAll(c, &artifacts, &rows.Artifacts, keys.Artifacts) },
		func() error { return c.loadArtifactSets(keys.ArtifactSets, rows) },
	)
}

func (c *conn) loadQueues(keys *ledger.Keys, rows *ledger.Rows) error {
	return loadAll(c, &queues, &rows.Queues, keys.Queues)
}

func (c *conn) loadDeliveries(keys *ledger.Keys, rows *ledger.Rows) error {
	return first(
		func() error { return loadAll(c, &deliveries, &rows.Deliveries, keys.Deliveries) },
		func() error { return c.loadDueWork(keys.DueWork, rows) },
		func() error { return c.loadDueDeliveries(keys.DueDeliveries, rows) },
	)
}

func first(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// loadAll loads the rows of some keys; absent ones are recorded as absent.
func loadAll[K, R comparable](c *conn, t *table[K, R], into *ledger.Table[K, R], keys []K) error {
	for _, k := range keys {
		if into.Has(k) {
			continue
		}
		row, ok, err := find(c, t, k)
		if err != nil {
			return err
		}
		into.Loaded(k, row, ok)
	}
	return nil
}

// parkedOf and the following are the conditions of sets and windows; each is
// served by a partial index.
const (
	parkedOf = "WHERE parked = 1 AND source = ? AND task = ? ORDER BY at, id"
	// An operation has at most one open review a reason.
	openReviewsOf = "WHERE operation = ? AND closed_at = 0 ORDER BY id"
	endpointsOf   = "WHERE tenant = ? AND kind = 1 AND deleted_at = 0 ORDER BY id"
	dueWork       = "WHERE upstream = ? AND tenant = ? AND queue = ? AND due_at < 9223372036854775807 ORDER BY due_at, id LIMIT ?"
	dueDelivery   = "WHERE (due_at < 9223372036854775807 OR state <= 2) AND endpoint = ? AND due_at < 9223372036854775807 ORDER BY due_at, id LIMIT ?"
)

func (c *conn) loadParked(tasks []ledger.TaskID, rows *ledger.Rows) error {
	for _, k := range tasks {
		if rows.HasParked(k) {
			continue
		}
		parked, err := query(c, &events.relation, parkedOf, textValue(k.Upstream), textValue(k.Task))
		if err != nil {
			return err
		}
		for _, e := range parked {
			rows.Events.Loaded(e.ID, e, true)
		}
		rows.ParkedLoaded(k)
	}
	return nil
}

func (c *conn) loadOpenReviews(operations []pawl.ID, rows *ledger.Rows) error {
	for _, op := range operations {
		if rows.HasOpenReviews(op) {
			continue
		}
		open, err := query(c, &reviews.relation, openReviewsOf, idValue(op))
		if err != nil {
			return err
		}
		for _, r := range open {
			rows.Reviews.Loaded(r.ID, r, true)
		}
		rows.OpenReviewsLoaded(op)
	}
	return nil
}

func (c *conn) loadEndpointSets(tenants []string, rows *ledger.Rows) error {
	for _, tenant := range tenants {
		if rows.HasEndpointSet(tenant) {
			continue
		}
		set, err := query(c, &endpoints.relation, endpointsOf, textValue(tenant))
		if err != nil {
			return err
		}
		for _, e := range set {
			rows.Endpoints.Loaded(e.ID, e, true)
		}
		rows.EndpointSetLoaded(tenant)
	}
	return nil
}

// loadDueWork reads windows of whatever will be due, now or later: the row
// after the last wanted one says when the queue is due next.
func (c *conn) loadDueWork(windows []ledger.Window, rows *ledger.Rows) error {
	for _, w := range windows {
		if rows.HasDueWork(w) {
			continue
		}
		due, err := query(c, &operations.relation, dueWork, textValue(w.Queue.Upstream),
			textValue(w.Queue.Tenant), intValue(w.Queue.Kind), limit(w.Limit+1))
		if err != nil {
			return err
		}
		rows.DueWorkLoaded(w, due)
	}
	return nil
}

func (c *conn) loadDueDeliveries(windows []ledger.Window, rows *ledger.Rows) error {
	for _, w := range windows {
		if rows.HasDueDeliveries(w) {
			continue
		}
		due, err := query(c, &deliveries.relation, dueDelivery, blobValue(w.Queue.Endpoint[:]), limit(w.Limit+1))
		if err != nil {
			return err
		}
		rows.DueDeliveriesLoaded(w, due)
	}
	return nil
}

// limit keeps a negative number from meaning "no limit".
func limit(n int) value { return intValue(max(n, 0)) }
