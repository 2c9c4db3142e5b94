package api

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/desk"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The limits of own workers' requests.
const (
	maxLeases       = 32
	maxCapabilities = 100
	maxResult       = 1 << 20
	maxMessage      = 1000
	maxProgress     = 200
)

// workRoutes are the worker side (2-contracts §1).
func (a *api) workRoutes() {
	lost := reasons{http.StatusNotFound: {"not_found"}, http.StatusConflict: {"finished", "lease_ended", "lease_lost", "upstream_unknown"}}
	handle(a, route{
		method: http.MethodPost, path: "/v1/work/lease", name: "leaseWork", tag: "work", scope: ledger.ScopeOperate,
		status: http.StatusOK, also: []int{http.StatusNoContent},
		summary: "Lease the oldest operations that wait for an own worker, with their inputs, which is audited; 204 where there is nothing to do",
	}, leaseWork)
	handle(a, route{
		method: http.MethodPost, path: "/v1/work/{lease}/heartbeat", name: "heartbeatWork", tag: "work", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Say that the work goes on, which extends the lease, and hear whether it shall stop", refuses: lost,
	}, heartbeat)
	handle(a, route{
		method: http.MethodPost, path: "/v1/work/{lease}/progress", name: "progressWork", tag: "work", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Show how far the work has come; it moves no state and extends no lease", refuses: lost,
	}, progress)
	handle(a, route{
		method: http.MethodPost, path: "/v1/work/{lease}/complete", name: "completeWork", tag: "work", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Say that the work is done. The same lease gets the same answer again", maxBody: maxResult + maxBody,
		refuses: reasons{http.StatusNotFound: {"not_found"}, http.StatusConflict: {"finished", "lease_ended", "lease_lost", "cancel_not_requested"}},
	}, completeWork)
	handle(a, route{
		method: http.MethodPost, path: "/v1/work/{lease}/fail", name: "failWork", tag: "work", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Say that the work has failed, for good or for another worker to try. The same lease gets the same answer again", refuses: lost,
	}, failWork)
}

// leaseRequest is what a worker asks for.
type leaseRequest struct {
	Capabilities []string `json:"capabilities,omitempty" maxItems:"100" doc:"Models that the worker can do, as MODEL or UPSTREAM/MODEL. Left out or empty: all."`
	Wait         int      `json:"wait,omitempty" minimum:"0" doc:"Seconds to wait for work where there is none; more than 60 count as 60."`
	Max          int      `json:"max,omitempty" minimum:"1" maximum:"32" doc:"How many operations to lease at most; 1 if it is left out."`
}

// patience implements [patienter].
func (in leaseRequest) patience() time.Duration {
	return min(time.Duration(max(in.Wait, 0))*time.Second, maxWait)
}

func (in leaseRequest) check() error {
	var f faults
	f.check(in.Wait >= 0, "/wait", "must be a number of seconds that is not negative")
	f.check(in.Max >= 0 && in.Max <= maxLeases, "/max", fmt.Sprintf("must be from 1 to %d", maxLeases))
	f.check(len(in.Capabilities) <= maxCapabilities, "/capabilities", fmt.Sprintf("may name %d models", maxCapabilities))
	for i, word := range in.Capabilities {
		f.check(word != "" && plainText(word, 2*maxWord), fmt.Sprintf("/capabilities/%d", i), "must be MODEL or UPSTREAM/MODEL, at most 510 bytes without control characters")
	}
	return f.err()
}

// leaseJSON is one lease.
type leaseJSON struct {
	Lease     string               `json:"lease" doc:"Names the lease in the calls about it; lease_…" example:"lease_01hzy3v7k9f8r6q5w4e3t2y1u0_1"`
	Operation ledger.OperationJSON `json:"operation" doc:"With its input as the bytes received."`
	Attempt   int32                `json:"attempt" doc:"Which lease of the operation it is, from 1."`
	ExpiresAt pawl.Time            `json:"expires_at" doc:"Another worker may get the operation after that, unless a heartbeat comes before."`
}

// leasedJSON is the answer to a worker that got something: its first lease, and
// the others, so that one and several are read alike.
type leasedJSON struct {
	Lease     string               `json:"lease" doc:"Names the lease in the calls about it." example:"lease_01hzy3v7k9f8r6q5w4e3t2y1u0_1"`
	Operation ledger.OperationJSON `json:"operation" doc:"With its input as the bytes received."`
	Attempt   int32                `json:"attempt" doc:"Which lease of the operation it is, from 1."`
	ExpiresAt pawl.Time            `json:"expires_at" doc:"Another worker may get the operation after that, unless a heartbeat comes before."`
	More      []leaseJSON          `json:"more,omitempty" doc:"The second and further ones, where max was more than 1."`
}

