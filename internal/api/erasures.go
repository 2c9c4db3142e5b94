package api

import (
	"cmp"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/retention"
)

// erasureCount is how much one call counts at most.
const erasureCount = 10_000

// The states of an erasure.
const (
	erasureNone   = "not_asked"
	erasureGoing  = "erasing"
	erasureDone   = "erased"
	erasureDryRun = "dry_run"
)

// erasureRequest says what is to be erased, and why.
type erasureRequest struct {
	Operation string `json:"operation_id,omitempty" doc:"The operation; or give tenant."`
	Tenant    string `json:"tenant,omitempty" doc:"The tenant, of which all is erased that was made until now; or give operation_id."`
	Reason    string `json:"reason" maxLength:"1000" doc:"Kept in the audit; name the request, not the person."`
	DryRun    bool   `json:"dry_run,omitempty" doc:"Say what would be erased, and change nothing."`
}

// erasureJSON is how far an erasure is.
type erasureJSON struct {
	Operation   string     `json:"operation_id,omitempty"`
	Tenant      string     `json:"tenant,omitempty"`
	State       string     `json:"state" enum:"not_asked,dry_run,erasing,erased"`
	RequestedAt *pawl.Time `json:"requested_at,omitempty" format:"date-time"`
	Operations  int        `json:"operations" doc:"Operations that still hold content which may be erased."`
	Events      int        `json:"events" doc:"Events of no operation that still hold content."`
	HeldBack    int        `json:"held_back" doc:"Operations that cannot be erased yet: unfinished, unsettled, or in review. A tenant's are erased as soon as they can be."`
	More        bool       `json:"more,omitempty" doc:"There is more than was counted."`
}

func (a *api) erasureRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/erasures", name: "erase", tag: "erasures", scope: ledger.ScopeAdmin, status: http.StatusAccepted, also: []int{http.StatusOK},
		summary: "Erase what an operation or a tenant holds; the ledger's facts stay. It may be repeated. 200 answers a dry run",
		refuses: reasons{http.StatusNotFound: {"not_found"}, http.StatusConflict: {"not_erasable"}},
		shows:   map[int]reflect.Type{http.StatusAccepted: reflect.TypeFor[erasureJSON]()},
	}, erase)
	handle(a, route{
		method: http.MethodGet, path: "/v1/erasures/{name}", name: "getErasure", tag: "erasures", scope: ledger.ScopeAdmin, status: http.StatusOK,
		summary: "How far the erasure of an operation or a tenant is",
		refuses: reasons{http.StatusNotFound: {"not_found"}},
	}, getErasure)
}

func erase(c *call, in erasureRequest) (erasureJSON, error) {
	var f faults
	f.check((in.Operation == "") != (in.Tenant == ""), "/operation_id", "give either operation_id or tenant")
	f.check(in.Reason != "" && plainText(in.Reason, maxDescription), "/reason", "says why, in at most 1000 bytes without control characters")
	if err := f.err(); err != nil {
		return erasureJSON{}, err
	}
	shown, err := c.erasure(cmp.Or(in.Operation, in.Tenant))
	if err != nil {
		return erasureJSON{}, err
	}
	if in.DryRun {
		c.status = http.StatusOK
		if shown.State == erasureNone {
			shown.State = erasureDryRun
		}
		return shown, nil
	}
	if in.Tenant != "" {
		_, err = c.do(c.ctx, ledger.EraseTenant{Header: c.head(), Tenant: in.Tenant, Reason: in.Reason})
	} else {
		err = c.eraseOperation(in)
	}
	if err != nil {
		return erasureJSON{}, err
	}
	return c.erasure(cmp.Or(in.Operation, in.Tenant))
}

func (c *call) eraseOperation(in erasureRequest) error {
	id, err := pawl.ParseID(pawl.PrefixOperation, in.Operation)
	if err != nil {
		return errNotFound
	}
	op, err := c.operationOf(id)
	if err != nil {
		return err
	}
	_, err = c.do(c.ctx, ledger.EraseOperation{
		Header: c.head(), Tenant: c.tenant, Operation: op.ID, Whose: op.Tenant, Correlation: op.CorrelationID, Reason: in.Reason,
	})
	return err
}

func getErasure(c *call, _ none) (erasureJSON, error) { return c.erasure(c.r.PathValue("name")) }

// erasure is how far that of an operation or a tenant is.
func (c *call) erasure(subject string) (erasureJSON, error) {
	id, err := pawl.ParseID(pawl.PrefixOperation, subject)
	if err != nil {
		return c.tenantErasure(subject)
	}
	op, err := c.operationOf(id)
	if err != nil {
		return erasureJSON{}, err
	}
	shown := erasureJSON{Operation: subject, State: erasureNone, RequestedAt: isSet(op.ErasedAt)}
	switch {
	case op.ErasedAt.IsSet() && op.Kept == 0:
		shown.State = erasureDone
	case op.ErasedAt.IsSet():
		shown.State, shown.Operations = erasureGoing, 1
	case op.Erasable() != "":
		shown.HeldBack = 1
	default:
		shown.Operations = 1
	}
	return shown, nil
}

var errEnough = errors.New("enough was counted")

func (c *call) tenantErasure(name string) (erasureJSON, error) {
	rows, err := c.load(c.ctx, ledger.Keys{Tenants: []string{name}})
	if err != nil {
		return erasureJSON{}, err
	}
	t, ok := rows.Tenants.Get(name)
	if !ok || !c.sees(name) {
		return erasureJSON{}, errNotFound
	}
	shown := erasureJSON{Tenant: name, State: erasureNone, RequestedAt: isSet(t.EraseBefore)}
	before := pawl.TimeOf(time.Now())
	if t.EraseBefore.IsSet() {
		shown.State, before = erasureGoing, t.EraseBefore
	}
	count := func(n *int) error {
		if *n++; shown.Operations+shown.Events+shown.HeldBack >= erasureCount {
			return errEnough
		}
		return nil
	}
	err = retention.EachOf(c.ctx, c.opts.Reader, name, before, func(op ledger.Operation) error {
		if op.Erasable() != "" {
			return count(&shown.HeldBack)
		}
		return count(&shown.Operations)
	}, func(ledger.Event) error { return count(&shown.Events) })
	if errors.Is(err, errEnough) {
		shown.More, err = true, nil
	}
	if shown.State == erasureNone && shown.Operations+shown.Events+shown.HeldBack == 0 {
		shown.State = erasureDone
	}
	return shown, err
}
