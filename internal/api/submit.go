package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// The limits of a submission (2-contracts §1); maxDeadline keeps a reservation
// from being held for ever.
const (
	maxInput    = 1 << 20
	maxMetadata = 16 << 10
	maxWord     = 255
	maxDeadline = 30 * 24 * time.Hour
)

// submitRequest is what an operation is made of. Upstream, model, input and
// callback_url are what an Idempotency-Key stands for; the rest of a repeated
// request is ignored (7-rules R2).
type submitRequest struct {
	Upstream      string    `json:"upstream"`
	Model         string    `json:"model" maxLength:"255"`
	Input         rawObject `json:"input" doc:"Passed on as the bytes received; at most 1 MiB."`
	CallbackURL   string    `json:"callback_url,omitempty" format:"uri" doc:"Gets the operation's events, signed with the API key's webhook secret."`
	Metadata      rawObject `json:"metadata,omitempty" doc:"Any members, at most 16 KiB; operations can be found by those that are strings, numbers or booleans."`
	CorrelationID string    `json:"correlation_id,omitempty" maxLength:"255" doc:"The application's own id."`
	Deadline      string    `json:"deadline,omitempty" format:"date-time" doc:"At most 30 days from now; the upstream's own if it is left out."`
	ExpectedCost  *money    `json:"expected_cost,omitempty" doc:"What is reserved; the model's price if it is left out."`
	Account       string    `json:"account,omitempty" doc:"What pays; the tenant's own account if it is left out."`
	Owner         string    `json:"owner,omitempty" maxLength:"255" doc:"Who answers for it."`
	Release       string    `json:"release,omitempty" enum:"hold" doc:"hold: its result is withheld until it is released."`
}

// check refuses what is wrong whatever the moment.
func (in submitRequest) check() error {
	if len(in.Input) > maxInput || len(in.Metadata) > maxMetadata {
		return refuse(http.StatusRequestEntityTooLarge, "content_too_large", "input may have 1 MiB and metadata 16 KiB")
	}
	var f faults
	f.check(in.Upstream != "", "/upstream", "is missing")
	f.check(in.Model != "", "/model", "is missing")
	f.check(plainText(in.Model, maxWord), "/model", "is longer than 255 bytes or holds control characters")
	f.check(in.Input.isObject(), "/input", "must be an object")
	f.check(in.Metadata == nil || in.Metadata.isObject(), "/metadata", "must be an object")
	f.check(plainText(in.CorrelationID, maxWord), "/correlation_id", "is longer than 255 bytes or holds control characters")
	f.check(plainText(in.Owner, maxWord), "/owner", "is longer than 255 bytes or holds control characters")
	f.check(in.Release == "" || in.Release == config.ReleaseHold, "/release", `must be "hold", or be left out`)
	if in.ExpectedCost != nil {
		amount, err := pawl.ParseAmount(in.ExpectedCost.Amount)
		if err != nil {
			f.add("/expected_cost/amount", err.Error())
		}
		f.check(amount >= 0, "/expected_cost/amount", "is negative")
		f.check(pawl.ValidCurrency(in.ExpectedCost.Currency), "/expected_cost/currency", "must be three upper-case letters such as USD")
	}
	return f.err()
}

// fingerprint is what the request's Idempotency-Key stands for (7-rules R2).
func (in submitRequest) fingerprint() (ledger.Digest, error) {
	text, err := json.Marshal(struct {
		Upstream    string          `json:"upstream"`
		Model       string          `json:"model"`
		Input       json.RawMessage `json:"input"`
		CallbackURL string          `json:"callback_url"`
	}{in.Upstream, in.Model, json.RawMessage(in.Input), in.CallbackURL})
	if err != nil {
		return ledger.Digest{}, err
	}
	canonical, err := strict.Canonical(text)
	return sha256.Sum256(canonical), err
}

// submitHeaders are the headers of an answer with an operation that was asked
// for, submitRefusals what it may be refused for.
var submitHeaders = []answerHeader{
	{name: "Location", optional: true}, {name: "Retry-After", status: http.StatusAccepted}, {name: "Preference-Applied", optional: true},
}

var submitRefusals = reasons{
	http.StatusBadRequest:      {"url_refused"},
	http.StatusPaymentRequired: {"insufficient_credit", "key_budget", "spending_limit"},
	http.StatusForbidden:       {"upstream_forbidden"},
	http.StatusNotFound:        {"not_found"},
	http.StatusConflict:        {"correlation_id_in_use"},
	http.StatusUnprocessableEntity: {
		"unknown_upstream", "unknown_model", "no_account", "currency", "price_missing",
	},
}

