package console

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl"
)

// accountItem is what a tenant may spend.
type accountItem struct {
	ID        string `json:"id"`
	Tenant    string `json:"tenant"`
	Currency  string `json:"currency"`
	Balance   string `json:"balance"`
	Reserved  string `json:"reserved"`
	Available string `json:"available"`
}

// entryItem is one line of an account's journal.
type entryItem struct {
	ID          string    `json:"id"`
	At          pawl.Time `json:"at"`
	Kind        string    `json:"kind"`
	OperationID string    `json:"operation_id"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Amount      moneyItem `json:"amount"`
	Actor       string    `json:"actor"`
	Note        string    `json:"note"`
}

// accountsView is the list of accounts.
type accountsView struct {
	Items []accountItem
	Next  string
}

func (v *visit) accounts() error {
	var found list[accountItem]
	if err := v.get("/v1/accounts", v.filters(), &found); err != nil {
		return err
	}
	return v.show(http.StatusOK, "accounts", "Accounts", accountsView{found.Items, found.link(v.r)})
}

// accountView is one account with a page of its journal.
type accountView struct {
	Account accountItem
	Entries []entryItem
	Next    string
	// Check is what its journal adds up to, where it was asked for.
	Check *sums
}

func (v *visit) account() error {
	id := v.r.PathValue("id")
	var out accountView
	if err := v.get("/v1/accounts/"+url.PathEscape(id), nil, &out.Account); err != nil {
		return err
	}
	query := make(url.Values)
	if token := v.r.URL.Query().Get("page_token"); token != "" {
		query.Set("page_token", token)
	}
	var found list[entryItem]
	if err := v.get("/v1/accounts/"+url.PathEscape(id)+"/entries", query, &found); err != nil {
		return err
	}
	out.Entries, out.Next = found.Items, found.link(v.r)
	if v.r.URL.Query().Has("check") {
		sums, err := v.addUp(out.Account)
		if err != nil {
			return err
		}
		out.Check = &sums
	}
	return v.show(http.StatusOK, "account", "Account "+short(id), out)
}

// maxPages bounds how much of a journal a page adds up.
const maxPages = 10

// sums are what a journal adds up to.
type sums struct {
	Entries             int
	Available, Reserved string
	// Agrees is set where that is what the account says, Whole where no line is
	// older than those that were added up.
	Agrees, Whole bool
}

// addUp adds the journal of an account up, line by line. Entries that come
// meanwhile belong to a later state than the account was read in: then it
// disagrees, and a second look says so.
func (v *visit) addUp(a accountItem) (sums, error) {
	sides := make(map[string]pawl.Amount)
	out := sums{Whole: true}
	query := url.Values{"page_size": {"200"}}
	for pages := 0; ; pages++ {
		if pages == maxPages {
			out.Whole = false
			return out, nil
		}
		var found list[entryItem]
		if err := v.get("/v1/accounts/"+url.PathEscape(a.ID)+"/entries", query, &found); err != nil {
			return out, err
		}
		for _, e := range found.Items {
			amount, err := pawl.ParseAmount(e.Amount.Amount)
			if err != nil {
				return out, fmt.Errorf("journal entry %s: %w", e.ID, err)
			}
			sides[e.From] -= amount
			sides[e.To] += amount
			out.Entries++
		}
		if found.Next == "" {
			break
		}
		query.Set("page_token", found.Next)
	}
	out.Available, out.Reserved = sides["available"].String(), sides["reserved"].String()
	out.Agrees = out.Available == a.Available && out.Reserved == a.Reserved
	return out, nil
}
