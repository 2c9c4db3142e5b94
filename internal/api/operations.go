package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func (a *api) operationRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/operations", name: "submitOperation", tag: "operations", scope: ledger.ScopeSubmit,
		status: http.StatusAccepted, also: []int{http.StatusOK}, keyed: required, maxBody: maxInput + maxBody, intake: true, waits: true,
		summary: "Submit an operation. A replay answers 202 while it is unfinished and 200 after its end, both with Idempotency-Replayed",
		query:   []param{{"dry_run", "true: judge everything, record nothing, and answer 200 with what would happen"}},
		headers: submitHeaders, refuses: submitRefusals,
		shows: map[int]reflect.Type{http.StatusAccepted: reflect.TypeFor[ledger.OperationJSON]()},
	}, submit)
	handle(a, route{
		method: http.MethodGet, path: "/v1/operations", name: "listOperations", tag: "operations", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "Search operations, newest first",
		query: []param{
			{"state", "pending, unconfirmed, running, succeeded, failed, canceled or expired"}, {"unfinished", "true for those that have not ended"},
			{"upstream", ""}, {"task_id", "The provider's id"}, {"correlation_id", "The application's own id"},
			{"request_id", "The Pawl-Request-Id that its submit was answered with"}, {"upstream_request_id", "The provider's latest id of a request"},
			{"idempotency_key", "The one operation that this API key submitted under it"},
			{"created_before", "Submitted before then, such as 2026-01-02T15:04:05Z"},
			{"metadata.*", "One member of the metadata, as metadata.NAME=VALUE; a number as it was written. Two of them at once are refused with 400"},
		},
	}, listOperations)
	handle(a, route{
		method: http.MethodGet, path: "/v1/operations/{id}", name: "getOperation", tag: "operations", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One operation; with its input for a key with the scope payloads, which is audited",
		query:   []param{{"wait", "Seconds, at most 60: answer when the operation has ended, or after that time as it is then"}}, waits: true,
		headers: []answerHeader{{name: "Retry-After", optional: true}, {name: "Preference-Applied", optional: true}},
	}, getOperation)
	handle(a, route{
		method: http.MethodGet, path: "/v1/operations/{id}/timeline", name: "getTimeline", tag: "operations", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "What happened to an operation, in the order of time, the latest thousand lines",
		query:   []param{{"until", "Only what happened before that moment, as earlier says it"}},
	}, getTimeline)
	handle(a, route{
		method: http.MethodPost, path: "/v1/operations/{id}/reconcile", name: "reconcileOperation", tag: "operations", scope: ledger.ScopeOperate, status: http.StatusAccepted,
		summary: "Read the upstream as soon as its limits allow",
		headers: []answerHeader{{name: "Retry-After"}}, refuses: reasons{409: {"nothing_to_read", "upstream_unknown"}},
	}, reconcile)
	handle(a, retryRoute(), retry)
	a.decisionRoutes()
}

func listOperations(c *call, _ none) (page[ledger.OperationJSON], error) {
	f := store.OperationFilter{
		Tenant: c.tenant, Upstream: c.query.Get("upstream"), Task: c.query.Get("task_id"), CorrelationID: c.query.Get("correlation_id"),
		RequestID: c.query.Get("request_id"), UpstreamRequestID: c.query.Get("upstream_request_id"),
	}
	var err error
	if f.State, err = filterWord(c, "state", pawl.ParseState); err != nil {
		return page[ledger.OperationJSON]{}, err
	}
	if f.Unfinished, err = filterWord(c, "unfinished", parseTrue); err != nil {
		return page[ledger.OperationJSON]{}, err
	}
	for name := range c.query {
		key, ok := strings.CutPrefix(name, "metadata.")
		if ok && f.MetadataKey != "" {
			return page[ledger.OperationJSON]{}, refuse(http.StatusBadRequest, "invalid_query", "only one member of the metadata can be asked for")
		}
		if ok {
			f.MetadataKey, f.MetadataValue = key, c.query.Get(name)
		}
	}
	older, err := c.moment("created_before")
	if err != nil {
		return page[ledger.OperationJSON]{}, err
	}
	if key := c.query.Get("idempotency_key"); key != "" {
		return c.operationOfKey(key, f, older)
	}
	read := func(p store.Page) ([]ledger.Operation, error) {
		// Ids begin with the time, and lists go by id.
		if before := pawl.NewID(older, 0); older.IsSet() && (p.After.IsZero() || p.After.Compare(before) > 0) {
			p.After = before
		}
		return c.opts.Reader.Operations(c.ctx, f, p)
	}
	return listed(c, read, func(op ledger.Operation) pawl.ID { return op.ID }, c.showOperations)
}

func parseTrue(text string) (value, ok bool) {
	return text == "true", text == "true" || text == "false"
}

