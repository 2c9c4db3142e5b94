package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// Submit records an operation and reserves its price, once per idempotency
// key (1-product A).
type Submit struct {
	Header
	Tenant string
	APIKey pawl.ID
	// Key is the caller's idempotency key, Fingerprint what it stands for;
	// Window is how long the key lives at least.
	Key         string
	Fingerprint Digest
	Window      time.Duration

	Up            Upstream
	Model         string
	Input         string
	Metadata      string
	CorrelationID string
	Owner         string
	Deadline      pawl.Time
	// CallbackURL has been judged by the egress rules; CallbackScheme signs
	// what is sent there.
	CallbackURL    string
	CallbackScheme string
	// Price is reserved where Metered; Account is the account to use, the
	// tenant's own if zero.
	Price   pawl.Money
	Metered bool
	Account pawl.ID
}

// Submitted is what [Submit] answers with.
type Submitted struct {
	Operation Operation
	Replayed  bool
}

// Head is the command's header.
func (c Submit) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c Submit) Size() int { return len(c.Input) + len(c.Metadata) }

func (c Submit) keyID() IdempotencyKeyID { return IdempotencyKeyID{c.Tenant, c.Key} }

// Keys names the rows the command needs.
func (c Submit) Keys(k *Keys) {
	k.IdempotencyKeys = add(k.IdempotencyKeys, c.keyID())
	k.Tenants = add(k.Tenants, c.Tenant)
	k.Queues = add(k.Queues, WorkQueueID(SubmitQueue, c.Up.Name, c.Tenant))
	if !c.Account.IsZero() {
		k.Accounts = add(k.Accounts, c.Account)
	}
	if c.CallbackURL != "" {
		k.Endpoints = add(k.Endpoints, CallbackEndpointID(c.APIKey, c.CallbackURL))
	}
}

// Decide answers a repeat with the first operation, refuses what contradicts
// it, and otherwise creates one.
func (c Submit) Decide(d *Draft) Outcome {
	if out, taken := d.claimed(c.keyID(), c.APIKey, c.Fingerprint, "operation"); taken {
		if out.Err == nil {
			op, _ := d.Operations.Get(out.Value.(pawl.ID))
			out.Value = Submitted{op, true}
		}
		return out
	}
	acct, refusal := c.account(d)
	if refusal != nil {
		return *refusal
	}
	op := c.operation(d, acct)
	d.IdempotencyKeys.Put(c.keyID(), IdempotencyKey{
		ID: c.keyID(), APIKey: c.APIKey, For: "operation", Operation: op.ID, Fingerprint: c.Fingerprint, ExpiresAt: d.Now.Add(c.Window),
	})
	d.keep(op.ID, InputPayload, c.Input)
	d.keep(op.ID, MetadataPayload, c.Metadata)
	d.note(op, History{Kind: "submitted", Version: op.Version})
	if c.Metered {
		d.reserve(&op, acct)
	}
	if c.CallbackURL != "" {
		op.Callback = d.callbackEndpoint(c)
	}
	d.saveDue(op)
	return done("submitted", Submitted{op, false})
}

func (c Submit) operation(d *Draft, acct Account) Operation {
	op := Operation{
		ID: d.NewID(), Tenant: c.Tenant, APIKey: c.APIKey, Upstream: c.Up.Name, Model: c.Model, Adapter: c.Up.Adapter,
		Owner: c.Owner, CorrelationID: c.CorrelationID, CallbackURL: c.CallbackURL,
		State: pawl.Pending, Version: 1, EventAt: d.Now, UpstreamVersion: -1, Progress: -1,
		CreatedAt: d.Now, UpdatedAt: d.Now, Deadline: c.Deadline, DueAt: d.Now, Money: Unmetered,
	}
	if c.Metered {
		op.Account, op.Currency, op.Reserved = acct.ID, acct.Currency, c.Price.Amount
	}
	return op
}

// account finds what pays for a metered operation, or says why nothing does.
func (c Submit) account(d *Draft) (Account, *Outcome) {
	refuse := func(kind pawl.Kind, reason, message string) (Account, *Outcome) {
		out := dropped(kind, reason, message)
		return Account{}, &out
	}
	if !c.Metered {
		return Account{}, nil
	}
	id := c.Account
	if id.IsZero() {
		t, _ := d.Tenants.Get(c.Tenant)
		id = t.Account
	}
	if id.IsZero() {
		return refuse(pawl.Unprocessable, "no_account", "the operation has a price and the tenant has no account; create one with credit, or submit without a price")
	}
	acct, ok := d.Accounts.Get(id)
	if !ok || acct.Tenant != c.Tenant {
		return refuse(pawl.NotFound, "not_found", "no such account")
	}
	if acct.Currency != c.Price.Currency {
		return refuse(pawl.Unprocessable, "currency", "the price is in "+c.Price.Currency+" and the account in "+acct.Currency+"; amounts are never converted")
	}
	if c.Price.Amount < 0 {
		return refuse(pawl.Invalid, "negative_price", "a price is zero or more")
	}
	if acct.available() < c.Price.Amount {
		d.audit(c.Tenant, "operation.refused", acct.ID.Text(pawl.PrefixAccount), "insufficient credit")
		out := Outcome{Fate: Refused, Reason: "insufficient_credit", Err: &pawl.Error{Kind: pawl.PaymentRequired, Reason: "insufficient_credit", Message: "the account's available credit is below the operation's price; add credit and submit again with the same key"}}
		return Account{}, &out
	}
	return acct, nil
}

// claimed answers for an idempotency key that is taken: the id it stands for,
// or the refusal. An expired key is free once what it stands for has ended.
func (d *Draft) claimed(id IdempotencyKeyID, apiKey pawl.ID, fingerprint Digest, purpose string) (Outcome, bool) {
	claim, ok := d.IdempotencyKeys.Get(id)
	if !ok {
		return Outcome{}, false
	}
	op, isOp := d.Operations.Get(claim.Operation)
	if d.Now >= claim.ExpiresAt && (!isOp || op.State.Terminal()) {
		return Outcome{}, false
	}
	if claim.APIKey != apiKey {
		return dropped(pawl.Conflicting, "idempotency_key_in_use", "another API key of this tenant has used this Idempotency-Key; choose another"), true
	}
	if claim.Fingerprint != fingerprint || claim.For != purpose {
		out := dropped(pawl.Unprocessable, "idempotency_mismatch", "this Idempotency-Key was used for another request; repeat that one unchanged or choose another key")
		if isOp {
			out.Err.Operation = op.ID
		}
		return out, true
	}
	return done("replayed", claim.Operation), true
}