// text implements [texter]: an encoder would change the white space of inputs,
// which are passed on as the bytes received (1-product A2).
func (l leasedJSON) text() ([]byte, error) {
	inputs := make(map[string]json.RawMessage)
	mark := func(op *ledger.OperationJSON) {
		if op.Input == nil {
			return // It is no longer stored.
		}
		// Nobody can have written what is drawn only now.
		name := rand.Text()
		inputs[name], op.Input = op.Input, json.RawMessage(`"`+name+`"`)
	}
	l.More = slices.Clone(l.More)
	mark(&l.Operation)
	for i := range l.More {
		mark(&l.More[i].Operation)
	}
	text, err := encoded(l)
	for name, input := range inputs {
		text = bytes.Replace(text, []byte(`"`+name+`"`), input, 1)
	}
	return text, err
}

func leaseWork(c *call, in leaseRequest) (leasedJSON, error) {
	if err := in.check(); err != nil {
		return leasedJSON{}, err
	}
	if c.opts.Desk == nil {
		c.status = http.StatusNoContent
		return leasedJSON{}, nil
	}
	leases, err := c.opts.Desk.Lease(c.ctx, desk.Ask{
		Tenant: c.tenant, Capabilities: in.Capabilities, Limit: max(in.Max, 1), Actor: c.by.ID.Text(pawl.PrefixKey),
	}, in.patience())
	if err != nil {
		return leasedJSON{}, err
	}
	if len(leases) == 0 {
		c.status = http.StatusNoContent
		return leasedJSON{}, nil
	}
	shown, err := c.showLeases(leases)
	if err != nil {
		return leasedJSON{}, err
	}
	first := shown[0]
	return leasedJSON{first.Lease, first.Operation, first.Attempt, first.ExpiresAt, shown[1:]}, nil
}

// showLeases are leases with the inputs of their operations.
func (c *call) showLeases(leases []ledger.WorkLease) ([]leaseJSON, error) {
	ops, inputs := make([]ledger.Operation, len(leases)), make([]ledger.PayloadID, len(leases))
	for i, l := range leases {
		ops[i], inputs[i] = l.Operation, ledger.PayloadID{Owner: l.Operation.ID, Kind: ledger.InputPayload}
	}
	views, err := c.views(c.ctx, ops, inputs...)
	if err != nil {
		return nil, err
	}
	shown := make([]leaseJSON, len(leases))
	for i, l := range leases {
		shown[i] = leaseJSON{l.ID.String(), views[i], l.ID.Attempt, l.ExpiresAt}
	}
	return shown, nil
}

// lease is the lease in the path with its operation's upstream, if the call may
// see it. A text of another form is as unknown as one that was never given.
func (c *call) lease() (ledger.WorkLeaseID, ledger.Upstream, error) {
	lease, err := ledger.ParseWorkLeaseID(c.r.PathValue("lease"))
	if err != nil {
		return lease, ledger.Upstream{}, errNotFound
	}
	rows, err := c.load(c.ctx, ledger.Keys{Operations: []pawl.ID{lease.Operation}})
	if err != nil {
		return lease, ledger.Upstream{}, err
	}
	op, ok := rows.Operations.Get(lease.Operation)
	if !ok || !c.sees(op.Tenant) || op.Adapter != ledger.WorkerAdapter || lease.Attempt > op.Creates {
		return lease, ledger.Upstream{}, errNotFound
	}
	return lease, c.upstream(op.Upstream), nil
}

// worked refuses what needs the settings of an upstream that is no longer one of
// own workers.
func worked(up ledger.Upstream) error {
	if up.Worker {
		return nil
	}
	return refuse(http.StatusConflict, "upstream_unknown", "the operation's upstream is not configured for own workers any more; configure it again, with preset: worker, to go on")
}

// workStatusJSON is what a worker hears about its lease.
type workStatusJSON struct {
	Lease           string    `json:"lease"`
	OperationID     string    `json:"operation_id"`
	Attempt         int32     `json:"attempt"`
	ExpiresAt       pawl.Time `json:"expires_at" doc:"Another worker may get the operation after that, unless a heartbeat comes before."`
	CancelRequested bool      `json:"cancel_requested" doc:"The worker shall stop and say so: the operation is to be canceled, or its deadline has passed."`
	Deadline        pawl.Time `json:"deadline"`
}

// status has a worker's word decided and answers with its lease.
func (c *call) workStatus(cmd ledger.Command) (workStatusJSON, error) {
	out, err := c.do(c.ctx, cmd)
	if err != nil {
		return workStatusJSON{}, err
	}
	s := out.Value.(ledger.WorkStatus)
	return workStatusJSON{
		s.Lease.String(), s.Operation.ID.Text(pawl.PrefixOperation), s.Lease.Attempt, s.ExpiresAt, s.CancelRequested, s.Operation.Deadline,
	}, nil
}

