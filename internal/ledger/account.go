package ledger

import (
	"crypto/sha256"
	"time"

	"github.com/pawlhq/pawl"
)

// Credit adds to what an account may spend, once per idempotency key. A
// negative amount takes away, down to what is available (7-rules R30, R52).
type Credit struct {
	Header
	Tenant  string
	Account pawl.ID
	Amount  pawl.Amount
	Note    string
	APIKey  pawl.ID
	// KeyTenant is the tenant of the API key: the space its keys live in.
	KeyTenant string
	Key       string
	Window    time.Duration
}

// Head is the command's header.
func (c Credit) Head() Header { return c.Header }

func (c Credit) keyID() IdempotencyKeyID { return IdempotencyKeyID{c.KeyTenant, c.Key} }

func (c Credit) fingerprint() Digest {
	return sha256.Sum256([]byte("credit\n" + c.Account.String() + "\n" + c.Amount.String()))
}

// Keys names the rows the command needs.
func (c Credit) Keys(k *Keys) {
	k.IdempotencyKeys = add(k.IdempotencyKeys, c.keyID())
	k.Accounts = add(k.Accounts, c.Account)
}

// Decide books the credit and answers with the [Account].
func (c Credit) Decide(d *Draft) Outcome {
	acct, ok := d.Accounts.Get(c.Account)
	if !ok || c.Tenant != "" && acct.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such account")
	}
	if out, taken := d.claimed(c.keyID(), c.APIKey, c.fingerprint(), "credit"); taken {
		if out.Err == nil {
			out.Value = acct
		}
		return out
	}
	entry, refusal := d.credit(&acct, c.Amount, c.Note)
	if refusal != nil {
		return *refusal
	}
	d.IdempotencyKeys.Put(c.keyID(), IdempotencyKey{
		ID: c.keyID(), APIKey: c.APIKey, For: "credit", Operation: entry, Fingerprint: c.fingerprint(), ExpiresAt: d.Now.Add(c.Window),
	})
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
