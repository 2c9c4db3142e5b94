package storetest

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// known are the keys of everything that was ever written.
type known struct {
	keys     ledger.Keys
	payloads []ledger.PayloadID
}

// learn adds the keys of what a commit changed.
func (k *known) learn(r *ledger.Rows) {
	k.keys.Merge(ledger.Keys{
		Correlations: changedKeys(&r.Correlations), Budgets: changedKeys(&r.Budgets),
		IdempotencyKeys: changedKeys(&r.IdempotencyKeys), EventKeys: changedKeys(&r.EventKeys), Tasks: changedKeys(&r.Tasks),
		UnknownTypes: changedKeys(&r.UnknownTypes),
		Sources:      changedKeys(&r.Sources), Tenants: changedKeys(&r.Tenants), APIKeys: changedKeys(&r.APIKeys),
		Operations: changedKeys(&r.Operations), Events: changedKeys(&r.Events), Reviews: changedKeys(&r.Reviews),
		Accounts: changedKeys(&r.Accounts), Endpoints: changedKeys(&r.Endpoints), Queues: changedKeys(&r.Queues),
		Deliveries: changedKeys(&r.Deliveries), Artifacts: changedKeys(&r.Artifacts), WrappingKeys: changedKeys(&r.WrappingKeys), AuditSeals: changedKeys(&r.AuditSeals),
	})
	for _, p := range r.Payloads {
		k.payloads = append(k.payloads, p.ID)
	}
}

// upstreams are those that queues may belong to: the suite's, and any other
// that was written.
func (k *known) upstreams() []string {
	names := slices.Clone(upstreamNames)
	for _, q := range k.keys.Queues {
		if !slices.Contains(names, q.Upstream) {
			names = append(names, q.Upstream)
		}
	}
	return names
}

func changedKeys[K, R comparable](t *ledger.Table[K, R]) (keys []K) {
	for k := range t.Changes() {
		keys = append(keys, k)
	}
	return keys
}

// dump is every row of a driver, each table in the order of its keys.
type dump struct {
	IdempotencyKeys []ledger.IdempotencyKey
	Correlations    []ledger.Correlation
	EventKeys       []ledger.EventKey
	Tasks           []ledger.Task
	Sources         []ledger.Source
	UnknownTypes    []ledger.UnknownTypes
	Tenants         []ledger.Tenant
	APIKeys         []ledger.APIKey
	WrappingKeys    []ledger.WrappingKey
	AuditSeals      []ledger.AuditSeal
	Replays         []ledger.Replay
	Operations      []ledger.Operation
	Events          []ledger.Event
	Reviews         []ledger.Review
	Accounts        []ledger.Account
	Budgets         []ledger.Budget
	Endpoints       []ledger.EndpointFacts
	Queues          []ledger.Queue
	Deliveries      []ledger.Delivery
	Artifacts       []ledger.Artifact
	Payloads        map[ledger.PayloadID]string
	History         []ledger.History
	Entries         []ledger.Entry
	Attempts        []ledger.Attempt
	Audits          []ledger.Audit
	Stats           store.Stats
}

const everything = 1 << 20

// dumped reads the rows of the known keys where a table has no list, and
// everything that the lists give elsewhere.
func dumped(ctx context.Context, d store.Driver, k *known) (*dump, error) {
	var keys ledger.Keys
	keys.Merge(k.keys)
	var r ledger.Rows
	if err := d.Load(ctx, &keys, &r); err != nil {
		return nil, err
	}
	out := &dump{
		Correlations: ordered(&r.Correlations), Budgets: ordered(&r.Budgets),
		IdempotencyKeys: ordered(&r.IdempotencyKeys), EventKeys: ordered(&r.EventKeys), Tasks: ordered(&r.Tasks), Sources: ordered(&r.Sources),
		Artifacts:    ordered(&r.Artifacts),
		UnknownTypes: ordered(&r.UnknownTypes),
	}
	var err error
	all := store.Page{Limit: everything}
	collect(&err, &out.Tenants, func() ([]ledger.Tenant, error) { return d.Tenants(ctx) })
	sortBy(out.Tenants, func(t ledger.Tenant) any { return t.Name })
	collect(&err, &out.APIKeys, func() ([]ledger.APIKey, error) { return d.APIKeys(ctx, store.APIKeyFilter{}, all) })
	collect(&err, &out.WrappingKeys, func() ([]ledger.WrappingKey, error) { return d.WrappingKeys(ctx) })
	collect(&err, &out.AuditSeals, func() ([]ledger.AuditSeal, error) { return d.AuditSeals(ctx, 0, everything) })
	collect(&err, &out.Replays, func() ([]ledger.Replay, error) { return d.Replays(ctx, "", all) })
	collect(&err, &out.Operations, func() ([]ledger.Operation, error) { return d.Operations(ctx, store.OperationFilter{}, all) })
	collect(&err, &out.Events, func() ([]ledger.Event, error) { return d.Events(ctx, store.EventFilter{}, all) })
	collect(&err, &out.Reviews, func() ([]ledger.Review, error) { return d.Reviews(ctx, store.ReviewFilter{}, all) })
	collect(&err, &out.Accounts, func() ([]ledger.Account, error) { return d.Accounts(ctx, "", all) })
	collect(&err, &out.Endpoints, func() ([]ledger.EndpointFacts, error) { return d.EndpointFacts(ctx) })
	sortBy(out.Endpoints, func(f ledger.EndpointFacts) any { return f.Endpoint.ID })
	collect(&err, &out.Deliveries, func() ([]ledger.Delivery, error) { return d.Deliveries(ctx, store.DeliveryFilter{}, all) })
	for kind := ledger.SubmitQueue; kind <= ledger.DeliveryQueue; kind++ {
		for _, upstream := range k.upstreams() {
			collect(&err, &out.Queues, func() ([]ledger.Queue, error) { return d.Ready(ctx, kind, upstream, pawl.Never, everything) })
		}
	}
	sortBy(out.Queues, func(q ledger.Queue) any { return q.ID })
	for _, o := range out.Operations {
		collect(&err, &out.History, func() ([]ledger.History, error) { return d.History(ctx, o.ID) })
	}
	for _, a := range out.Accounts {
		collect(&err, &out.Entries, func() ([]ledger.Entry, error) { return d.Entries(ctx, a.ID, all) })
	}
	for _, row := range out.Deliveries {
		collect(&err, &out.Attempts, func() ([]ledger.Attempt, error) { return d.Attempts(ctx, row.ID) })
	}
	collect(&err, &out.Audits, func() ([]ledger.Audit, error) { return d.Audits(ctx, store.AuditFilter{}, all) })
	if err == nil {
		out.Payloads, err = d.Payloads(ctx, k.payloads...)
	}
	if err == nil {
		out.Stats, err = d.Stats(ctx)
	}
	return out, err
}

func ordered[K, R comparable](t *ledger.Table[K, R]) (all []R) {
	for _, r := range t.All() {
		all = append(all, r)
	}
	sortBy(all, func(r R) any { return r })
	return all
}

// collect adds what a list gives, unless one failed before.
func collect[R any](failed *error, into *[]R, list func() ([]R, error)) {
	if *failed != nil {
		return
	}
	var all []R
	all, *failed = list()
	*into = append(*into, all...)
}

// upstreamNames are those that the suite's queues belong to; deliveries have
// none.
var upstreamNames = []string{"", "up", "down", "hands"}
