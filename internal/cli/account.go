package cli

import (
	"net/http"
	"net/url"
)

// accountCmd are the commands about money.
type accountCmd struct {
	Create  accountCreateCmd  `cmd:"" help:"Add an account to a tenant, such as one in another currency."`
	List    accountListCmd    `cmd:"" help:"List accounts with balance, reserved and available."`
	Entries accountEntriesCmd `cmd:"" help:"Show the journal of an account."`
	Credit  accountCreditCmd  `cmd:"" help:"Add to an account, or take from it."`
}

const accounts = "/v1/accounts"

// accountArg names an account.
type accountArg struct {
	ID string `arg:"" help:"The account, acct_…."`
}

func (a accountArg) path() string { return accounts + "/" + id(a.ID) }

type accountCreateCmd struct {
	once
	Currency string `arg:"" help:"Its currency, such as EUR."`
	Tenant   string `help:"Whose it is; the key's own tenant if left out." placeholder:"NAME"`
}

// Help teaches by example.
func (accountCreateCmd) Help() string {
	return examples(`pawl account create EUR --tenant acme`)
}

func (c *accountCreateCmd) Run(s *session) error {
	body := struct {
		Currency string `json:"currency"`
	}{c.Currency}
	text, err := encode(body)
	if err != nil {
		return err
	}
	path := accounts
	if c.Tenant != "" {
		path += "?tenant=" + url.QueryEscape(c.Tenant)
	}
	call := onceCall{method: http.MethodPost, path: path, arguments: body, body: text}
	return s.sendOnce(c.once, call, func(_ *client, a *answer) error { return s.answer(a) })
}

type accountListCmd struct{ listing }

func (c *accountListCmd) Run(s *session) error {
	return s.list(accounts, c.query(), "id", "tenant", "currency", "balance", "reserved", "available")
}

type accountEntriesCmd struct {
	exporting
	accountArg
	PageSize  int    `help:"Rows to show at most." default:"50"`
	PageToken string `help:"Where to go on." placeholder:"TOKEN"`
}

func (c *accountEntriesCmd) Run(s *session) error {
	q := listing{PageSize: c.PageSize, PageToken: c.PageToken}.query()
	return s.list(c.path()+"/entries", q, "at", "kind", "from", "to", "amount", "operation_id", "note")
}

type accountCreditCmd struct {
	once
	accountArg
	Amount string `arg:"" help:"How much, such as 25.00:USD; below zero takes from what is available."`
	Note   string `help:"What it is for; it is kept in the journal." placeholder:"TEXT"`
}

// Help teaches by example.
func (accountCreditCmd) Help() string {
	return examples(`pawl account credit acct_01… 25.00:USD --note "invoice 17"`, `pawl account credit acct_01… -- -5.00:USD`)
}

func (c *accountCreditCmd) Run(s *session) error {
	amount, err := parseCost("the amount", c.Amount)
	if err != nil {
		return err
	}
	body := struct {
		*cost
		Note string `json:"note,omitempty"`
	}{amount, c.Note}
	text, err := encode(body)
	if err != nil {
		return err
	}
	call := onceCall{method: http.MethodPost, path: c.path() + "/credit", arguments: body, body: text}
	return s.sendOnce(c.once, call, func(_ *client, a *answer) error { return s.answer(a) })
}