func heartbeat(c *call, _ none) (workStatusJSON, error) {
	lease, up, err := c.lease()
	if err == nil {
		err = worked(up)
	}
	if err != nil {
		return workStatusJSON{}, err
	}
	return c.workStatus(ledger.Heartbeat{Header: c.head(), Tenant: c.tenant, Lease: lease, Up: up})
}

// progressRequest shows how far the work has come.
type progressRequest struct {
	Percent *float64 `json:"percent,omitempty" minimum:"0" maximum:"100"`
	Message string   `json:"message,omitempty" maxLength:"200" doc:"Shown as the operation's upstream_state."`
}

func progress(c *call, in progressRequest) (workStatusJSON, error) {
	var f faults
	f.check(in.Percent != nil || in.Message != "", "", "give percent, message or both")
	f.check(in.Percent == nil || *in.Percent >= 0 && *in.Percent <= 100, "/percent", "must be from 0 to 100")
	f.check(plainText(in.Message, maxProgress), "/message", "is longer than 200 bytes or holds control characters")
	if err := f.err(); err != nil {
		return workStatusJSON{}, err
	}
	lease, up, err := c.lease()
	if err == nil {
		err = worked(up)
	}
	if err != nil {
		return workStatusJSON{}, err
	}
	cmd := ledger.ReportProgress{Header: c.head(), Tenant: c.tenant, Lease: lease, Progress: -1, Message: in.Message}
	if in.Percent != nil {
		cmd.Progress = int32(math.Round(*in.Percent * 100))
	}
	return c.workStatus(cmd)
}

// completeRequest says that the work is done.
type completeRequest struct {
	Result   json.RawMessage `json:"result,omitempty" doc:"Any value, at most 1 MiB."`
	Cost     *money          `json:"cost,omitempty" doc:"What it cost; a success without it costs its price. More than the price is clamped to it and reviewed."`
	Canceled bool            `json:"canceled,omitempty" doc:"The worker stopped because it was asked to; the result is not kept."`
}

func completeWork(c *call, in completeRequest) (ledger.OperationJSON, error) {
	if len(in.Result) > maxResult {
		return ledger.OperationJSON{}, refuse(http.StatusRequestEntityTooLarge, "content_too_large", "a result may have 1 MiB; store the rest elsewhere and give its address")
	}
	cmd := ledger.CompleteWork{Header: c.head(), Tenant: c.tenant, Canceled: in.Canceled}
	if text := string(in.Result); text != "null" {
		cmd.Result = text
	}
	if in.Cost != nil {
		var f faults
		amount, err := pawl.ParseAmount(in.Cost.Amount)
		if err != nil {
			f.add("/cost/amount", err.Error())
		}
		f.check(amount >= 0, "/cost/amount", "is negative")
		f.check(pawl.ValidCurrency(in.Cost.Currency), "/cost/currency", "must be three upper-case letters such as USD")
		if err := f.err(); err != nil {
			return ledger.OperationJSON{}, err
		}
		cmd.HasCost, cmd.Cost, cmd.CostText, cmd.Currency = true, amount, in.Cost.Amount, in.Cost.Currency
	}
	lease, up, err := c.lease()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	cmd.Lease, cmd.Up = lease, up
	return c.changed(cmd)
}

// failRequest says that the work has failed.
type failRequest struct {
	Code      string `json:"code" enum:"invalid_request,unsupported_combination,content_rejected,rate_limited,upstream_unavailable,generation_failed,timeout,invalid_asset,upstream_failed" doc:"Why, in one of nine words."`
	Message   string `json:"message,omitempty" maxLength:"1000" doc:"For people; shown with the operation."`
	Retryable bool   `json:"retryable,omitempty" doc:"Another worker may try, after a while, if attempts and time are left."`
}

func failWork(c *call, in failRequest) (ledger.OperationJSON, error) {
	code := pawl.FailureCode(in.Code)
	var f faults
	f.check(pawl.FailureCodeOf(in.Code) == code, "/code", "must be one of the nine codes that GET /v1/openapi.json lists, such as generation_failed")
	f.check(plainText(in.Message, maxMessage), "/message", "is longer than 1000 bytes or holds control characters")
	if err := f.err(); err != nil {
		return ledger.OperationJSON{}, err
	}
	lease, up, err := c.lease()
	if err == nil && in.Retryable {
		err = worked(up)
	}
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	return c.changed(ledger.FailWork{Header: c.head(), Tenant: c.tenant, Lease: lease, Up: up, Code: code, Message: in.Message, Retryable: in.Retryable})
}
