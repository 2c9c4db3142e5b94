package ledger

import (
	"cmp"
	"slices"

	"github.com/pawlhq/pawl"
)

// Rows are the rows of one batch: loaded by a driver, changed by the batch's
// commands, saved by the driver. The slices hold what is only ever added.
type Rows struct {
	IdempotencyKeys Table[IdempotencyKeyID, IdempotencyKey]
	Correlations    Table[CorrelationID, Correlation]
	EventKeys       Table[EventKeyID, EventKey]
	Tasks           Table[TaskID, Task]
	Sources         Table[string, Source]
	UnknownTypes    Table[UnknownTypesID, UnknownTypes]
	Tenants         Table[string, Tenant]
	APIKeys         Table[pawl.ID, APIKey]
	WrappingKeys    Table[string, WrappingKey]
	Replays         Table[pawl.ID, Replay]
	Operations      Table[pawl.ID, Operation]
	Events          Table[pawl.ID, Event]
	Reviews         Table[pawl.ID, Review]
	Accounts        Table[pawl.ID, Account]
	Budgets         Table[BudgetID, Budget]
	Endpoints       Table[pawl.ID, Endpoint]
	Queues          Table[QueueID, Queue]
	Deliveries      Table[pawl.ID, Delivery]
	Artifacts       Table[pawl.ID, Artifact]

	Payloads []Payload
	History  []History
	Entries  []Entry
	Attempts []Attempt
	Audits   []Audit

	// Removed is what goes before anything of the above is added.
	Removed Removals

	endpointSets  map[string]bool
	openReviews   map[pawl.ID]bool
	artifactSets  map[pawl.ID]bool
	parked        map[TaskID]bool
	dueWork       map[QueueID]horizon
	dueDeliveries map[QueueID]horizon
}

// horizon is how far a loaded window reaches: rows at or before (due, id) are
// all known. An open horizon reaches to the end of the queue.
type horizon struct {
	limit int
	open  bool
	due   pawl.Time
	id    pawl.ID
}

func (h horizon) covers(due pawl.Time, id pawl.ID) bool {
	return h.open || due < h.due || due == h.due && id.Compare(h.id) <= 0
}

// EndpointSetLoaded records that all webhook endpoints of a tenant are loaded.
func (r *Rows) EndpointSetLoaded(tenant string) {
	if r.endpointSets == nil {
		r.endpointSets = make(map[string]bool)
	}
	r.endpointSets[tenant] = true
}

// ParkedLoaded records that all parked events of a task are loaded.
func (r *Rows) ParkedLoaded(t TaskID) {
	if r.parked == nil {
		r.parked = make(map[TaskID]bool)
	}
	r.parked[t] = true
}

// OpenReviewsLoaded records that all open reviews of an operation are loaded.
func (r *Rows) OpenReviewsLoaded(operation pawl.ID) {
	if r.openReviews == nil {
		r.openReviews = make(map[pawl.ID]bool)
	}
	r.openReviews[operation] = true
}

// HasOpenReviews reports whether an operation's open reviews are loaded.
func (r *Rows) HasOpenReviews(operation pawl.ID) bool { return r.openReviews[operation] }

// HasEndpointSet reports whether a tenant's endpoints are loaded.
func (r *Rows) HasEndpointSet(tenant string) bool { return r.endpointSets[tenant] }

// HasParked reports whether a task's parked events are loaded.
func (r *Rows) HasParked(t TaskID) bool { return r.parked[t] }

// HasDueWork reports whether a window of at least that size is loaded.
func (r *Rows) HasDueWork(w Window) bool {
	h, ok := r.dueWork[w.Queue]
	return ok && (h.open || h.limit >= w.Limit)
}

// HasDueDeliveries reports whether a window of at least that size is loaded.
func (r *Rows) HasDueDeliveries(w Window) bool {
	h, ok := r.dueDeliveries[w.Queue]
	return ok && (h.open || h.limit >= w.Limit)
}

// DueWorkLoaded records the rows of a window in (due, id) order. A driver
// reads Limit+1 rows; fewer mean that the queue holds no more.
func (r *Rows) DueWorkLoaded(w Window, rows []Operation) {
	h := horizon{limit: w.Limit, open: len(rows) <= w.Limit}
	for _, row := range rows {
		h.due, h.id = row.DueAt, row.ID
		r.Operations.Loaded(row.ID, row, true)
	}
	if r.dueWork == nil {
		r.dueWork = make(map[QueueID]horizon)
	}
	r.dueWork[w.Queue] = h
}

