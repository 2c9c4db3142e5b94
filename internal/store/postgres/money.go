package postgres

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

var accounts = newTable("accounts", 1,
	func(k pawl.ID) ledger.Account { return ledger.Account{ID: k} },
	func(r ledger.Account) pawl.ID { return r.ID },
	func(c *columns, r *ledger.Account) {
		key(c, "id", r.ID[:])
		text(c, "tenant", &r.Tenant)
		text(c, "currency", &r.Currency)
		number(c, "credited", &r.Credited)
		number(c, "charged", &r.Charged)
		number(c, "reserved", &r.Reserved)
		moment(c, "created_at", &r.CreatedAt)
	})

var budgets = newTable("budgets", 4,
	func(k ledger.BudgetID) ledger.Budget { return ledger.Budget{ID: k} },
	func(r ledger.Budget) ledger.BudgetID { return r.ID },
	func(c *columns, r *ledger.Budget) {
		number(c, "kind", &r.ID.Kind)
		text(c, "name", &r.ID.Name)
		text(c, "currency", &r.ID.Currency)
		number(c, "day", &r.ID.Day)
		number(c, "used", &r.Used)
	}).claims()

var entries = newRelation("entries", func(c *columns, r *ledger.Entry) {
	key(c, "account", r.Account[:])
	key(c, "id", r.ID[:])
	text(c, "tenant", &r.Tenant)
	id(c, "operation", &r.Operation)
	moment(c, "at", &r.At)
	text(c, "kind", &r.Kind)
	text(c, "from_bucket", &r.From)
	text(c, "to_bucket", &r.To)
	number(c, "amount", &r.Amount)
	text(c, "actor", &r.Actor)
	text(c, "note", &r.Note)
	id(c, "correction", &r.Correction)
})
