package sqlite

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// save writes what a batch changed and added, row by row.
func (c *conn) save(rows *ledger.Rows) error {
	return first(
		func() error { return c.removeAll(rows.Removed) },
		func() error { return saveAll(c, &idempotencyKeys, &rows.IdempotencyKeys) },
		func() error { return saveAll(c, &correlations, &rows.Correlations) },
		func() error { return saveAll(c, &eventKeys, &rows.EventKeys) },
		func() error { return saveAll(c, &tasks, &rows.Tasks) },
		func() error { return saveAll(c, &sources, &rows.Sources) },
		func() error { return saveAll(c, &unknownTypes, &rows.UnknownTypes) },
		func() error { return saveAll(c, &tenants, &rows.Tenants) },
		func() error { return saveAll(c, &apiKeys, &rows.APIKeys) },
		func() error { return saveAll(c, &wrappingKeys, &rows.WrappingKeys) },
		func() error { return saveAll(c, &auditSeals, &rows.AuditSeals) },
		func() error { return saveAll(c, &replays, &rows.Replays) },
		func() error { return saveAll(c, &operations, &rows.Operations) },
		func() error { return saveAll(c, &events, &rows.Events) },
		func() error { return saveAll(c, &reviews, &rows.Reviews) },
		func() error { return saveAll(c, &accounts, &rows.Accounts) },
		func() error { return saveAll(c, &budgets, &rows.Budgets) },
		func() error { return saveAll(c, &endpoints, &rows.Endpoints) },
		func() error { return saveAll(c, &queues, &rows.Queues) },
		func() error { return saveAll(c, &deliveries, &rows.Deliveries) },
		func() error { return saveAll(c, &artifacts, &rows.Artifacts) },
		func() error { return addAll(c, &payloads, rows.Payloads) },
		func() error { return addAll(c, &history, rows.History) },
		func() error { return addAll(c, &entries, rows.Entries) },
		func() error { return addAll(c, &attempts, rows.Attempts) },
		func() error { return addAll(c, &audits, rows.Audits) },
	)
}

func saveAll[K, R comparable](c *conn, t *table[K, R], rows *ledger.Table[K, R]) error {
	for _, ch := range rows.Changes() {
		var err error
		if ch.Gone {
			err = remove(c, t, ch.Was)
		} else if ch.Existed {
			err = change(c, t, ch)
		} else {
			err = add(c, &t.relation, &ch.Now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func addAll[R any](c *conn, t *relation[R], rows []R) error {
	for i := range rows {
		if err := add(c, t, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a row.
func remove[K, R comparable](c *conn, t *table[K, R], row R) error {
	return c.exec("DELETE FROM "+t.name+t.where, write(c, &t.relation, &row, t.keys))
}

// removeAll takes out what is removed of the tables that are otherwise only
// added to; secure_delete overwrites it.
func (c *conn) removeAll(gone ledger.Removals) error {
	for _, p := range gone.Payloads {
		if err := c.exec(removePayload, []value{idValue(p.Owner), intValue(p.Kind)}); err != nil {
			return err
		}
	}
	for _, some := range [...]struct {
		sql string
		ids []pawl.ID
	}{{removeAttempts, gone.Attempts}, {removeWords, gone.Words}, {removeAudit, gone.Audits}} {
		for _, id := range some.ids {
			if err := c.exec(some.sql, []value{idValue(id)}); err != nil {
				return err
			}
		}
	}
	return nil
}