// DueDeliveriesLoaded is [Rows.DueWorkLoaded] for deliveries.
func (r *Rows) DueDeliveriesLoaded(w Window, rows []Delivery) {
	h := horizon{limit: w.Limit, open: len(rows) <= w.Limit}
	for _, row := range rows {
		h.due, h.id = row.DueAt, row.ID
		r.Deliveries.Loaded(row.ID, row, true)
	}
	if r.dueDeliveries == nil {
		r.dueDeliveries = make(map[QueueID]horizon)
	}
	r.dueDeliveries[w.Queue] = h
}

// Follow adds to keys what the rows loaded so far lead to and the stage is
// about to load: later keys follow from earlier rows by this one function.
func (r *Rows) Follow(stage Stage, keys *Keys) {
	switch stage {
	case StageOperations:
		for _, k := range keys.IdempotencyKeys {
			if row, ok := r.IdempotencyKeys.Get(k); ok {
				keys.Operations = add(keys.Operations, row.Operation)
			}
		}
		for _, k := range keys.Correlations {
			if row, ok := r.Correlations.Get(k); ok {
				keys.Operations = add(keys.Operations, row.Operation)
			}
		}
		for _, k := range keys.EventKeys {
			// What becomes of a repeat depends on the first one where its key has no
			// task: at generic sources.
			if row, ok := r.EventKeys.Get(k); ok && k.Task == "" {
				keys.Events = add(keys.Events, row.Event)
			}
		}
		for _, k := range keys.Tasks {
			row, ok := r.Tasks.Get(k)
			if ok && row.Operation.IsZero() {
				keys.Parked = add(keys.Parked, k)
				keys.Sources = add(keys.Sources, k.Upstream)
			}
			if ok && !row.Operation.IsZero() {
				keys.Operations = add(keys.Operations, row.Operation)
			}
		}
	case StageAccounts:
		for _, name := range keys.Tenants {
			if t, ok := r.Tenants.Get(name); ok && !t.Account.IsZero() {
				keys.Accounts = add(keys.Accounts, t.Account)
			}
		}
		for _, k := range keys.IdempotencyKeys {
			if row, ok := r.IdempotencyKeys.Get(k); ok && row.For == ForAccount {
				keys.Accounts = add(keys.Accounts, row.Operation)
			}
		}
		for _, id := range keys.APIKeys {
			if k, ok := r.APIKeys.Get(id); ok && k.Limits.Currency != "" {
				keys.Budgets = add(keys.Budgets, KeyBudgetID(id, k.Limits.Currency))
			}
		}
		for _, id := range keys.Operations {
			op, ok := r.Operations.Get(id)
			if !ok {
				continue
			}
			keys.EndpointSets = add(keys.EndpointSets, op.Tenant)
			keys.Queues = add(keys.Queues, WorkQueueID(SubmitQueue, op.Upstream, op.Tenant))
			keys.Queues = add(keys.Queues, WorkQueueID(ReadQueue, op.Upstream, op.Tenant))
			if !op.Account.IsZero() {
				keys.Accounts = add(keys.Accounts, op.Account)
			}
			keys.Budgets = union(keys.Budgets, op.Budgets())
			if !op.Callback.IsZero() {
				keys.Endpoints = add(keys.Endpoints, op.Callback)
			}
			if op.Reviews != 0 {
				keys.OpenReviews = add(keys.OpenReviews, id)
			}
			if op.Artifacts > 0 {
				keys.ArtifactSets = add(keys.ArtifactSets, id)
			}
		}
		if len(keys.Parked) > 0 || len(keys.Events) > 0 {
			for _, e := range r.Events.All() {
				if e.Parked && !e.Review.IsZero() {
					keys.Reviews = add(keys.Reviews, e.Review)
				}
			}
		}
		r.followUnknown(keys)
	case StageQueues:
		for _, tenant := range keys.EndpointSets {
			for id, ep := range r.Endpoints.All() {
				if ep.Tenant == tenant && ep.DeletedAt == 0 {
					keys.Queues = add(keys.Queues, DeliveryQueueID(id))
				}
			}
		}
		for _, id := range keys.Endpoints {
			keys.Queues = add(keys.Queues, DeliveryQueueID(id))
		}
	}
}

// due is one row of a window as the batch sees it now.
type due struct {
	at pawl.Time
	id pawl.ID
}

func sortDue(rows []due) {
	slices.SortFunc(rows, func(a, b due) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.id.Compare(b.id))
	})
}
