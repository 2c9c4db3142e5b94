package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// Submit records an operation and reserves its price, once per idempotency
// key (1-product A).
type Submit struct {
	Header
	Tenant string
	APIKey pawl.ID
	// Key is the caller's idempotency key, empty for none, Fingerprint what it
	// stands for;
	// Window is how long the key lives at least.
	Key         string
	Fingerprint Digest
	Window      time.Duration
	// Work is the fingerprint of what is asked for where that is not Fingerprint:
	// for a retry, whose key stands for the retry.
	Work Digest
	// RetryOf is the operation that this one is tried again for.
	RetryOf pawl.ID
	// Day is the present one by the caller's clock (see [DayOf]): a hint at the
	// rows that an upstream with a spending limit needs.
	Day int64

	Up    Upstream
	Model string
	// AskedModel is the name that the caller of a front gave for upstream and
	// model, empty for none.
	AskedModel string
	// RequestID is ours of the request, for whoever has nothing else in hand.
	RequestID string
	// Traceparent is the trace context of that request, empty for none.
	Traceparent   string
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
	// Hold withholds the result until it is released (1-product G4).
	Hold bool
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

func (c Submit) once() Once {
	return Once{APIKey: c.APIKey, KeyTenant: c.Tenant, Key: c.Key, Window: c.Window}
}

// Keys names the rows the command needs.
func (c Submit) Keys(k *Keys) {
	c.once().needs(k)
	k.Tenants = add(k.Tenants, c.Tenant)
	k.APIKeys = add(k.APIKeys, c.APIKey)
	if c.CorrelationID != "" {
		k.Correlations = add(k.Correlations, c.correlation())
	}
	if !c.RetryOf.IsZero() {
		k.Operations = add(k.Operations, c.RetryOf)
	}
	if c.Up.SpendPerDay > 0 && c.Metered {
		k.Budgets = add(k.Budgets, UpstreamBudgetID(c.Up.Name, c.Price.Currency, c.Day))
	}
	k.Queues = add(k.Queues, WorkQueueID(SubmitQueue, c.Up.Name, c.Tenant))
	if !c.Account.IsZero() {
		k.Accounts = add(k.Accounts, c.Account)
	}
	if c.CallbackURL != "" {
		k.Endpoints = add(k.Endpoints, CallbackEndpointID(c.APIKey, c.CallbackURL, c.CallbackScheme))
	}
}

// Decide answers a repeat with the first operation, refuses what contradicts
// it, and otherwise creates one.
func (c Submit) Decide(d *Draft) Outcome {
	if out, taken := d.repeated(c.once(), asked{ForOperation, c.Fingerprint}); taken {
		if out.Err == nil {
			op, _ := d.Operations.Get(out.Value.(pawl.ID))
			out.Value = Submitted{op, true}
		}
		return out
	}
	key, refusal := c.permitted(d)
	if refusal != nil {
		return *refusal
	}
	if out, taken := c.correlated(d); taken {
		return out
	}
	acct, refusal := c.account(d)
	if refusal != nil {
		return *refusal
	}
	op := c.operation(d, acct)
	if refusal := c.counted(d, key, &op); refusal != nil {
		return *refusal
	}
	c.takeKey(d, op.ID)
	c.takeCorrelation(d, op.ID)
	d.keep(op.ID, InputPayload, c.Input)
	d.keep(op.ID, MetadataPayload, c.Metadata)
	d.note(op, History{Kind: "submitted", Version: op.Version})
	if !c.RetryOf.IsZero() {
		was, _ := d.Operations.Get(c.RetryOf)
		d.note(was, History{Kind: "retried", Version: was.Version, Detail: op.ID.Text(pawl.PrefixOperation)})
	}
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
		ID: d.NewID(), Tenant: c.Tenant, APIKey: c.APIKey, Upstream: c.Up.Name, Model: c.Model, AskedModel: c.AskedModel, RequestID: c.RequestID, Traceparent: c.Traceparent, Adapter: c.Up.Adapter,
		Owner: c.Owner, CorrelationID: c.CorrelationID, CallbackURL: c.CallbackURL,
		State: pawl.Pending, Version: 1, EventAt: d.Now, UpstreamVersion: -1, Progress: -1,
		CreatedAt: d.Now, UpdatedAt: d.Now, Deadline: c.Deadline, DueAt: d.Now, Money: Unmetered, RetryOf: c.RetryOf, Hold: c.Hold,
		Kept: KeptInput | KeptDeliveries,
	}
	if c.Up.Worker {
		op.offer(d.Now)
	}
	if c.Metered {
		op.Account, op.Currency, op.Reserved = acct.ID, acct.Currency, c.Price.Amount
	}
	return op
}

func (c Submit) work() Digest {
	if c.Work == (Digest{}) {
		return c.Fingerprint
	}
	return c.Work
}

func (c Submit) takeKey(d *Draft, op pawl.ID) {
	d.takeKey(c.once(), asked{ForOperation, c.Fingerprint}, op)
}

// permitted gives the API key that asks, or says why there can be no such
// operation: its key may not submit to this upstream, or there is nothing to
// try again. Only what failed, expired or was canceled is (1-product A9).
func (c Submit) permitted(d *Draft) (APIKey, *Outcome) {
	var out Outcome
	key, _ := d.APIKeys.Get(c.APIKey)
	if only := key.Limits.Upstreams; only != "" && !slices.Contains(strings.Split(only, ","), c.Up.Name) {
		out = dropped(pawl.Forbidden, "upstream_forbidden", "this API key may not submit to this upstream; GET /v1/whoami shows its limits")
		return key, &out
	}
	if c.RetryOf.IsZero() {
		return key, nil
	}
	was, ok := d.Operations.Get(c.RetryOf)
	switch {
	case !ok || was.Tenant != c.Tenant:
		out = dropped(pawl.NotFound, "not_found", "no such operation")
	case !was.State.Terminal() || was.State == pawl.Succeeded:
		out = dropped(pawl.Conflicting, "not_retryable", "only an operation that failed, expired or was canceled is tried again; this one is "+was.State.String())
	default:
		return key, nil
	}
	return key, &out
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

// RetryFingerprint is what the idempotency key of a retry stands for.
func RetryFingerprint(of pawl.ID) Digest { return ask(ForOperation, "retry", of.String()).fingerprint }
