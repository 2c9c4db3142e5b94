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
	AuditSeals      Table[int64, AuditSeal]
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
	at    pawl.Time
	id    pawl.ID
	// left counts the rows that were found and are not there any more.
	left int
}

func (h horizon) covers(at pawl.Time, id pawl.ID) bool {
	return h.open || at < h.at || at == h.at && id.Compare(h.id) <= 0
}

// holds reports whether an operation is one of a queue's window.
func (h horizon) holds(q QueueID, op Operation) bool {
	return op.DueAt != pawl.Never && op.Queue == q.Kind && op.Upstream == q.Upstream && op.Tenant == q.Tenant && h.covers(op.DueAt, op.ID)
}

// EndpointSetLoaded records that all webhook endpoints of a tenant are loaded,
// and that none comes in before the batch is saved.
func (r *Rows) EndpointSetLoaded(tenant string) { r.endpointSet(tenant, true) }

// EndpointSetSeen records that all webhook endpoints of a tenant are loaded as
// they were: another may come in at any time.
func (r *Rows) EndpointSetSeen(tenant string) { r.endpointSet(tenant, false) }

func (r *Rows) endpointSet(tenant string, held bool) {
	if r.endpointSets == nil {
		r.endpointSets = make(map[string]bool)
	}
	r.endpointSets[tenant] = held
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

// HasEndpointSet reports whether a tenant's endpoints are loaded and held still.
func (r *Rows) HasEndpointSet(tenant string) bool { return r.endpointSets[tenant] }

// SeesEndpointSet reports whether they are loaded at all.
func (r *Rows) SeesEndpointSet(tenant string) bool {
	_, seen := r.endpointSets[tenant]
	return seen
}

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
	found := make([]Due, len(rows))
	for i, row := range rows {
		found[i] = Due{row.DueAt, row.ID}
	}
	r.DueWorkFound(w, found, rows)
}

// DueWorkFound is [Rows.DueWorkLoaded] where rows are locked after they were
// found, and may have become due later or have left the queue between the two:
// what was found says how far the window reaches, whatever the rows are now.
func (r *Rows) DueWorkFound(w Window, found []Due, rows []Operation) {
	h := horizon{limit: w.Limit, open: len(found) <= w.Limit, left: len(found)}
	if n := len(found); n > 0 {
		h.at, h.id = found[n-1].At, found[n-1].ID
	}
	for _, row := range rows {
		if h.holds(w.Queue, row) {
			h.left--
		}
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
		h.at, h.id = row.DueAt, row.ID
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
			// An event of a task that no operation has is parked, which its source
			// counts. Others leave the source alone: all of a provider would meet there.
			if claim, _ := r.Tasks.Get(TaskID{k.Source, k.Task}); k.Task != "" && claim.Operation.IsZero() {
				keys.Sources = add(keys.Sources, k.Source)
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
			if !keys.Alone {
				keys.Queues = add(keys.Queues, WorkQueueID(SubmitQueue, op.Upstream, op.Tenant))
				keys.Queues = add(keys.Queues, WorkQueueID(ReadQueue, op.Upstream, op.Tenant))
				if !op.Account.IsZero() {
					keys.Accounts = add(keys.Accounts, op.Account)
				}
				keys.Budgets = union(keys.Budgets, op.Budgets())
			}
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
				if ep.Tenant == tenant && ep.DeletedAt == 0 && (!keys.Alone || wants(ep, pawl.TypeProgress)) {
					keys.Queues = add(keys.Queues, DeliveryQueueID(id))
				}
			}
		}
		for _, id := range keys.Endpoints {
			if ep, _ := r.Endpoints.Get(id); !keys.Alone || wants(ep, pawl.TypeProgress) {
				keys.Queues = add(keys.Queues, DeliveryQueueID(id))
			}
		}
	}
}

// Due is one row of a window: when it is due, and its id.
type Due struct {
	At pawl.Time
	ID pawl.ID
}

func sortDue(rows []Due) {
	slices.SortFunc(rows, func(a, b Due) int {
		return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID))
	})
}
