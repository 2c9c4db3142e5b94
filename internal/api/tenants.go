package api

import (
	"net/http"
	"regexp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// tenantName is what a tenant may be called, as in the configuration.
var tenantName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

const badTenantName = "must have 1 to 63 of a-z, 0-9, _ and -, and must not start with _ or -"

// tenantJSON is a tenant.
type tenantJSON struct {
	Name      string    `json:"name"`
	AccountID string    `json:"account_id,omitempty"`
	CreatedAt pawl.Time `json:"created_at" format:"date-time"`
}

func tenantShape(t ledger.Tenant) tenantJSON {
	return tenantJSON{t.Name, t.Account.Text(pawl.PrefixAccount), t.CreatedAt}
}

// tenantRequest is what a tenant is made of.
type tenantRequest struct {
	Name    string          `json:"name"`
	Account *openingAccount `json:"account,omitempty" doc:"None is made if it is left out."`
}

// openingAccount is the account that a tenant begins with.
type openingAccount struct {
	Currency string `json:"currency" example:"USD"`
	Credit   string `json:"credit,omitempty" example:"100.00" doc:"Booked once, when the account is made."`
}

func (a *api) tenantRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/tenants", name: "createTenant", tag: "tenants", scope: ledger.ScopeAdmin,
		status: http.StatusCreated, also: []int{http.StatusOK},
		summary: "Make a tenant, or give an existing one the account that it lacks; 200 where nothing was missing",
	}, createTenant)
	handle(a, route{
		method: http.MethodGet, path: "/v1/tenants", name: "listTenants", tag: "tenants", scope: ledger.ScopeAdmin, status: http.StatusOK, paged: true,
		summary: "Tenants by name",
	}, listTenants)
}

func createTenant(c *call, in tenantRequest) (tenantJSON, error) {
	var f faults
	f.check(tenantName.MatchString(in.Name), "/name", badTenantName)
	cmd := ledger.EnsureTenant{Header: c.head(), Name: in.Name}
	if in.Account != nil {
		cmd.Currency = in.Account.Currency
		f.check(pawl.ValidCurrency(cmd.Currency), "/account/currency", "must be three upper-case letters such as USD")
		if in.Account.Credit != "" {
			var err error
			cmd.Opening, err = pawl.ParseAmount(in.Account.Credit)
			f.check(err == nil && cmd.Opening >= 0, "/account/credit", "must be a decimal that is not negative, with at most nine places")
		}
	}
	if err := f.err(); err != nil {
		return tenantJSON{}, err
	}
	out, err := c.do(c.ctx, cmd)
	if err != nil {
		return tenantJSON{}, err
	}
	if out.Reason == "exists" {
		c.status = http.StatusOK
	}
	return tenantShape(out.Value.(ledger.Tenant)), nil
}

func listTenants(c *call, _ none) (page[tenantJSON], error) {
	rows, err := c.opts.Reader.Tenants(c.ctx)
	if err != nil {
		return page[tenantJSON]{}, err
	}
	var items []tenantJSON
	for _, t := range rows {
		if c.sees(t.Name) {
			items = append(items, tenantShape(t))
		}
	}
	return paged(c, items, func(t tenantJSON) string { return t.Name })
}
