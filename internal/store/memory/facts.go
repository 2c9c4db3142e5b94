package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// OperationFacts returns everything about operations after the given one.
func (s *Store) OperationFacts(ctx context.Context, p store.Page) (facts []ledger.Facts, err error) {
	err = s.read(ctx, func(t *tables) {
		for _, o := range limited(sorted(t.operations, byID, func(o ledger.Operation) bool {
			return o.ID.Compare(p.After) > 0
		}), p.Limit) {
			facts = append(facts, t.factsOf(o))
		}
	})
	return facts, err
}

func (t *tables) factsOf(o ledger.Operation) ledger.Facts {
	return ledger.Facts{
		Operation:   o,
		Keys:        sorted(t.idempotencyKeys, idempotencyKeyOrder, func(k ledger.IdempotencyKey) bool { return k.Operation == o.ID }),
		Correlation: t.correlations[ledger.CorrelationID{Tenant: o.Tenant, Value: o.CorrelationID}],
		Tasks:       sorted(t.tasks, taskOrder, func(k ledger.Task) bool { return k.Operation == o.ID }),
		History:     t.historyOf(o.ID),
		Inbound:     sorted(t.events, byID, func(e ledger.Event) bool { return e.Operation == o.ID && e.Direction == ledger.Inbound }),
		EventKeys: sorted(t.eventKeys, eventKeyOrder, func(k ledger.EventKey) bool {
			e := t.events[k.Event]
			return e.Operation == o.ID && e.Direction == ledger.Inbound
		}),
		Outbound:   sorted(t.events, byID, func(e ledger.Event) bool { return e.Operation == o.ID && e.Direction == ledger.Outbound }),
		Deliveries: sorted(t.deliveries, byID, func(d ledger.Delivery) bool { return d.Operation == o.ID }),
		Entries:    picked(t.entries, byID, func(e ledger.Entry) bool { return e.Operation == o.ID }),
		Budgets:    sorted(t.budgets, budgetOrder, func(b ledger.Budget) bool { return slices.Contains(o.Budgets(), b.ID) }),
		Reviews:    sorted(t.reviews, byID, func(r ledger.Review) bool { return r.Operation == o.ID }),
		Artifacts:  t.artifactsOf(o.ID),
		Endpoints: sorted(t.endpoints, byID, func(e ledger.Endpoint) bool {
			return e.ID == o.Callback || e.Kind == ledger.WebhookEndpoint && e.Tenant == o.Tenant && e.DeletedAt == 0
		}),
	}
}

func idempotencyKeyOrder(a, b ledger.IdempotencyKey) int {
	return cmp.Or(cmp.Compare(a.ID.Tenant, b.ID.Tenant), cmp.Compare(a.ID.Value, b.ID.Value))
}

func taskOrder(a, b ledger.Task) int {
	return cmp.Or(cmp.Compare(a.ID.Upstream, b.ID.Upstream), cmp.Compare(a.ID.Task, b.ID.Task))
}

func eventKeyOrder(a, b ledger.EventKey) int {
	return cmp.Or(cmp.Compare(a.ID.Source, b.ID.Source), cmp.Compare(a.ID.Task, b.ID.Task), cmp.Compare(a.ID.Event, b.ID.Event))
}

// AccountFacts returns each account with the sums of its journal, in the order
// of ids.
func (s *Store) AccountFacts(ctx context.Context) (facts []ledger.AccountFacts, err error) {
	err = s.read(ctx, func(t *tables) {
		for _, a := range sorted(t.accounts, byID, all[ledger.Account]) {
			f := ledger.AccountFacts{Account: a}
			for _, e := range t.entries {
				if e.Account == a.ID {
					f.Funded -= moved(e, ledger.Funding)
					f.Spent += moved(e, ledger.Spent)
					f.Reserved += moved(e, ledger.Reserving)
				}
			}
			for _, o := range t.operations {
				if o.Account == a.ID && o.Money == ledger.Held {
					f.Held += o.Reserved
				}
			}
			facts = append(facts, f)
		}
	})
	return facts, err
}

