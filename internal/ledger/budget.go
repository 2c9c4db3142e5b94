package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// DayOf is the UTC day of a moment, counted from 1970-01-01.
func DayOf(t pawl.Time) int64 { return int64(t) / (24 * time.Hour).Microseconds() }

// KeyBudgetID names the budget of an API key in one currency.
func KeyBudgetID(key pawl.ID, currency string) BudgetID {
	return BudgetID{Kind: KeyBudget, Name: key.Text(pawl.PrefixKey), Currency: currency}
}

// UpstreamBudgetID names the spending of an upstream on one day in one currency.
func UpstreamBudgetID(upstream, currency string, day int64) BudgetID {
	return BudgetID{Kind: UpstreamBudget, Name: upstream, Currency: currency, Day: day}
}

// Budgets are those that count the operation.
func (op Operation) Budgets() (ids []BudgetID) {
	if op.KeyBudget {
		ids = append(ids, KeyBudgetID(op.APIKey, op.Currency))
	}
	if op.SpendDay != 0 {
		ids = append(ids, UpstreamBudgetID(op.Upstream, op.Currency, op.SpendDay))
	}
	return ids
}

// Counted is what an operation takes out of its budgets: what it holds, then
// what it has cost.
func (op Operation) Counted() pawl.Amount {
	switch op.Money {
	case Held:
		return op.Reserved
	case Ended:
		return op.Charged
	}
	return 0
}

// countBudgets moves the budgets by what a command has moved in the operations
// that they count. It is the one place that does: whatever decides about money
// changes the operation, and its budgets follow.
func (d *Draft) countBudgets() {
	for _, w := range d.Operations.over {
		was, _ := d.Operations.table.Get(w.key)
		moved := w.row.Counted() - was.Counted()
		if moved == 0 {
			continue
		}
		for _, id := range w.row.Budgets() {
			b, _ := d.Budgets.Get(id)
			b.ID = id
			b.Used += moved
			d.Budgets.Put(id, b)
		}
	}
}

// counted refuses a submission that its key's budget or its upstream's spending
// on this day does not cover, or whose price they could not judge; otherwise it
// notes in the operation which budgets count it.
func (c Submit) counted(d *Draft, key APIKey, op *Operation) *Outcome {
	if limits := key.Limits; limits.Currency != "" {
		op.KeyBudget = true
		refusal := c.covered(d, KeyBudgetID(key.ID, limits.Currency), limits.Budget, limits.Currency, pawl.Error{
			Reason: "key_budget", Message: "the API key's budget does not cover the operation's price; give the key a larger one",
		})
		if refusal != nil {
			return refusal
		}
	}
	if c.Up.SpendPerDay > 0 {
		op.SpendDay = DayOf(d.Now)
		return c.covered(d, UpstreamBudgetID(c.Up.Name, c.Price.Currency, op.SpendDay), c.Up.SpendPerDay, c.Up.SpendCurrency, pawl.Error{
			Reason: "spending_limit", Message: "the upstream's spending limit of this day does not cover the operation's price; submit again after 00:00 UTC",
		})
	}
	return nil
}

// covered refuses a price that a budget does not cover with the error over.
func (c Submit) covered(d *Draft, id BudgetID, limit pawl.Amount, currency string, over pawl.Error) *Outcome {
	var out Outcome
	switch {
	case !c.Metered:
		out = dropped(pawl.Unprocessable, "price_missing", "a budget cannot judge an operation without a price; give expected_cost")
		return &out
	case currency != "" && currency != c.Price.Currency:
		out = dropped(pawl.Unprocessable, "currency", "the budget is in "+currency+" and the price in "+c.Price.Currency+"; amounts are never converted")
		return &out
	}
	b, _ := d.Budgets.Get(id)
	if total, ok := b.Used.Add(c.Price.Amount); ok && total <= limit {
		return nil
	}
	d.audit(c.Tenant, "operation.refused", c.APIKey.Text(pawl.PrefixKey), over.Reason)
	over.Kind = pawl.PaymentRequired
	return &Outcome{Fate: Refused, Reason: over.Reason, Err: &over}
}
