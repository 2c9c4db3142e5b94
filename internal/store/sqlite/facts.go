package sqlite

import (
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	nextOperations = "WHERE id > ? ORDER BY id LIMIT ?"

	keysOf       = "WHERE operation = ? ORDER BY tenant, value"
	tasksOf      = "WHERE operation = ? ORDER BY upstream, task"
	eventKeysOf  = "WHERE event IN (SELECT id FROM events WHERE operation = ? AND direction = 1) ORDER BY source, task, external_id"
	eventsOf     = "WHERE operation = ? AND direction = ? ORDER BY id"
	ofOperation  = "WHERE operation = ? ORDER BY id"
	sumOfEntries = `SELECT
	sum(iif(from_bucket = 'funding', amount, 0) - iif(to_bucket = 'funding', amount, 0)),
	sum(iif(to_bucket = 'spent', amount, 0) - iif(from_bucket = 'spent', amount, 0)),
	sum(iif(to_bucket = 'reserved', amount, 0) - iif(from_bucket = 'reserved', amount, 0))
FROM entries WHERE account = ?`
	sumOfHeld   = "SELECT sum(reserved) FROM operations WHERE (state <= 3 OR money = 2) AND money = 2 AND account = ?"
	nextBudget  = "WHERE (kind, name, currency, day) > (?, ?, ?, ?) ORDER BY kind, name, currency, day LIMIT 1"
	sumOfKey    = "SELECT sum(iif(money = 2, reserved, charged)) FROM operations WHERE key_budget = 1 AND api_key = ? AND currency = ?"
	sumOfDay    = "SELECT sum(iif(money = 2, reserved, charged)) FROM operations WHERE spend_day > 0 AND upstream = ? AND spend_day = ? AND currency = ?"
	sequencesOf = "SELECT sequence FROM deliveries WHERE endpoint = ? AND sequence > 0 ORDER BY sequence"
)

// OperationFacts returns everything about operations after the given one.
func (r *Reader) OperationFacts(ctx context.Context, p store.Page) (facts []ledger.Facts, err error) {
	err = r.read(ctx, "read facts of operations", func(c *conn) error {
		rows, err := query(c, &operations.relation, nextOperations, idValue(p.After), limit(p.Limit))
		if err != nil {
			return err
		}
		facts = make([]ledger.Facts, len(rows))
		sets := make(map[string][]ledger.Endpoint)
		for i := range rows {
			facts[i].Operation = rows[i]
			if err := c.operationFacts(&facts[i], sets); err != nil {
				return err
			}
		}
		return nil
	})
	return facts, err
}

// operationFacts reads what hangs on an operation. The sets are the endpoints
// of the tenants seen so far.
func (c *conn) operationFacts(f *ledger.Facts, sets map[string][]ledger.Endpoint) error {
	op := idValue(f.Operation.ID)
	return first(
		func() error { return fill(c, &f.Keys, &idempotencyKeys.relation, keysOf, op) },
		func() (err error) {
			f.Correlation, _, err = find(c, &correlations, ledger.CorrelationID{Tenant: f.Operation.Tenant, Value: f.Operation.CorrelationID})
			return err
		},
		func() error { return fill(c, &f.Tasks, &tasks.relation, tasksOf, op) },
		func() error { return fill(c, &f.History, &history, historyOf, op) },
		func() error { return fill(c, &f.Inbound, &events.relation, eventsOf, op, intValue(ledger.Inbound)) },
		func() error { return fill(c, &f.EventKeys, &eventKeys.relation, eventKeysOf, op) },
		func() error { return fill(c, &f.Outbound, &events.relation, eventsOf, op, intValue(ledger.Outbound)) },
		func() error { return fill(c, &f.Deliveries, &deliveries.relation, ofOperation, op) },
		func() error { return fill(c, &f.Entries, &entries, ofOperation, op) },
		func() error { return c.budgetsOf(f) },
		func() error { return fill(c, &f.Reviews, &reviews.relation, ofOperation, op) },
		func() error { return fill(c, &f.Artifacts, &artifacts.relation, ofOperation, op) },
		func() (err error) {
			f.Endpoints, err = c.wanting(f.Operation, sets)
			return err
		},
	)
}

// wanting are the endpoints that may want an operation's events.
func (c *conn) wanting(op ledger.Operation, sets map[string][]ledger.Endpoint) (all []ledger.Endpoint, err error) {
	all, known := sets[op.Tenant]
	if !known {
		if all, err = query(c, &endpoints.relation, endpointsOf, textValue(op.Tenant)); err != nil {
			return nil, err
		}
		sets[op.Tenant] = all
	}
	if op.Callback.IsZero() {
		return all, nil
	}
	callback, ok, err := find(c, &endpoints, op.Callback)
	if ok {
		all = append(slices.Clip(all), callback)
	}
	return all, err
}

