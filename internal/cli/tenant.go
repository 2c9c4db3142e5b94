package cli

import "net/http"

// tenantCmd are the commands about tenants.
type tenantCmd struct {
	List   tenantListCmd   `cmd:"" help:"List tenants."`
	Create tenantCreateCmd `cmd:"" help:"Make a tenant, with an account if wanted."`
}

const tenants = "/v1/tenants"

type tenantListCmd struct{ exporting }

func (tenantListCmd) Run(s *session) error { return s.list(tenants, nil, "name", "created_at") }

type tenantCreateCmd struct {
	Name   string `arg:"" help:"Its name: a-z, 0-9, _ and -."`
	Credit string `help:"Give it an account that starts with this, such as 100.00:USD." placeholder:"AMOUNT:CUR"`
}

// Help teaches by example.
func (tenantCreateCmd) Help() string { return examples(`pawl tenant create acme --credit 100.00:USD`) }

func (c *tenantCreateCmd) Run(s *session) error {
	type account struct {
		Currency string `json:"currency"`
		Credit   string `json:"credit"`
	}
	body := struct {
		Name    string   `json:"name"`
		Account *account `json:"account,omitempty"`
	}{Name: c.Name}
	if c.Credit != "" {
		credit, err := parseCost("--credit", c.Credit)
		if err != nil {
			return err
		}
		body.Account = &account{credit.Currency, credit.Amount}
	}
	return s.send(http.MethodPost, tenants, body)
}
