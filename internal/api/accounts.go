package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// accountJSON is what a tenant may spend: balance is what was credited less
// what was charged, available the balance less what is reserved.
type accountJSON struct {
	ID        string `json:"id"`
	Tenant    string `json:"tenant"`
	Currency  string `json:"currency"`
	Balance   string `json:"balance" example:"100.000000000"`
	Reserved  string `json:"reserved"`
	Available string `json:"available"`
}

func accountShape(a ledger.Account) accountJSON {
	balance := a.Credited - a.Charged
	return accountJSON{
		a.ID.Text(pawl.PrefixAccount), a.Tenant, a.Currency, balance.String(), a.Reserved.String(), (balance - a.Reserved).String(),
	}
}

// entryJSON is one line of an account's journal: the amount moved from one
// side to the other.
type entryJSON struct {
	ID          string    `json:"id"`
	At          pawl.Time `json:"at" format:"date-time"`
	Kind        string    `json:"kind" enum:"credit,reserve,charge,release,adjustment,reversal"`
	OperationID string    `json:"operation_id,omitempty"`
	From        string    `json:"from" enum:"funding,available,reserved,spent"`
	To          string    `json:"to" enum:"funding,available,reserved,spent"`
	Amount      money     `json:"amount"`
	Actor       string    `json:"actor,omitempty"`
	Note        string    `json:"note,omitempty"`
}

func entryShape(currency string) func(ledger.Entry) entryJSON {
	return func(e ledger.Entry) entryJSON {
		return entryJSON{
			e.ID.Text(pawl.PrefixEntry), e.At, e.Kind, e.Operation.Text(pawl.PrefixOperation), string(e.From), string(e.To),
			moneyOf(e.Amount, currency), e.Actor, e.Note,
		}
	}
}

func (a *api) accountRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/accounts", name: "listAccounts", tag: "accounts", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "Accounts and what they hold",
	}, listAccounts)
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts", name: "createAccount", tag: "accounts", scope: ledger.ScopeAdmin, status: http.StatusCreated, keyed: optional,
		summary: "Add an account to a tenant, such as one in another currency; it is empty until it is credited",
		headers: []answerHeader{{name: "Location"}}, refuses: reasons{404: {"not_found"}},
	}, createAccount)
	handle(a, route{
		method: http.MethodGet, path: "/v1/accounts/{id}", name: "getAccount", tag: "accounts", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One account",
	}, getAccount)
	handle(a, route{
		method: http.MethodGet, path: "/v1/accounts/{id}/entries", name: "listEntries", tag: "accounts", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "An account's journal, newest first",
	}, listEntries)
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts/{id}/credit", name: "creditAccount", tag: "accounts", scope: ledger.ScopeAdmin, status: http.StatusOK, keyed: required,
		summary: "Add to what an account may spend; a negative amount takes away, down to what is available",
		refuses: reasons{422: {"amount_range", "currency", "insufficient_credit"}},
	}, creditAccount)
}

func listAccounts(c *call, _ none) (page[accountJSON], error) {
	read := func(p store.Page) ([]ledger.Account, error) { return c.opts.Reader.Accounts(c.ctx, c.tenant, p) }
	return listed(c, read, func(a ledger.Account) pawl.ID { return a.ID }, each(accountShape))
}

// accountRequest is what an account is made of.
type accountRequest struct {
	Currency string `json:"currency" minLength:"3" maxLength:"3" example:"USD" doc:"Of the tenant's accounts the one in a price's currency pays, the oldest of several; a submit may name another."`
}

func createAccount(c *call, in accountRequest) (accountJSON, error) {
	var f faults
	f.check(pawl.ValidCurrency(in.Currency), "/currency", "must be three upper-case letters such as USD")
	if err := f.err(); err != nil {
		return accountJSON{}, err
	}
	tenant, err := c.owner()
	if err != nil {
		return accountJSON{}, err
	}
	out, err := c.decide(ledger.CreateAccount{Header: c.head(), Once: c.once(), Tenant: tenant, Currency: in.Currency})
	if err != nil {
		return accountJSON{}, err
	}
	a := out.Value.(ledger.Account)
	c.header.Set("Location", "/v1/accounts/"+a.ID.Text(pawl.PrefixAccount))
	return accountShape(a), nil
}

// account is the account in the path, if the call may see it.
func (c *call) account() (ledger.Account, error) {
	id, err := c.id(pawl.PrefixAccount)
	if err != nil {
		return ledger.Account{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Accounts: []pawl.ID{id}})
	if err != nil {
		return ledger.Account{}, err
	}
	a, ok := rows.Accounts.Get(id)
	if !ok || !c.sees(a.Tenant) {
		return a, errNotFound
	}
	return a, nil
}

func getAccount(c *call, _ none) (accountJSON, error) {
	a, err := c.account()
	return accountShape(a), err
}

func listEntries(c *call, _ none) (page[entryJSON], error) {
	a, err := c.account()
	if err != nil {
		return page[entryJSON]{}, err
	}
	read := func(p store.Page) ([]ledger.Entry, error) { return c.opts.Reader.Entries(c.ctx, a.ID, p) }
	return listed(c, read, func(e ledger.Entry) pawl.ID { return e.ID }, each(entryShape(a.Currency)))
}

// creditRequest adds to an account.
type creditRequest struct {
	Amount   string `json:"amount" example:"10.00" doc:"Decimal with at most nine places, not zero."`
	Currency string `json:"currency,omitempty" doc:"The account's, to be sure."`
	Note     string `json:"note,omitempty" maxLength:"1000"`
}

func creditAccount(c *call, in creditRequest) (accountJSON, error) {
	a, err := c.account()
	if err != nil {
		return accountJSON{}, err
	}
	var f faults
	amount, err := pawl.ParseAmount(in.Amount)
	if err != nil {
		f.add("/amount", err.Error())
	}
	f.check(err != nil || amount != 0, "/amount", "is zero")
	f.check(plainText(in.Note, maxDescription), "/note", "is longer than 1000 bytes or holds control characters")
	if err := f.err(); err != nil {
		return accountJSON{}, err
	}
	if in.Currency != "" && in.Currency != a.Currency {
		return accountJSON{}, refuse(http.StatusUnprocessableEntity, "currency", "the account is in "+a.Currency+"; amounts are never converted")
	}
	out, err := c.decide(ledger.Credit{
		Header: c.because(in.Note), Once: c.once(), Tenant: c.tenant, Account: a.ID, Amount: amount, Note: in.Note,
	})
	if err != nil {
		return accountJSON{}, err
	}
	return accountShape(out.Value.(ledger.Account)), nil
}