func submit(c *call, in submitRequest) (submitted, error) {
	if err := in.check(); err != nil {
		return submitted{}, err
	}
	dry, err := c.dry()
	if err != nil {
		return submitted{}, err
	}
	tenant, err := c.owner()
	if err != nil {
		return submitted{}, err
	}
	cmd, err := c.command(in, tenant)
	if err != nil {
		return submitted{}, err
	}
	if dry {
		return c.plan(cmd, in)
	}
	op, err := c.place(cmd, in)
	return submitted{operation: op}, err
}

// command is the submission of a request that was checked, but for what depends
// on the moment.
func (c *call) command(in submitRequest, tenant string) (ledger.Submit, error) {
	fingerprint, err := in.fingerprint()
	return ledger.Submit{
		Header: c.head(), Tenant: tenant, APIKey: c.by.ID, Key: c.key, Fingerprint: fingerprint, Window: c.window,
		Day: ledger.DayOf(pawl.TimeOf(time.Now())), Model: in.Model, Input: string(in.Input), Metadata: string(in.Metadata),
		CorrelationID: in.CorrelationID, Owner: in.Owner, CallbackURL: in.CallbackURL, CallbackScheme: defaultScheme,
		RequestID: telemetry.RequestID(c.ctx), Traceparent: telemetry.TraceContext(c.ctx, c.r.Header),
	}, err
}

// place submits and answers with the operation, once it has ended if the request
// wants to wait.
func (c *call) place(cmd ledger.Submit, in submitRequest) (ledger.OperationJSON, error) {
	if refusal := c.complete(&cmd, in); refusal != nil {
		op, ok, err := c.accepted(cmd)
		if err != nil {
			return ledger.OperationJSON{}, err
		}
		if !ok {
			return ledger.OperationJSON{}, refusal
		}
		return c.replay(op)
	}
	out, err := c.do(c.ctx, cmd)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	answer := out.Value.(ledger.Submitted)
	switch {
	case answer.Replayed:
		return c.replay(answer.Operation)
	case c.wish.wait > 0:
		return c.placed(answer.Operation)
	}
	c.locate(answer.Operation)
	view := answer.Operation.View()
	view.Tenant, view.Metadata = answer.Operation.Tenant, ledger.Raw(string(in.Metadata))
	return view, nil
}

// complete adds what depends on the moment and the configuration, or says why
// there can be no such operation now.
func (c *call) complete(cmd *ledger.Submit, in submitRequest) error {
	up, ok := c.ups[in.Upstream]
	if !ok || !up.opens(cmd.Tenant) {
		return refuse(http.StatusUnprocessableEntity, "unknown_upstream", "there is no such upstream for this tenant; GET /v1/upstreams lists them")
	}
	model, ok := up.models[in.Model]
	if !ok && len(up.models) > 0 {
		return refuse(http.StatusUnprocessableEntity, "unknown_model", "the upstream is configured without this model; GET /v1/upstreams lists its models")
	}
	cmd.Up = up.policy
	cmd.Hold = in.Release == config.ReleaseHold || up.hold || model.Release == config.ReleaseHold
	if in.CallbackURL != "" {
		if err := c.judgeURL(in.CallbackURL, "/callback_url"); err != nil {
			return err
		}
	}
	var err error
	if cmd.Deadline, err = deadline(in.Deadline, up.deadline); err != nil {
		return err
	}
	if in.Account != "" {
		if cmd.Account, err = pawl.ParseID(pawl.PrefixAccount, in.Account); err != nil {
			return errNotFound
		}
	}
	if err := c.price(cmd, in.ExpectedCost, model.Price, up.currency); err != nil {
		return err
	}
	return c.payer(cmd)
}

// price is what is reserved: the request's word, else the configured price,
// else nothing (1-product A7).
func (c *call) price(cmd *ledger.Submit, expected *money, configured *pawl.Amount, currency string) (err error) {
	switch {
	case expected != nil:
		amount, err := pawl.ParseAmount(expected.Amount)
		cmd.Metered, cmd.Price = true, pawl.Money{Amount: amount, Currency: expected.Currency}
		return err
	case configured == nil:
		return nil
	}
	cmd.Metered, cmd.Price = true, pawl.Money{Amount: *configured, Currency: currency}
	if currency == "" {
		cmd.Price.Currency, err = c.currency(c.ctx, cmd.Tenant, cmd.Account)
	}
	return err
}

func deadline(text string, otherwise time.Duration) (pawl.Time, error) {
	now := time.Now()
	if text == "" {
		return pawl.TimeOf(now.Add(otherwise)), nil
	}
	var f faults
	at, err := strict.ParseTime(text)
	switch {
	case err != nil:
		f.add("/deadline", "want RFC 3339 such as 2026-01-02T15:04:05Z")
	case !at.After(now):
		f.add("/deadline", "lies in the past")
	case at.After(now.Add(maxDeadline)):
		f.add("/deadline", "is more than 30 days away")
	}
	return pawl.TimeOf(at), f.err()
}