func fill[R any](c *conn, into *[]R, t *relation[R], rest string, args ...value) (err error) {
	*into, err = query(c, t, rest, args...)
	return err
}

// AccountFacts returns each account with the sums of its journal, in the order
// of ids. Each account is read in a snapshot of its own, so that the whole of
// a long journal does not pin the log.
func (r *Reader) AccountFacts(ctx context.Context) ([]ledger.AccountFacts, error) {
	return each(ctx, r, &accounts.relation, func(c *conn, f *ledger.AccountFacts, account ledger.Account) error {
		f.Account = account
		id := []value{idValue(account.ID)}
		return first(
			func() error {
				return c.each(sumOfEntries, id, func(s *sqlite3.Stmt) {
					f.Funded, f.Spent = pawl.Amount(s.ColumnInt64(0)), pawl.Amount(s.ColumnInt64(1))
					f.Reserved = pawl.Amount(s.ColumnInt64(2))
				})
			},
			func() error {
				return c.each(sumOfHeld, id, func(s *sqlite3.Stmt) { f.Held = pawl.Amount(s.ColumnInt64(0)) })
			},
		)
	})
}

// budgetsOf reads those budgets of an operation that exist.
func (c *conn) budgetsOf(f *ledger.Facts) error {
	for _, id := range f.Operation.Budgets() {
		b, ok, err := find(c, &budgets, id)
		if err != nil {
			return err
		}
		if ok {
			f.Budgets = append(f.Budgets, b)
		}
	}
	return nil
}

// BudgetFacts returns each budget with what it counts, in the order of keys,
// each in a snapshot of its own.
func (r *Reader) BudgetFacts(ctx context.Context) (facts []ledger.BudgetFacts, err error) {
	var after ledger.Budget
	for found := true; found && err == nil; {
		err = r.read(ctx, "read facts of budgets", func(c *conn) error {
			rows, err := query(c, &budgets.relation, nextBudget, write(c, &budgets.relation, &after, budgets.keys)...)
			if found = len(rows) > 0; err != nil || !found {
				return err
			}
			after = rows[0]
			counted, err := c.counted(after.ID)
			facts = append(facts, ledger.BudgetFacts{Budget: after, Counted: counted})
			return err
		})
	}
	return facts, err
}

// counted is what the operations that a budget counts come to.
func (c *conn) counted(id ledger.BudgetID) (sum pawl.Amount, err error) {
	sql, args := sumOfDay, []value{textValue(id.Name), intValue(id.Day), textValue(id.Currency)}
	if id.Kind == ledger.KeyBudget {
		key, err := pawl.ParseID(pawl.PrefixKey, id.Name)
		if err != nil {
			return 0, nil // No operation has such a key.
		}
		sql, args = sumOfKey, []value{idValue(key), textValue(id.Currency)}
	}
	err = c.each(sql, args, func(s *sqlite3.Stmt) { sum = pawl.Amount(s.ColumnInt64(0)) })
	return sum, err
}

// EndpointFacts returns each endpoint's numbers, in the order of ids, each
// endpoint in a snapshot of its own.
func (r *Reader) EndpointFacts(ctx context.Context) ([]ledger.EndpointFacts, error) {
	return each(ctx, r, &endpoints.relation, func(c *conn, f *ledger.EndpointFacts, endpoint ledger.Endpoint) error {
		queue, _, err := find(c, &queues, ledger.DeliveryQueueID(endpoint.ID))
		if err != nil {
			return err
		}
		f.Endpoint, f.Queue = endpoint, queue
		return c.each(sequencesOf, []value{idValue(endpoint.ID)}, func(s *sqlite3.Stmt) { counted(f, s.ColumnInt64(0)) })
	})
}

// counted takes one more sequence into account; they come in order.
func counted(f *ledger.EndpointFacts, sequence int64) {
	f.Numbered++
	if sequence == f.Highest {
		return
	}
	if sequence > f.Highest+1 && f.FirstGap == 0 {
		f.FirstGap = f.Highest + 1
	}
	f.Distinct++
	f.Highest = sequence
}

// each makes the facts of each row of a small table, one snapshot a row.
func each[R, F any](ctx context.Context, r *Reader, t *relation[R], tell func(*conn, *F, R) error) ([]F, error) {
	var facts []F
	var after pawl.ID
	for {
		var f F
		var found bool
		err := r.read(ctx, "read facts of "+t.name, func(c *conn) error {
			rows, err := query(c, t, "WHERE id > ? ORDER BY id LIMIT 1", idValue(after))
			if err != nil || len(rows) == 0 {
				return err
			}
			found = true
			after = pawl.ID(write(c, t, &rows[0], 1)[0].blob[:16])
			return tell(c, &f, rows[0])
		})
		if err != nil || !found {
			return facts, err
		}
		facts = append(facts, f)
	}
}