// BudgetFacts returns each budget with what it counts, in the order of keys.
func (s *Store) BudgetFacts(ctx context.Context) (facts []ledger.BudgetFacts, err error) {
	err = s.read(ctx, func(t *tables) {
		for _, b := range sorted(t.budgets, budgetOrder, all[ledger.Budget]) {
			f := ledger.BudgetFacts{Budget: b}
			for _, o := range t.operations {
				if slices.Contains(o.Budgets(), b.ID) {
					f.Counted += o.Counted()
				}
			}
			facts = append(facts, f)
		}
	})
	return facts, err
}

func budgetOrder(a, b ledger.Budget) int {
	return cmp.Or(cmp.Compare(a.ID.Kind, b.ID.Kind), cmp.Compare(a.ID.Name, b.ID.Name),
		cmp.Compare(a.ID.Currency, b.ID.Currency), cmp.Compare(a.ID.Day, b.ID.Day))
}

func all[R any](R) bool { return true }

// moved is what an entry brings into a bucket.
func moved(e ledger.Entry, b ledger.Bucket) (sum pawl.Amount) {
	if e.To == b {
		sum += e.Amount
	}
	if e.From == b {
		sum -= e.Amount
	}
	return sum
}

// EndpointFacts returns each endpoint's numbers, in the order of ids.
func (s *Store) EndpointFacts(ctx context.Context) (facts []ledger.EndpointFacts, err error) {
	err = s.read(ctx, func(t *tables) {
		for _, e := range sorted(t.endpoints, byID, all[ledger.Endpoint]) {
			f := ledger.EndpointFacts{Endpoint: e, Queue: t.queues[ledger.DeliveryQueueID(e.ID)]}
			seen := make(map[int64]bool)
			for _, d := range t.deliveries {
				if d.Endpoint == e.ID && d.Sequence > 0 {
					f.Numbered++
					f.Highest = max(f.Highest, d.Sequence)
					seen[d.Sequence] = true
				}
			}
			f.Distinct = int64(len(seen))
			for n := int64(1); n < f.Highest && f.FirstGap == 0; n++ {
				if !seen[n] {
					f.FirstGap = n
				}
			}
			facts = append(facts, f)
		}
	})
	return facts, err
}

// LooseFacts returns rows that hang on nothing they should hang on.
func (s *Store) LooseFacts(ctx context.Context) (loose ledger.LooseFacts, err error) {
	err = s.read(ctx, func(t *tables) {
		named := make(map[pawl.ID]bool)
		for _, k := range t.eventKeys {
			named[k.Event] = true
		}
		loose.EventsWithoutKey = sorted(t.events, byID, func(e ledger.Event) bool {
			return e.HoldsKey() && !named[e.ID]
		})
		of := make(map[pawl.ID][]ledger.Delivery)
		for _, d := range t.deliveries {
			of[d.Event] = append(of[d.Event], d)
		}
		loose.EventsMiscounted = sorted(t.events, byID, func(e ledger.Event) bool { return e != e.Tallied(of[e.ID]) })
		loose.ParkedWithOperation = sorted(t.events, byID, func(e ledger.Event) bool {
			return e.Parked && !t.tasks[ledger.TaskID{Upstream: e.Source, Task: e.Task}].Operation.IsZero()
		})
		loose.TasksWithoutOperation = sorted(t.tasks, taskOrder, func(k ledger.Task) bool {
			return !k.Operation.IsZero() && !has(t.operations, k.Operation)
		})
		loose.DeliveriesWithoutEvent = sorted(t.deliveries, byID, func(d ledger.Delivery) bool { return !has(t.events, d.Event) })
		loose.EntriesWithoutAccount = picked(t.entries, byID, func(e ledger.Entry) bool { return !has(t.accounts, e.Account) })
		loose.KeysWithoutOperation = sorted(t.idempotencyKeys, idempotencyKeyOrder, func(k ledger.IdempotencyKey) bool {
			return k.For == "operation" && !has(t.operations, k.Operation)
		})
	})
	return loose, err
}

func has[K comparable, R any](rows map[K]R, k K) bool {
	_, ok := rows[k]
	return ok
}
