package api

import (
	"math"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// keyLimits are what an API key is limited to beside its scopes; what is left
// out is not limited (1-product I7).
type keyLimits struct {
	Rate      *rateLimit   `json:"rate,omitempty"`
	Budget    *budgetLimit `json:"budget,omitempty"`
	Upstreams []string     `json:"upstreams,omitempty" doc:"The only ones that the key may submit to."`
}

// rateLimit is how many calls a key may make.
type rateLimit struct {
	PerSecond float64 `json:"per_second" minimum:"0.001" maximum:"10000"`
	Burst     int32   `json:"burst,omitempty" maximum:"10000" doc:"How many at once; per_second, rounded up, if it is left out."`
}

// budgetLimit is what a key's operations may hold and cost in all.
type budgetLimit struct {
	Amount   string `json:"amount" example:"50.00"`
	Currency string `json:"currency" minLength:"3" maxLength:"3" example:"USD"`
	Used     string `json:"used,omitempty" doc:"What they hold and have cost so far, of those that were submitted while the key had a budget. Ignored in requests."`
}

// thousandths is the unit of a stored rate.
const thousandths = 1000

func limitsShape(l ledger.KeyLimits) keyLimits {
	var out keyLimits
	if l.Rate > 0 {
		out.Rate = &rateLimit{float64(l.Rate) / thousandths, l.Burst}
	}
	if l.Currency != "" {
		out.Budget = &budgetLimit{Amount: l.Budget.String(), Currency: l.Currency}
	}
	if l.Upstreams != "" {
		out.Upstreams = strings.Split(l.Upstreams, ",")
	}
	return out
}

// read checks limits and gives them as the ledger keeps them.
func (in keyLimits) read(f *faults, ups map[string]provider) (l ledger.KeyLimits) {
	if r := in.Rate; r != nil {
		f.check(r.PerSecond >= 0.001 && r.PerSecond <= 10_000, "/limits/rate/per_second", "must be from 0.001 to 10000")
		f.check(r.Burst >= 0 && r.Burst <= 10_000, "/limits/rate/burst", "must be from 1 to 10000; it may be left out")
		l.Rate, l.Burst = int64(math.Round(r.PerSecond*thousandths)), r.Burst
		if l.Burst == 0 {
			l.Burst = int32(math.Ceil(r.PerSecond))
		}
	}
	if b := in.Budget; b != nil {
		var err error
		l.Budget, err = pawl.ParseAmount(b.Amount)
		f.check(err == nil && l.Budget >= 0, "/limits/budget/amount", "must be a decimal that is not negative, with at most nine places")
		f.check(pawl.ValidCurrency(b.Currency), "/limits/budget/currency", "must be three upper-case letters such as USD")
		l.Currency = b.Currency
	}
	for i, name := range in.Upstreams {
		_, known := ups[name]
		if !known || slices.Contains(in.Upstreams[:i], name) {
			f.add("/limits/upstreams", "holds an unknown or repeated upstream; GET /v1/upstreams lists them")
			break
		}
	}
	l.Upstreams = strings.Join(in.Upstreams, ",")
	return l
}

// showKeys shows API keys with what their budgets have used.
func (c *call) showKeys(rows []ledger.APIKey) ([]keyJSON, error) {
	var keys ledger.Keys
	for _, k := range rows {
		if k.Limits.Currency != "" {
			keys.Budgets = append(keys.Budgets, ledger.KeyBudgetID(k.ID, k.Limits.Currency))
		}
	}
	used := new(ledger.Rows)
	if len(keys.Budgets) > 0 {
		var err error
		if used, err = c.load(c.ctx, keys); err != nil {
			return nil, err
		}
	}
	items := make([]keyJSON, len(rows))
	for i, k := range rows {
		items[i] = keyShape(k)
		if b := items[i].Limits.Budget; b != nil {
			row, _ := used.Budgets.Get(ledger.KeyBudgetID(k.ID, k.Limits.Currency))
			b.Used = row.Used.String()
		}
	}
	return items, nil
}

func (c *call) showKey(k ledger.APIKey) (keyJSON, error) {
	items, err := c.showKeys([]ledger.APIKey{k})
	if err != nil {
		return keyJSON{}, err
	}
	return items[0], nil
}
