package postgres

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	nextOperations = "WHERE id > $1::uuid ORDER BY id LIMIT $2::bigint"

	keysOf       = "WHERE operation = $1::uuid ORDER BY tenant, value"
	tasksOf      = "WHERE operation = $1::uuid ORDER BY upstream, task"
	eventKeysOf  = "WHERE event = ANY (ARRAY(SELECT id FROM events WHERE operation = $1::uuid AND direction = 1)) ORDER BY source, task, external_id"
	eventsOf     = "WHERE operation = $1::uuid AND direction = $2::bigint ORDER BY id"
	ofOperation  = "WHERE operation = $1::uuid ORDER BY id"
	sumOfEntries = `SELECT
	coalesce(sum(CASE 'funding' WHEN from_bucket THEN amount WHEN to_bucket THEN -amount END), 0)::bigint,
	coalesce(sum(CASE 'spent' WHEN to_bucket THEN amount WHEN from_bucket THEN -amount END), 0)::bigint,
	coalesce(sum(CASE 'reserved' WHEN to_bucket THEN amount WHEN from_bucket THEN -amount END), 0)::bigint
FROM entries WHERE account = $1::uuid`
	sumOfHeld   = "SELECT coalesce(sum(reserved), 0)::bigint FROM operations WHERE (state <= 3 OR money = 2) AND money = 2 AND account = $1::uuid"
	nextBudget  = "WHERE (kind, name, currency, day) > (($1::bigint[])[1], ($2::text[])[1], ($3::text[])[1], ($4::bigint[])[1]) ORDER BY kind, name, currency, day LIMIT 1"
	sumOfKey    = "SELECT coalesce(sum(CASE money WHEN 2 THEN reserved ELSE charged END), 0)::bigint FROM operations WHERE key_budget AND api_key = $1::uuid AND currency = $2::text"
	sumOfDay    = "SELECT coalesce(sum(CASE money WHEN 2 THEN reserved ELSE charged END), 0)::bigint FROM operations WHERE spend_day > 0 AND upstream = $1::text AND spend_day = $2::bigint AND currency = $3::text"
	sequencesOf = "SELECT sequence FROM deliveries WHERE endpoint = $1::uuid AND sequence > 0 ORDER BY sequence"
)

// OperationFacts returns everything about operations after the given one.
func (r *Reader) OperationFacts(ctx context.Context, p store.Page) (facts []ledger.Facts, err error) {
	err = r.read(ctx, "read facts of operations", func(c *conn) error {
		rows, err := query(ctx, c, &operations.relation, nextOperations, idValue(p.After), limit(p.Limit))
		if err != nil {
			return err
		}
		facts = make([]ledger.Facts, len(rows))
		p := c.pipe(ctx)
		for i := range rows {
			facts[i].Operation = rows[i]
			operationFacts(p, &facts[i])
		}
		if err := p.run(); err != nil {
			return err
		}
		sets := make(map[string][]ledger.Endpoint)
		for i := range facts {
			f := &facts[i]
			if err := c.budgetsOf(ctx, f); err != nil {
				return err
			}
			if f.Endpoints, err = c.wanting(ctx, f.Operation, sets); err != nil {
				return err
			}
		}
		return nil
	})
	return facts, err
}

// operationFacts asks for what hangs on an operation: a page's questions go to
// the server together.
func operationFacts(p *pipe, f *ledger.Facts) {
	op := idValue(f.Operation.ID)
	fill(p, &f.Keys, &idempotencyKeys.relation, keysOf, op)
	id := ledger.CorrelationID{Tenant: f.Operation.Tenant, Value: f.Operation.CorrelationID}
	p.query(correlations.get, correlations.written([]ledger.CorrelationID{id}), func(row [][]byte) error {
		f.Correlation = correlations.read(row)
		return nil
	})
	fill(p, &f.Tasks, &tasks.relation, tasksOf, op)
	fill(p, &f.History, &history, historyOf, op)
	fill(p, &f.Inbound, &events.relation, eventsOf, op, intValue(ledger.Inbound))
	fill(p, &f.EventKeys, &eventKeys.relation, eventKeysOf, op)
	fill(p, &f.Outbound, &events.relation, eventsOf, op, intValue(ledger.Outbound))
	fill(p, &f.Deliveries, &deliveries.relation, ofOperation, op)
	fill(p, &f.Entries, &entries, ofOperation, op)
	fill(p, &f.Reviews, &reviews.relation, ofOperation, op)
	fill(p, &f.Artifacts, &artifacts.relation, ofOperation, op)
}

