package ledger

import (
	"iter"
	"slices"

	"github.com/pawlhq/pawl"
)

// Window asks for the oldest due rows of a queue.
type Window struct {
	Queue QueueID
	// Limit is how many due rows are wanted; one more is loaded, so that it is
	// known when the queue is due next.
	Limit int
}

// Keys names the rows that a command needs. A driver loads them in five
// stages, which are the lock order: claims, operations, accounts and endpoint
// sets, queues, then deliveries and windows of due rows.
type Keys struct {
	// Alone says that operations are wanted without what their tenants share:
	// accounts, budgets, queues of work, and endpoints held still. Endpoints are
	// read nevertheless, and not to be changed; see [Alone].
	Alone bool
	// Stage 1: claims.
	IdempotencyKeys []IdempotencyKeyID
	Correlations    []CorrelationID
	EventKeys       []EventKeyID
	Tasks           []TaskID
	Tenants         []string
	APIKeys         []pawl.ID
	WrappingKeys    []string
	AuditSeals      []int64
	Replays         []pawl.ID
	// Stage 2: operations, and what hangs on claims.
	Operations []pawl.ID
	Events     []pawl.ID
	Sources    []string
	// UnknownTypes are loaded again in stage 3: those of an operation's tenant
	// follow from it.
	UnknownTypes []UnknownTypesID
	Parked       []TaskID
	// Stage 3: reviews, accounts, budgets and endpoints; EndpointSets are tenants whose whole set
	// of webhook endpoints is wanted.
	// OpenReviews are operations whose open reviews are wanted.
	Reviews      []pawl.ID
	OpenReviews  []pawl.ID
	Accounts     []pawl.ID
	Budgets      []BudgetID
	EndpointSets []string
	Endpoints    []pawl.ID
	// ArtifactSets are operations of which all artifacts are wanted.
	Artifacts    []pawl.ID
	ArtifactSets []pawl.ID
	// Stage 4: queues.
	Queues []QueueID
	// Stage 5: deliveries and windows.
	Deliveries    []pawl.ID
	DueWork       []Window
	DueDeliveries []Window
}

// Stage is one step of loading.
type Stage int

// The stages in their order.
const (
	StageClaims Stage = iota + 1
	StageOperations
	StageAccounts
	StageQueues
	StageDeliveries
)

// Merge adds the keys of other. What follows from operations is left out only
// where both leave it out.
func (k *Keys) Merge(other Keys) {
	k.Alone = k.Alone && other.Alone
	k.IdempotencyKeys = union(k.IdempotencyKeys, other.IdempotencyKeys)
	k.Correlations = union(k.Correlations, other.Correlations)
	k.EventKeys = union(k.EventKeys, other.EventKeys)
	k.Tasks = union(k.Tasks, other.Tasks)
	k.Sources = union(k.Sources, other.Sources)
	k.UnknownTypes = union(k.UnknownTypes, other.UnknownTypes)
	k.Tenants = union(k.Tenants, other.Tenants)
	k.APIKeys = union(k.APIKeys, other.APIKeys)
	k.WrappingKeys = union(k.WrappingKeys, other.WrappingKeys)
	k.AuditSeals = union(k.AuditSeals, other.AuditSeals)
	k.Replays = union(k.Replays, other.Replays)
	k.Operations = union(k.Operations, other.Operations)
	k.Events = union(k.Events, other.Events)
	k.Reviews = union(k.Reviews, other.Reviews)
	k.OpenReviews = union(k.OpenReviews, other.OpenReviews)
	k.Parked = union(k.Parked, other.Parked)
	k.Accounts = union(k.Accounts, other.Accounts)
	k.Budgets = union(k.Budgets, other.Budgets)
	k.EndpointSets = union(k.EndpointSets, other.EndpointSets)
	k.Endpoints = union(k.Endpoints, other.Endpoints)
	k.Artifacts = union(k.Artifacts, other.Artifacts)
	k.ArtifactSets = union(k.ArtifactSets, other.ArtifactSets)
	k.Queues = union(k.Queues, other.Queues)
	k.Deliveries = union(k.Deliveries, other.Deliveries)
	k.DueWork = union(k.DueWork, other.DueWork)
	k.DueDeliveries = union(k.DueDeliveries, other.DueDeliveries)
}

// Len is how many keys there are in all.
func (k Keys) Len() int {
	return len(k.IdempotencyKeys) + len(k.Correlations) + len(k.EventKeys) + len(k.Tasks) + len(k.Sources) + len(k.UnknownTypes) + len(k.Tenants) +
		len(k.APIKeys) + len(k.WrappingKeys) + len(k.AuditSeals) + len(k.Replays) + len(k.Operations) + len(k.Events) + len(k.Reviews) + len(k.OpenReviews) +
		len(k.Parked) + len(k.Accounts) + len(k.Budgets) + len(k.EndpointSets) + len(k.Endpoints) + len(k.Queues) + len(k.Deliveries) +
		len(k.DueWork) + len(k.DueDeliveries) + len(k.Artifacts) + len(k.ArtifactSets)
}

func union[K comparable](a, b []K) []K {
	for _, k := range b {
		a = add(a, k)
	}
	return a
}

func add[K comparable](a []K, k K) []K {
	if slices.Contains(a, k) {
		return a
	}
	return append(a, k)
}

// Miss is raised by a draft that asks for a row that was not loaded. The
// committer ends the batch before the command and starts the next one with the
// missing keys added; the same command missing the same key twice is a bug.
type Miss struct{ Keys Keys }

// WorkQueueID names a queue of an upstream's operations of one tenant; kind
// is SubmitQueue or ReadQueue.
func WorkQueueID(kind QueueKind, upstream, tenant string) QueueID {
	return QueueID{Kind: kind, Upstream: upstream, Tenant: tenant}
}

// DeliveryQueueID names the queue of an endpoint's deliveries.
func DeliveryQueueID(endpoint pawl.ID) QueueID {
	return QueueID{Kind: DeliveryQueue, Endpoint: endpoint}
}

// Tenant is the tenant that the keys themselves name, "" where they name rows by
// ids alone or none of a tenant.
func (k *Keys) Tenant() string {
	switch {
	case len(k.IdempotencyKeys) > 0:
		return k.IdempotencyKeys[0].Tenant
	case len(k.Tenants) > 0:
		return k.Tenants[0]
	case len(k.EndpointSets) > 0:
		return k.EndpointSets[0]
	}
	for _, q := range k.Queues {
		if q.Tenant != "" {
			return q.Tenant
		}
	}
	return ""
}

// Owned are the ids of the operations and endpoints that are asked for: each is
// a tenant's.
func (k *Keys) Owned() iter.Seq[pawl.ID] {
	return func(yield func(pawl.ID) bool) {
		for _, ids := range [...][]pawl.ID{k.Operations, k.Endpoints} {
			for _, id := range ids {
				if !yield(id) {
					return
				}
			}
		}
		for _, q := range k.Queues {
			if q.Kind == DeliveryQueue && !yield(q.Endpoint) {
				return
			}
		}
	}
}
