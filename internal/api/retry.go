package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// retryRequest is what may differ when an operation is tried again; all else is
// as it was.
type retryRequest struct {
	Deadline     string `json:"deadline,omitempty" format:"date-time" doc:"At most 30 days from now; the upstream's own if it is left out."`
	ExpectedCost *money `json:"expected_cost,omitempty" doc:"What is reserved; the model's present price if it is left out, and without one what was reserved before."`
	Account      string `json:"account,omitempty" doc:"What pays; what paid before if it is left out."`
}

func retryRoute() route {
	return route{
		method: http.MethodPost, path: "/v1/operations/{id}/retry", name: "retryOperation", tag: "operations", scope: ledger.ScopeSubmit,
		status: http.StatusAccepted, also: []int{http.StatusOK}, keyed: required, waits: true, intake: true,
		summary: "Try an operation again that failed, expired or was canceled: a new operation with retry_of. Of a success whose files could not be saved, only that is tried again: the same operation",
		headers: submitHeaders, refuses: withReasons(submitRefusals, http.StatusConflict, "not_retryable"),
	}
}

// retry submits again what an operation was made of (1-product A9).
func retry(c *call, in retryRequest) (ledger.OperationJSON, error) {
	op, err := c.operation()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	if op.State == pawl.Succeeded {
		return c.retryCaptures(op)
	}
	again, err := c.again(op, in)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	if err := again.check(); err != nil {
		return ledger.OperationJSON{}, err
	}
	cmd, err := c.command(again, op.Tenant)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	cmd.Fingerprint, cmd.Work, cmd.RetryOf = ledger.RetryFingerprint(op.ID), cmd.Fingerprint, op.ID
	cmd.AskedModel = op.AskedModel
	if cmd.CallbackScheme, err = c.callbackScheme(op); err != nil {
		return ledger.OperationJSON{}, err
	}
	return c.place(cmd, again)
}

// retryCaptures tries to save the files again that a success could not give us;
// nothing is bought again (O-078).
func (c *call) retryCaptures(op ledger.Operation) (ledger.OperationJSON, error) {
	out, err := c.decide(ledger.RetryCaptures{Header: c.head(), Once: c.once(), Tenant: c.tenant, Operation: op.ID})
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	c.locate(op)
	return c.shown(out)
}

// again is the request that the operation was made of, with what is asked for
// anew.
func (c *call) again(op ledger.Operation, in retryRequest) (submitRequest, error) {
	input := ledger.PayloadID{Owner: op.ID, Kind: ledger.InputPayload}
	metadata := ledger.PayloadID{Owner: op.ID, Kind: ledger.MetadataPayload}
	payloads, err := c.opts.Reader.Payloads(c.ctx, input, metadata)
	if err != nil {
		return submitRequest{}, err
	}
	if payloads[input] == "" {
		return submitRequest{}, refuse(http.StatusConflict, "not_retryable", "the operation's input is no longer kept; submit it anew")
	}
	again := submitRequest{
		Upstream: op.Upstream, Model: op.Model, Input: rawObject(payloads[input]), CallbackURL: op.CallbackURL,
		CorrelationID: op.CorrelationID, Owner: op.Owner, Deadline: in.Deadline, ExpectedCost: in.ExpectedCost, Account: in.Account,
	}
	if op.Hold {
		again.Release = config.ReleaseHold
	}
	if text := payloads[metadata]; text != "" {
		again.Metadata = rawObject(text)
	}
	metered := op.Money != ledger.Unmetered
	if metered && again.Account == "" {
		again.Account = op.Account.Text(pawl.PrefixAccount)
	}
	if metered && again.ExpectedCost == nil && c.ups[op.Upstream].models[op.Model].Price == nil {
		before := moneyOf(op.Reserved, op.Currency)
		again.ExpectedCost = &before
	}
	return again, nil
}

// callbackScheme is how events are signed for the address that the operation was
// submitted with.
func (c *call) callbackScheme(op ledger.Operation) (string, error) {
	if op.Callback.IsZero() {
		return defaultScheme, nil
	}
	rows, err := c.load(c.ctx, ledger.Keys{Endpoints: []pawl.ID{op.Callback}})
	if err != nil {
		return "", err
	}
	endpoint, ok := rows.Endpoints.Get(op.Callback)
	if !ok {
		return defaultScheme, nil
	}
	return endpoint.Scheme, nil
}
