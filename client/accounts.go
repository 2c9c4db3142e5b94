package client

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/pawlhq/pawl"
)

const accounts = "/v1/accounts"

// Account is what a tenant may spend: Balance is what was credited less what was
// charged, Available the balance less what is reserved.
type Account struct {
	ID, Tenant, Currency         string
	Balance, Reserved, Available pawl.Amount
}

// UnmarshalJSON reads the API's form.
func (a *Account) UnmarshalJSON(text []byte) error {
	var in struct {
		ID        string  `json:"id"`
		Tenant    string  `json:"tenant"`
		Currency  string  `json:"currency"`
		Balance   decimal `json:"balance"`
		Reserved  decimal `json:"reserved"`
		Available decimal `json:"available"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*a = Account{in.ID, in.Tenant, in.Currency, pawl.Amount(in.Balance), pawl.Amount(in.Reserved), pawl.Amount(in.Available)}
	return nil
}

// Entry is one line of an account's journal: the amount moved from one side to
// the other.
type Entry struct {
	ID string    `json:"id"`
	At pawl.Time `json:"at"`
	// Kind is credit, reserve, charge, release, adjustment or reversal.
	Kind        string `json:"kind"`
	OperationID string `json:"operation_id"`
	// From and To are funding, available, reserved or spent.
	From   string `json:"from"`
	To     string `json:"to"`
	Amount Money  `json:"amount"`
	Actor  string `json:"actor"`
	Note   string `json:"note"`
}

// Accounts lists accounts.
func (c *Client) Accounts(ctx context.Context) iter.Seq2[Account, error] {
	return list[Account](ctx, c, accounts, nil)
}

// Account reads an account.
func (c *Client) Account(ctx context.Context, id string) (Account, error) {
	return made[Account](ctx, c, get(accounts+"/"+segment(id), nil))
}

// Entries is an account's journal, newest first.
func (c *Client) Entries(ctx context.Context, account string) iter.Seq2[Entry, error] {
	return list[Entry](ctx, c, accounts+"/"+segment(account)+"/entries", nil)
}

// Credit adds to what an account may spend; a negative amount takes away, down to
// what is available. Under one key, drawn if empty, it is booked once.
func (c *Client) Credit(ctx context.Context, account string, amount Money, note, key string) (Account, error) {
	return made[Account](ctx, c, keyed(accounts+"/"+segment(account)+"/credit", key, struct {
		Amount   string `json:"amount"`
		Currency string `json:"currency,omitempty"`
		Note     string `json:"note,omitempty"`
	}{amount.Amount.String(), amount.Currency, note}))
}
