package ledger

import "github.com/pawlhq/pawl"

// Credit adds to what an account may spend, once per idempotency key. A
// negative amount takes away, down to what is available (7-rules R30, R52).
type Credit struct {
	Header
	Once
	Tenant  string
	Account pawl.ID
	Amount  pawl.Amount
	Note    string
}

// Head is the command's header.
func (c Credit) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c Credit) Keys(k *Keys) {
	c.needs(k)
	k.Accounts = add(k.Accounts, c.Account)
}

// Decide books the credit and answers with the [Account].
func (c Credit) Decide(d *Draft) Outcome {
	acct, ok := d.Accounts.Get(c.Account)
	if !ok || c.Tenant != "" && acct.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such account")
	}
	asked := ask(ForCredit, c.Account.String(), c.Amount.String())
	if out, taken := d.repeated(c.Once, asked); taken {
		if out.Err == nil {
			out.Value = acct
		}
		return out
	}
	entry, refusal := d.credit(&acct, c.Amount, c.Note)
	if refusal != nil {
		return *refusal
	}
	d.takeKey(c.Once, asked, entry)
	d.audit(acct.Tenant, "account.credit", acct.ID.Text(pawl.PrefixAccount), c.Amount.String()+" "+acct.Currency)
	return done("credited", acct)
}

func (d *Draft) credit(acct *Account, amount pawl.Amount, note string) (pawl.ID, *Outcome) {
	total, ok := acct.Credited.Add(amount)
	if !ok {
		out := dropped(pawl.Unprocessable, "amount_range", "the account's balance would leave the range of amounts")
		return pawl.ID{}, &out
	}
	if total < acct.Charged+acct.Reserved {
		out := dropped(pawl.Unprocessable, "insufficient_credit", "no more can be taken away than is available")
		return pawl.ID{}, &out
	}
	acct.Credited = total
	d.Accounts.Put(acct.ID, *acct)
	e := Entry{ID: d.NewID(), Account: acct.ID, Tenant: acct.Tenant, At: d.Now, Kind: "credit", From: Funding, To: Available, Amount: amount, Actor: d.Actor, Note: note}
	if amount < 0 {
		e.From, e.To, e.Amount = Available, Funding, -amount
	}
	d.entries = append(d.entries, e)
	return e.ID, nil
}

// CreateAccount adds an account to a tenant, in whatever currency. It becomes
// the tenant's own if that has none.
type CreateAccount struct {
	Header
	Once
	Tenant, Currency string
}

// Head is the command's header.
func (c CreateAccount) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c CreateAccount) Keys(k *Keys) {
	c.needs(k)
	k.Tenants = add(k.Tenants, c.Tenant)
}

// Decide adds the account and answers with it.
func (c CreateAccount) Decide(d *Draft) Outcome {
	t, ok := d.Tenants.Get(c.Tenant)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such tenant")
	}
	asked := ask(ForAccount, c.Tenant, c.Currency)
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value, _ = d.Accounts.Get(out.Value.(pawl.ID))
		}
		return out
	}
	acct := Account{ID: d.NewID(), Tenant: t.Name, Currency: c.Currency, CreatedAt: d.Now}
	d.Accounts.Put(acct.ID, acct)
	if t.Account.IsZero() {
		t.Account = acct.ID
		d.Tenants.Put(t.Name, t)
	}
	d.takeKey(c.Once, asked, acct.ID)
	d.audit(acct.Tenant, "account.create", acct.ID.Text(pawl.PrefixAccount), acct.Currency)
	return done("created", acct)
}

// EnsureTenant makes a tenant that does not exist, and its account if one is
// given and it has none; the opening credit is booked once, when the account
// is made (2-contracts §6).
type EnsureTenant struct {
	Header
	Name string
	// Currency is empty for a tenant without an account.
	Currency string
	Opening  pawl.Amount
}

// Head is the command's header.
func (c EnsureTenant) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c EnsureTenant) Keys(k *Keys) { k.Tenants = add(k.Tenants, c.Name) }

// Decide makes what is missing and answers with the [Tenant].
func (c EnsureTenant) Decide(d *Draft) Outcome {
	t, ok := d.Tenants.Get(c.Name)
	was := t
	if !ok {
		t = Tenant{Name: c.Name, CreatedAt: d.Now}
		d.audit(t.Name, "tenant.create", t.Name, "")
	}
	if t.Account.IsZero() && c.Currency != "" {
		acct := Account{ID: d.NewID(), Tenant: t.Name, Currency: c.Currency, CreatedAt: d.Now}
		t.Account = acct.ID
		d.Accounts.Put(acct.ID, acct)
		if c.Opening > 0 {
			if _, refusal := d.credit(&acct, c.Opening, "opening credit"); refusal != nil {
				return *refusal
			}
		}
	}
	if t == was {
		return done("exists", t)
	}
	d.Tenants.Put(t.Name, t)
	return done("created", t)
}
