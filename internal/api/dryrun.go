package api

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// planJSON says what a submission would come to. Everything was judged by the
// same decision, and nothing was recorded.
type planJSON struct {
	DryRun         bool       `json:"dry_run" doc:"true"`
	Outcome        string     `json:"outcome" enum:"create,replay" doc:"replay: it would be answered with an operation that exists."`
	OperationID    string     `json:"operation_id,omitempty" doc:"The operation of a replay."`
	IdempotencyKey string     `json:"idempotency_key" enum:"new,known"`
	Upstream       string     `json:"upstream"`
	Model          string     `json:"model"`
	Adapter        string     `json:"adapter,omitempty"`
	Metered        bool       `json:"metered"`
	Price          *money     `json:"price,omitempty" doc:"What would be reserved."`
	AccountID      string     `json:"account_id,omitempty" doc:"What would pay."`
	AvailableAfter string     `json:"available_after,omitempty" example:"99.850000000" doc:"What the account could spend after that."`
	Deadline       *pawl.Time `json:"deadline,omitempty" format:"date-time"`
}

// submitted is what a submission is answered with: an operation, or for a dry
// run what it would come to.
type submitted struct {
	operation ledger.OperationJSON
	plan      *planJSON
}

// MarshalJSON writes the one or the other.
func (s submitted) MarshalJSON() ([]byte, error) {
	if s.plan != nil {
		return json.Marshal(s.plan)
	}
	return json.Marshal(s.operation)
}

// Schema describes the one or the other.
func (submitted) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		r.Schema(reflect.TypeFor[ledger.OperationJSON](), true, "Operation"), r.Schema(reflect.TypeFor[planJSON](), true, "Plan"),
	}}
}

// dry reports whether the request only asks what would happen.
func (c *call) dry() (bool, error) {
	return filterWord(c, "dry_run", parseTrue)
}

// plan judges a submission without recording anything.
func (c *call) plan(cmd ledger.Submit, in submitRequest) (submitted, error) {
	c.status = http.StatusOK
	if refusal := c.complete(&cmd, in); refusal != nil {
		op, ok, err := c.accepted(cmd)
		if err == nil && !ok {
			err = refusal
		}
		return submitted{plan: planOf(ledger.Submitted{Operation: op, Replayed: true}, new(ledger.Rows), true)}, err
	}
	out, rows, err := store.Preview(c.ctx, c.opts.Reader, cmd)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	if err != nil {
		return submitted{}, err
	}
	return submitted{plan: planOf(out.Value.(ledger.Submitted), rows, out.Reason == "replayed")}, nil
}

func planOf(answer ledger.Submitted, rows *ledger.Rows, known bool) *planJSON {
	op := answer.Operation
	p := &planJSON{
		DryRun: true, Outcome: "create", IdempotencyKey: "new", Upstream: op.Upstream, Model: op.Model, Adapter: op.Adapter,
		Metered: op.Money != ledger.Unmetered, Deadline: isSet(op.Deadline),
	}
	if known {
		p.IdempotencyKey = "known"
	}
	if answer.Replayed {
		p.Outcome, p.OperationID = "replay", op.ID.Text(pawl.PrefixOperation)
	}
	if p.Metered {
		price := moneyOf(op.Reserved, op.Currency)
		p.Price, p.AccountID = &price, op.Account.Text(pawl.PrefixAccount)
	}
	if acct, ok := rows.Accounts.Get(op.Account); ok {
		p.AvailableAfter = accountShape(acct).Available
	}
	return p
}
