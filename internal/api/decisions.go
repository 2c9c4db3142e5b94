package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// decisionRoutes are what stops an operation and what decides it by hand.
func (a *api) decisionRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/operations/{id}/cancel", name: "cancelOperation", tag: "operations", scope: ledger.ScopeOperate,
		status: http.StatusAccepted, also: []int{http.StatusOK}, keyed: optional,
		summary: "Ask to cancel an operation. What was never created is canceled at once, all else as the provider says; 200 where it had ended before",
		headers: []answerHeader{{name: "Retry-After", status: http.StatusAccepted, optional: true}},
		refuses: reasons{409: {"cancel_unsupported", "upstream_unknown"}},
	}, cancelOperation)
	handle(a, route{
		method: http.MethodPost, path: "/v1/operations/{id}/resolve", name: "resolveOperation", tag: "operations", scope: ledger.ScopeOperate, status: http.StatusOK, keyed: optional,
		summary: "Decide what became of an unconfirmed operation, or correct how a finished one ended",
		refuses: reasons{
			400: {"unknown_decision", "task_id_missing", "note_missing"}, 402: {"insufficient_credit"},
			409: {"not_unconfirmed", "task_of_another_operation", "finished", "nothing_to_correct", "erased"},
			422: {"currency", "unmetered", "charge_refused", "above_reservation"},
		},
	}, resolveOperation)
}

func cancelOperation(c *call, _ none) (ledger.OperationJSON, error) {
	op, err := c.operation()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	out, err := c.decide(ledger.Cancel{Header: c.head(), Once: c.once(), Tenant: c.tenant, Operation: op.ID, Up: c.upstream(op.Upstream)})
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	op = out.Value.(ledger.Operation)
	switch {
	case !op.State.Terminal():
		c.header.Set("Retry-After", retryAfter(c.upstream(op.Upstream)))
	case out.Reason != "canceled":
		c.status = http.StatusOK
	}
	return c.shown(out)
}

// shown is the operation that a command answered with.
func (c *call) shown(out ledger.Outcome) (ledger.OperationJSON, error) {
	views, err := c.views(c.ctx, []ledger.Operation{out.Value.(ledger.Operation)})
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	return views[0], nil
}

// decisionRequest is an operator's decision about an operation.
type decisionRequest struct {
	Decision string `json:"decision" enum:"created,not_created,failed,succeeded,canceled,expired" doc:"Of an unconfirmed operation: created, not_created or failed. Of a finished one, with from and note: the state that it is corrected to."`
	TaskID   string `json:"task_id,omitempty" maxLength:"255" doc:"The provider's id, with the decision created."`
	From     string `json:"from,omitempty" enum:"succeeded,failed,canceled,expired" doc:"The state that a correction leaves."`
	Charge   *money `json:"charge,omitempty" doc:"What a corrected operation costs, at most its price. Left out, a success costs what the provider reported or else its price, and everything else nothing."`
	Note     string `json:"note,omitempty" maxLength:"1000" doc:"Why; a correction needs it, and its event tells it."`
}

func resolveOperation(c *call, in decisionRequest) (ledger.OperationJSON, error) {
	op, err := c.operation()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	cmd := ledger.ResolveOperation{
		Header: c.head(), Once: c.once(), Tenant: c.tenant, Operation: op.ID, Up: c.upstream(op.Upstream), Decision: in.Decision, Task: in.TaskID, Note: in.Note,
	}
	f := decided(in.Decision, in.TaskID, in.Note)
	if in.From != "" {
		from, ok := pawl.ParseState(in.From)
		f.check(ok && from.Terminal(), "/from", "is none of succeeded, failed, canceled and expired")
		cmd.From = from
	}
	if in.Charge != nil {
		amount, err := pawl.ParseAmount(in.Charge.Amount)
		if err != nil {
			f.add("/charge/amount", err.Error())
		}
		f.check(amount >= 0, "/charge/amount", "is negative")
		f.check(in.From != "", "/charge", "goes with a correction only")
		cmd.Charge, cmd.HasCharge = amount, true
	}
	if err := f.err(); err != nil {
		return ledger.OperationJSON{}, err
	}
	if in.Charge != nil && op.Currency != "" && in.Charge.Currency != op.Currency {
		return ledger.OperationJSON{}, refuse(http.StatusUnprocessableEntity, "currency", "the operation's money is in "+op.Currency+"; amounts are never converted")
	}
	out, err := c.decide(cmd)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	return c.shown(out)
}

// decided checks the members that all decisions share.
func decided(decision, task, note string) faults {
	var f faults
	f.check(decision != "", "/decision", "is missing")
	f.check(plainText(decision, 64), "/decision", "is longer than 64 bytes or holds control characters")
	f.check(plainText(task, 255), "/task_id", "is longer than 255 bytes or holds control characters")
	f.check(plainText(note, maxDescription), "/note", "is longer than 1000 bytes or holds control characters")
	return f
}