// accepted is the operation that a request was accepted as before and could not
// be made anew: a deadline that has passed since, or an upstream that is no
// longer configured, hides nothing.
func (c *call) accepted(cmd ledger.Submit) (ledger.Operation, bool, error) {
	op, fingerprint, ok, err := c.claimed(cmd.Tenant, cmd.Key)
	return op, ok && fingerprint == cmd.Fingerprint, err
}

// claimed is the operation that an idempotency key of the caller's own stands
// for, with the key's fingerprint.
func (c *call) claimed(tenant, key string) (op ledger.Operation, fingerprint ledger.Digest, ok bool, err error) {
	id := ledger.IdempotencyKeyID{Tenant: tenant, Value: key}
	rows, err := c.load(c.ctx, ledger.Keys{IdempotencyKeys: []ledger.IdempotencyKeyID{id}})
	if err != nil {
		return op, fingerprint, false, err
	}
	claim, ok := rows.IdempotencyKeys.Get(id)
	if !ok || claim.APIKey != c.by.ID || claim.For != ledger.ForOperation {
		return op, fingerprint, false, nil
	}
	op, ok = rows.Operations.Get(claim.Operation)
	alive := pawl.TimeOf(time.Now()) < claim.ExpiresAt || !op.State.Terminal()
	return op, claim.Fingerprint, ok && alive, nil
}

// replay answers a repeated submission with the operation as it is now
// (7-rules R1).
func (c *call) replay(op ledger.Operation) (ledger.OperationJSON, error) {
	c.replayed()
	return c.placed(op)
}

// placed shows an operation that was asked for, at its end if the request wants
// to wait for that.
func (c *call) placed(op ledger.Operation) (ledger.OperationJSON, error) {
	op, err := c.await(op)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	c.locate(op)
	views, err := c.views(c.ctx, []ledger.Operation{op})
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	return views[0], nil
}

// locate sets status and headers of the answer to a submission.
func (c *call) locate(op ledger.Operation) {
	telemetry.Concerns(c.ctx, op.ID, op.Traceparent)
	c.header.Set("Location", "/v1/operations/"+op.ID.Text(pawl.PrefixOperation))
	if op.State.Terminal() {
		c.status = http.StatusOK
		return
	}
	c.header.Set("Retry-After", retryAfter(c.upstream(op.Upstream)))
}

// retryAfter advises when to ask next: not before we ask ourselves.
func retryAfter(up ledger.Upstream) string {
	return strconv.Itoa(max(1, int(up.ReadFirst.Round(time.Second)/time.Second)))
}

// judgeURL refuses a URL that requests may not be sent to.
func (c *call) judgeURL(text, pointer string) error {
	if _, err := c.opts.Egress.ParseURL(text); err != nil {
		p := refuse(http.StatusBadRequest, "url_refused", err.Error())
		p.Errors = []fieldError{{err.Error(), fragment(pointer)}}
		return p
	}
	return nil
}

// currencyLimit bounds how many accounts' currencies are remembered.
const currencyLimit = 10_000

// currencyCache remembers the currencies of accounts, which never change, so
// that a submit with a configured price needs no read before its command.
type currencyCache struct {
	mu sync.Mutex
	of map[payer]string
}

// payer names an account: a tenant's own where the id is zero.
type payer struct {
	tenant  string
	account pawl.ID
}

func newCurrencyCache() *currencyCache { return &currencyCache{of: make(map[payer]string)} }

// currency is that of the account that pays; empty where there is none.
func (a *api) currency(ctx context.Context, tenant string, account pawl.ID) (string, error) {
	who := payer{tenant, account}
	a.money.mu.Lock()
	known, ok := a.money.of[who]
	a.money.mu.Unlock()
	if ok {
		return known, nil
	}
	keys := ledger.Keys{Tenants: []string{tenant}}
	if !account.IsZero() {
		keys.Accounts = []pawl.ID{account}
	}
	rows, err := a.load(ctx, keys)
	if err != nil {
		return "", err
	}
	if account.IsZero() {
		t, _ := rows.Tenants.Get(tenant)
		account = t.Account
	}
	acct, ok := rows.Accounts.Get(account)
	if !ok || acct.Tenant != tenant {
		return "", nil
	}
	a.money.mu.Lock()
	defer a.money.mu.Unlock()
	if len(a.money.of) >= currencyLimit {
		clear(a.money.of)
	}
	a.money.of[who] = acct.Currency
	return acct.Currency, nil
}