// operationOfKey lists the one operation that the caller's own key stands for
// (1-product A6).
func (c *call) operationOfKey(header string, f store.OperationFilter, older pawl.Time) (page[ledger.OperationJSON], error) {
	if f != (store.OperationFilter{Tenant: c.tenant}) || older.IsSet() {
		return page[ledger.OperationJSON]{}, refuse(http.StatusBadRequest, "invalid_query", "idempotency_key goes with no other filter")
	}
	key, err := idempotencyKey([]string{header})
	if err != nil {
		return page[ledger.OperationJSON]{}, err
	}
	tenant := c.tenant
	if tenant == "" {
		tenant = c.by.Tenant
	}
	op, _, ok, err := c.claimed(tenant, key)
	if err != nil || !ok {
		return page[ledger.OperationJSON]{Items: []ledger.OperationJSON{}}, err
	}
	items, err := c.showOperations([]ledger.Operation{op})
	return page[ledger.OperationJSON]{Items: items}, err
}

// operation is the operation in the path, if the call may see it.
func (c *call) operation() (ledger.Operation, error) {
	id, err := c.id(pawl.PrefixOperation)
	if err != nil {
		return ledger.Operation{}, err
	}
	return c.operationOf(id)
}

// operationOf is an operation, if the call may see it.
func (c *call) operationOf(id pawl.ID) (ledger.Operation, error) {
	rows, err := c.load(c.ctx, ledger.Keys{Operations: []pawl.ID{id}})
	if err != nil {
		return ledger.Operation{}, err
	}
	op, ok := rows.Operations.Get(id)
	if !ok || !c.sees(op.Tenant) {
		return op, errNotFound
	}
	return op, nil
}

func getOperation(c *call, _ none) (ledger.OperationJSON, error) {
	op, err := c.operation()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	if op, err = c.await(op); err != nil {
		return ledger.OperationJSON{}, err
	}
	payloads := []ledger.PayloadID{}
	if c.may(ledger.ScopePayloads) {
		if err := c.accessed(op.Tenant, "operation.input", op.ID.Text(pawl.PrefixOperation)); err != nil {
			return ledger.OperationJSON{}, err
		}
		payloads = append(payloads, ledger.PayloadID{Owner: op.ID, Kind: ledger.InputPayload})
	}
	views, err := c.views(c.ctx, []ledger.Operation{op}, payloads...)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	if !op.State.Terminal() {
		c.header.Set("Retry-After", retryAfter(c.upstream(op.Upstream)))
	}
	return views[0], nil
}

func (c *call) showOperations(ops []ledger.Operation) ([]ledger.OperationJSON, error) {
	return c.views(c.ctx, ops)
}

// views are operations with their metadata and results, read at once, and
// with those inputs that are asked for.
func (a *api) views(ctx context.Context, ops []ledger.Operation, inputs ...ledger.PayloadID) ([]ledger.OperationJSON, error) {
	ids, sets := inputs, []pawl.ID(nil)
	for _, op := range ops {
		ids = append(ids, ledger.PayloadID{Owner: op.ID, Kind: ledger.MetadataPayload})
		if shown := op.ShownResult(); !shown.IsZero() {
			ids = append(ids, ledger.PayloadID{Owner: shown, Kind: ledger.ResultPayload})
		}
		if op.Artifacts > 0 {
			sets = append(sets, op.ID)
		}
	}
	items := make([]ledger.OperationJSON, len(ops))
	if len(ids) == 0 {
		return items, nil
	}
	payloads, err := a.opts.Reader.Payloads(ctx, ids...)
	if err != nil {
		return nil, err
	}
	rows, err := a.load(ctx, ledger.Keys{ArtifactSets: sets})
	if err != nil {
		return nil, err
	}
	for i, op := range ops {
		v := op.View()
		v.Tenant = op.Tenant
		v.Artifacts = op.ShowArtifacts(rows.ArtifactsOf(op.ID))
		v.Input = ledger.Raw(payloads[ledger.PayloadID{Owner: op.ID, Kind: ledger.InputPayload}])
		v.Metadata = ledger.Raw(payloads[ledger.PayloadID{Owner: op.ID, Kind: ledger.MetadataPayload}])
		v.Result = ledger.Raw(payloads[ledger.PayloadID{Owner: op.ShownResult(), Kind: ledger.ResultPayload}])
		items[i] = v
	}
	return items, nil
}

// changed shows an operation after a command.
func (c *call) changed(cmd ledger.Command) (ledger.OperationJSON, error) {
	out, err := c.do(c.ctx, cmd)
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	views, err := c.views(c.ctx, []ledger.Operation{out.Value.(ledger.Operation)})
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	return views[0], nil
}

func reconcile(c *call, _ none) (ledger.OperationJSON, error) {
	op, err := c.operation()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	if _, configured := c.ups[op.Upstream]; !configured && !op.State.Terminal() {
		return ledger.OperationJSON{}, refuse(http.StatusConflict, "upstream_unknown", "the operation's upstream is not configured any more; configure it again to go on")
	}
	c.header.Set("Retry-After", retryAfter(c.upstream(op.Upstream)))
	return c.changed(ledger.ReadNow{Header: c.head(), Tenant: c.tenant, Operation: op.ID, Up: c.upstream(op.Upstream)})
}
