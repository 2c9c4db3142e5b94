package api

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// payer names the account that pays where the request does not: the tenant's
// own or, where that is in another currency than the price, the oldest of those
// that are in it. Nothing is converted; without such an account the command
// refuses (7-rules R27).
func (c *call) payer(cmd *ledger.Submit) error {
	if !cmd.Metered || !cmd.Account.IsZero() {
		return nil
	}
	own, err := c.currency(c.ctx, cmd.Tenant, pawl.ID{})
	if err != nil || own == "" || own == cmd.Price.Currency {
		return err
	}
	var after pawl.ID
	for {
		page, err := c.opts.Reader.Accounts(c.ctx, cmd.Tenant, store.Page{After: after, Limit: maxPage})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, a := range page {
			if after = a.ID; a.Currency == cmd.Price.Currency {
				cmd.Account = a.ID
			}
		}
	}
}