// wanting are the endpoints that may want an operation's events.
func (c *conn) wanting(ctx context.Context, op ledger.Operation, sets map[string][]ledger.Endpoint) (all []ledger.Endpoint, err error) {
	all, known := sets[op.Tenant]
	if !known {
		if all, err = query(ctx, c, &endpoints.relation, endpointsOf, textArray([]string{op.Tenant})); err != nil {
			return nil, err
		}
		sets[op.Tenant] = all
	}
	if op.Callback.IsZero() {
		return all, nil
	}
	callback, ok, err := find(ctx, c, &endpoints, op.Callback)
	if ok {
		all = append(slices.Clip(all), callback)
	}
	return all, err
}

func fill[R any](p *pipe, rows *[]R, t *relation[R], rest string, args ...value) {
	p.query("SELECT "+t.list+" FROM "+t.name+" "+rest, args, into(t, rows))
}

// AccountFacts returns each account with the sums of its journal, in the order
// of ids. Each account is read in a snapshot of its own, so that the whole of
// a long journal does not pin the log.
func (r *Reader) AccountFacts(ctx context.Context) ([]ledger.AccountFacts, error) {
	return each(ctx, r, &accounts.relation, accounts.key, func(c *conn, f *ledger.AccountFacts, account ledger.Account) error {
		f.Account = account
		id := []value{idValue(account.ID)}
		return first(
			func() error {
				return c.each(ctx, sumOfEntries, id, func(row [][]byte) error {
					f.Funded, f.Spent = pawl.Amount(fromInt(row[0])), pawl.Amount(fromInt(row[1]))
					f.Reserved = pawl.Amount(fromInt(row[2]))
					return nil
				})
			},
			func() error {
				return c.each(ctx, sumOfHeld, id, func(row [][]byte) error {
					f.Held = pawl.Amount(fromInt(row[0]))
					return nil
				})
			},
		)
	})
}

// budgetsOf reads those budgets of an operation that exist.
func (c *conn) budgetsOf(ctx context.Context, f *ledger.Facts) error {
	for _, id := range f.Operation.Budgets() {
		b, ok, err := find(ctx, c, &budgets, id)
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
			rows, err := query(ctx, c, &budgets.relation, nextBudget, budgets.written([]ledger.BudgetID{after.ID})...)
			if found = len(rows) > 0; err != nil || !found {
				return err
			}
			after = rows[0]
			counted, err := c.counted(ctx, after.ID)
			facts = append(facts, ledger.BudgetFacts{Budget: after, Counted: counted})
			return err
		})
	}
	return facts, err
}

// counted is what the operations that a budget counts come to.
func (c *conn) counted(ctx context.Context, id ledger.BudgetID) (sum pawl.Amount, err error) {
	sql, args := sumOfDay, []value{textValue(id.Name), intValue(id.Day), textValue(id.Currency)}
	if id.Kind == ledger.KeyBudget {
		key, err := pawl.ParseID(pawl.PrefixKey, id.Name)
		if err != nil {
			return 0, nil // No operation has such a key.
		}
		sql, args = sumOfKey, []value{idValue(key), textValue(id.Currency)}
	}
	err = c.each(ctx, sql, args, func(row [][]byte) error {
		sum = pawl.Amount(fromInt(row[0]))
		return nil
	})
	return sum, err
}

// EndpointFacts returns each endpoint's numbers, in the order of ids, each
// endpoint in a snapshot of its own.
func (r *Reader) EndpointFacts(ctx context.Context) ([]ledger.EndpointFacts, error) {
	return each(ctx, r, &endpoints.relation, endpoints.key, func(c *conn, f *ledger.EndpointFacts, endpoint ledger.Endpoint) error {
		queue, _, err := find(ctx, c, &queues, ledger.DeliveryQueueID(endpoint.ID))
		if err != nil {
			return err
		}
		f.Endpoint, f.Queue = endpoint, queue
		return c.each(ctx, sequencesOf, []value{idValue(endpoint.ID)}, func(row [][]byte) error {
			counted(f, fromInt(row[0]))
			return nil
		})
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
func each[R, F any](ctx context.Context, r *Reader, t *relation[R], of func(R) pawl.ID, tell func(*conn, *F, R) error) ([]F, error) {
	var facts []F
	var after pawl.ID
	for {
		var f F
		var found bool
		err := r.read(ctx, "read facts of "+t.name, func(c *conn) error {
			rows, err := query(ctx, c, t, "WHERE id > $1::uuid ORDER BY id LIMIT 1", idValue(after))
			if err != nil || len(rows) == 0 {
				return err
			}
			found = true
			after = of(rows[0])
			return tell(c, &f, rows[0])
		})
		if err != nil || !found {
			return facts, err
		}
		facts = append(facts, f)
	}
}
