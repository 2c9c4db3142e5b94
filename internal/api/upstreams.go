package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/upstream"
)

// provider is what the API knows of an upstream.
type provider struct {
	policy ledger.Upstream
	// callsBack depends on the dates of the keys, so it is asked each time.
	callsBack func() bool
	// models are those that may be asked for; empty lets any name pass.
	models map[string]config.Model
	// currency is that of the prices; empty means the account's.
	currency string
	deadline time.Duration
	// tenants are those that may use it; empty means all.
	tenants []string
	submit  config.Submit
	read    config.Read
	// hold withholds results until they are released.
	hold bool
	// mayHold says that it does so for some models at least.
	mayHold bool
}

func providers(set upstream.Set) map[string]provider {
	out := make(map[string]provider, len(set))
	for name, u := range set {
		s := u.Settings()
		out[name] = provider{u.Policy(), u.CallsBack, s.Models, s.Currency, s.Deadline, s.Tenants, s.Submit, s.Read, s.Release == config.ReleaseHold, mayHold(s)}
	}
	return out
}

// opens reports whether a tenant may use the upstream; an empty tenant stands
// for all of them.
func (p provider) opens(tenant string) bool {
	return tenant == "" || len(p.tenants) == 0 || slices.Contains(p.tenants, tenant)
}

// upstreamJSON is a configured upstream as callers see it.
type upstreamJSON struct {
	Name       string         `json:"name"`
	Removed    bool           `json:"removed,omitempty" doc:"It is not configured any more: what was begun there waits until it is configured again."`
	Adapter    string         `json:"adapter,omitempty"`
	Owner      string         `json:"owner,omitempty"`
	Models     []modelJSON    `json:"models" doc:"Empty where any name is passed on."`
	Currency   string         `json:"currency,omitempty" doc:"Of the prices; the account's if it is left out."`
	Deadline   string         `json:"deadline,omitempty" doc:"What an operation has unless its request says otherwise." example:"2h0m0s"`
	Callbacks  bool           `json:"callbacks" doc:"The provider calls back and the callbacks can be verified."`
	Reads      bool           `json:"reads"`
	Cancels    bool           `json:"cancels"`
	Idempotent bool           `json:"idempotent" doc:"A create may be repeated without making a second task."`
	Limits     upstreamLimits `json:"limits"`
	Paused     []pauseJSON    `json:"paused" doc:"What stands still for the tenant, and why; empty where nothing does."`
}

type modelJSON struct {
	Name  string `json:"name"`
	Price string `json:"price,omitempty" doc:"Reserved unless the request gives expected_cost; unmetered if it is left out."`
}

type upstreamLimits struct {
	Concurrency      int            `json:"concurrency"`
	CreatesPerSecond float64        `json:"creates_per_second,omitempty" doc:"Left out where there is no limit."`
	ReadsPerSecond   float64        `json:"reads_per_second"`
	SubmitAttempts   int32          `json:"submit_attempts"`
	Spending         *spendingLimit `json:"spending,omitempty" doc:"Left out where there is no limit."`
}

// spendingLimit is what the operations submitted within a period may hold and
// cost together.
type spendingLimit struct {
	Amount   string `json:"amount" example:"50.000000000"`
	Currency string `json:"currency,omitempty" doc:"Left out where it holds for each currency by itself."`
	Per      string `json:"per" enum:"day" doc:"A UTC day."`
}

func limitsOf(p provider) upstreamLimits {
	out := upstreamLimits{
		Concurrency: p.policy.Concurrency, CreatesPerSecond: p.submit.Rate, ReadsPerSecond: p.read.Rate, SubmitAttempts: p.policy.SubmitAttempts,
	}
	if p.policy.Worker {
		// Nobody is called: there are as many at work as come.
		out.Concurrency, out.ReadsPerSecond = 0, 0
	}
	if p.policy.SpendPerDay > 0 {
		out.Spending = &spendingLimit{p.policy.SpendPerDay.String(), p.policy.SpendCurrency, config.PerDay}
	}
	return out
}

func upstreamShape(p provider) upstreamJSON {
	out := upstreamJSON{
		Name: p.policy.Name, Adapter: p.policy.Adapter, Owner: p.policy.Owner, Models: []modelJSON{}, Paused: []pauseJSON{}, Currency: p.currency,
		Deadline: p.deadline.String(), Callbacks: p.callsBack(), Reads: p.policy.Reads, Cancels: p.policy.Cancels,
		Idempotent: p.policy.Idempotent,
		Limits:     limitsOf(p),
	}
	for _, name := range slices.Sorted(maps.Keys(p.models)) {
		m := modelJSON{Name: name}
		if price := p.models[name].Price; price != nil {
			m.Price = price.String()
		}
		out.Models = append(out.Models, m)
	}
	return out
}

func (a *api) upstreamRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/upstreams", name: "listUpstreams", tag: "upstreams", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "Configured upstreams with models, prices and limits",
	}, func(c *call, _ none) (page[upstreamJSON], error) {
		paused, err := c.pauses()
		if err != nil {
			return page[upstreamJSON]{}, err
		}
		items, err := c.removed()
		if err != nil {
			return page[upstreamJSON]{}, err
		}
		for _, name := range slices.Sorted(maps.Keys(c.ups)) {
			if c.ups[name].opens(c.tenant) {
				item := upstreamShape(c.ups[name])
				item.Paused = append(item.Paused, paused[name]...)
				items = append(items, item)
			}
		}
		slices.SortFunc(items, func(a, b upstreamJSON) int { return cmp.Compare(a.Name, b.Name) })
		return paged(c, items, func(u upstreamJSON) string { return u.Name })
	})
}
