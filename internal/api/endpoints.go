package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// endpointJSON is an endpoint; its secret is shown when it is made or rotated
// and never again.
type endpointJSON struct {
	ID             string             `json:"id"`
	Tenant         string             `json:"tenant"`
	Kind           string             `json:"kind" enum:"webhook,callback,feed" doc:"callback: it came from the callback_url of operations. feed: nothing is sent to it; its events are fetched by GET /v1/events."`
	URL            string             `json:"url"`
	Types          []string           `json:"types" doc:"Empty for all but operation.progress."`
	Scheme         string             `json:"scheme"`
	Description    string             `json:"description,omitempty"`
	Owner          string             `json:"owner,omitempty"`
	Policy         *ledger.PolicyJSON `json:"policy,omitempty"`
	Content        string             `json:"content" enum:"native,original" doc:"What events of generic sources are sent as."`
	CompleteWithin string             `json:"complete_within,omitempty" doc:"How long after its 2xx the receiver has to report that it is done; left out where a 2xx is the end."`
	Installation   bool               `json:"installation,omitempty" doc:"It belongs to the installation and to no tenant."`
	Disabled       bool               `json:"disabled"`
	DisabledReason string             `json:"disabled_reason,omitempty"`
	Version        int64              `json:"version"`
	CreatedAt      pawl.Time          `json:"created_at" format:"date-time"`
	UpdatedAt      pawl.Time          `json:"updated_at" format:"date-time"`
	FormerUntil    *pawl.Time         `json:"former_secret_until,omitempty" format:"date-time" doc:"The secret before the last rotation signs beside the present one until then."`
	PublicKey      string             `json:"public_key,omitempty" doc:"Verifies what the present secret signs, where the scheme has one (standard-webhooks-v1a); it is no secret."`
	Secret         string             `json:"secret,omitempty" doc:"Shown once."`
}

func endpointShape(e ledger.Endpoint) endpointJSON {
	out := endpointJSON{
		ID: e.ID.Text(pawl.PrefixEndpoint), Tenant: e.Tenant, Kind: "webhook", URL: e.URL, Types: []string{}, Scheme: e.Scheme,
		Description: e.Description, Owner: e.Owner, Disabled: e.Disabled, DisabledReason: e.DisabledReason, Version: e.Version,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, FormerUntil: isSet(e.FormerUntil), PublicKey: e.PublicKey,
		Installation: e.Installation(),
	}
	if e.Kind == ledger.CallbackEndpoint {
		out.Kind = "callback"
	}
	if out.Content = e.Content; out.Content == "" {
		out.Content = nativeContent
	}
	if e.CompleteWithin > 0 {
		out.CompleteWithin = e.CompleteWithin.String()
	}
	if e.Feed() {
		out.Kind, out.URL = "feed", ""
	}
	if e.Types != "" {
		out.Types = strings.Split(e.Types, ",")
	}
	if e.Policy != "" {
		out.Policy = new(ledger.PolicyJSON)
		_ = json.Unmarshal([]byte(e.Policy), out.Policy) // It was written by PolicyJSON.Text.
	}
	return out
}

func (a *api) endpointRoutes() {
	one := route{tag: "endpoints", scope: ledger.ScopeOperate, status: http.StatusOK, method: http.MethodPost}
	changed := func(rt route, also ...string) route {
		rt.headers, rt.refuses = []answerHeader{{name: "ETag"}}, reasons{412: {"version"}}
		if len(also) > 0 {
			rt.refuses[409] = also
		}
		return rt
	}
	with := func(rt route, method, path, name, summary string) route {
		rt.method, rt.path, rt.name, rt.summary = method, "/v1/endpoints"+path, name, summary
		return rt
	}
	create := with(one, http.MethodPost, "", "createEndpoint", "Add an endpoint; the answer shows its secret once")
	create.status = http.StatusCreated
	create.headers = []answerHeader{{name: "ETag"}, {name: "Location"}}
	create.refuses = reasons{400: {"url_refused"}, 404: {"not_found"}}
	handle(a, create, createEndpoint)
	list := with(one, http.MethodGet, "", "listEndpoints", "Endpoints, newest first")
	list.scope, list.paged, list.query = ledger.ScopeRead, true, []param{{"kind", "webhook, feeds included, or callback"}}
	handle(a, list, listEndpoints)
	get := with(one, http.MethodGet, "/{id}", "getEndpoint", "One endpoint; its ETag goes into If-Match of changes")
	get.scope, get.also = ledger.ScopeRead, []int{http.StatusNotModified}
	get.headers = []answerHeader{{name: "ETag"}}
	handle(a, get, getEndpoint)
	patch := changed(with(one, http.MethodPatch, "/{id}", "changeEndpoint", "Change an endpoint; members that are left out stay"), "callback_endpoint")
	patch.match, patch.refuses[400] = true, []string{"url_refused"}
	handle(a, patch, patchEndpoint)
	remove := with(one, http.MethodDelete, "/{id}", "deleteEndpoint", "Delete an endpoint; what waits for it is skipped")
	remove.status, remove.refuses = http.StatusNoContent, reasons{409: {"callback_endpoint"}, 412: {"version"}}
	handle(a, remove, deleteEndpoint)
	handle(a, changed(with(one, http.MethodPost, "/{id}/rotate-secret", "rotateEndpointSecret", "Give an endpoint a new secret; the former one signs beside it for a time"), "callback_endpoint"), rotateSecret)
	handle(a, changed(with(one, http.MethodPost, "/{id}/enable", "enableEndpoint", "Send to an endpoint again, from the oldest that waits")), enableEndpoint)
	test := with(one, http.MethodPost, "/{id}/test", "testEndpoint", "Send an event to this endpoint alone that says test: true, whatever types it asks for")
	test.status, test.keyed, test.maxBody, test.intake = http.StatusAccepted, optional, maxOutbound+publishSlack, true
	test.headers, test.refuses = []answerHeader{{name: "Location"}}, reasons{409: {"endpoint_disabled", "no_test"}}
	handle(a, test, testEndpoint)
	handle(a, changed(with(one, http.MethodPost, "/{id}/pause", "pauseEndpoint", "Send nothing to an endpoint; what is owed waits")), pauseEndpoint)
}

func createEndpoint(c *call, in endpointRequest) (endpointJSON, error) {
	if err := in.check(); err != nil {
		return endpointJSON{}, err
	}
	if in.Kind == kindFeed {
		in.URL = ledger.FeedURL
	} else if err := c.judgeURL(in.URL, "/url"); err != nil {
		return endpointJSON{}, err
	}
	tenant, err := c.endpointOwner(in)
	if err != nil {
		return endpointJSON{}, err
	}
	secret, err := secretFor(in.scheme(), in.Secret)
	if err != nil {
		return endpointJSON{}, err
	}
	id := store.NewID()
	sealed, err := c.seal(id, secret.text)
	if err != nil {
		return endpointJSON{}, err
	}
	out, err := c.do(c.ctx, ledger.CreateEndpoint{Header: c.head(), Endpoint: ledger.Endpoint{
		ID: id, Tenant: tenant, URL: in.URL, Types: strings.Join(in.Types, ","), Scheme: in.scheme(),
		Description: in.Description, Owner: in.Owner, Policy: in.Policy.Text(), Secret: sealed, PublicKey: secret.public,
		Content: in.content(), CompleteWithin: completeWithin(new(faults), in.CompleteWithin),
	}})
	if err != nil {
		return endpointJSON{}, err
	}
	shown := c.showEndpoint(out.Value.(ledger.Endpoint))
	shown.Secret = secret.text
	c.header.Set("Location", "/v1/endpoints/"+shown.ID)
	return shown, nil
}

// endpointOwner is whose endpoint it becomes: one of the installation's has no
// tenant.
func (c *call) endpointOwner(in endpointRequest) (string, error) {
	if !in.Installation {
		return c.owner()
	}
	if c.admin() && c.tenant == "" {
		return "", nil
	}
	p := refuse(http.StatusForbidden, "insufficient_scope", "an endpoint of the installation is made with the scope admin, and without the parameter tenant")
	p.Scope = "admin"
	return "", p
}

func listEndpoints(c *call, _ none) (page[endpointJSON], error) {
	f := store.EndpointFilter{Tenant: c.tenant}
	var err error
	if f.Kind, err = filterWord(c, "kind", parseEndpointKind); err != nil {
		return page[endpointJSON]{}, err
	}
	read := func(p store.Page) ([]ledger.Endpoint, error) { return c.opts.Reader.Endpoints(c.ctx, f, p) }
	return listed(c, read, func(e ledger.Endpoint) pawl.ID { return e.ID }, each(endpointShape))
}

func parseEndpointKind(word string) (ledger.EndpointKind, bool) {
	switch word {
	case "webhook":
		return ledger.WebhookEndpoint, true
	case "callback":
		return ledger.CallbackEndpoint, true
	}
	return 0, false
}

// endpoint is the endpoint in the path, if the call may see it.
func (c *call) endpoint() (ledger.Endpoint, error) {
	id, err := c.id(pawl.PrefixEndpoint)
	if err != nil {
		return ledger.Endpoint{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Endpoints: []pawl.ID{id}})
	if err != nil {
		return ledger.Endpoint{}, err
	}
	e, ok := rows.Endpoints.Get(id)
	if !ok || e.DeletedAt != 0 || !c.sees(e.Tenant) {
		return e, errNotFound
	}
	return e, nil
}

// ownEndpoint is [call.endpoint] for changes of what a tenant made itself: a callback
// endpoint follows from operations.
func (c *call) ownEndpoint() (ledger.Endpoint, error) {
	e, err := c.endpoint()
	if err == nil && e.Kind != ledger.WebhookEndpoint {
		err = refuse(http.StatusConflict, "callback_endpoint", "an endpoint of kind callback follows from the callback_url of operations; it can be paused and enabled only")
	}
	return e, err
}

func getEndpoint(c *call, _ none) (endpointJSON, error) {
	e, err := c.endpoint()
	if err != nil {
		return endpointJSON{}, err
	}
	shown := c.showEndpoint(e)
	if matchesWeakly(c.r.Header.Values("If-None-Match"), c.header.Get("ETag")) {
		c.status = http.StatusNotModified
	}
	return shown, nil
}

// showEndpoint shows an endpoint with its ETag.
func (c *call) showEndpoint(e ledger.Endpoint) endpointJSON {
	c.header.Set("ETag", `"`+strconv.FormatInt(e.Version, 10)+`"`)
	return endpointShape(e)
}

// change gives a change of the endpoint to the ledger, under its If-Match.
func (c *call) change(e ledger.Endpoint, action string, change ledger.EndpointChange) (endpointJSON, error) {
	version, err := ifMatch(c.r.Header.Values("If-Match"), e.Version)
	if err != nil {
		return endpointJSON{}, err
	}
	out, err := c.do(c.ctx, ledger.ChangeEndpoint{Header: c.head(), Tenant: c.tenant, ID: e.ID, IfVersion: version, Action: action, Change: change})
	if err != nil {
		return endpointJSON{}, err
	}
	return c.showEndpoint(out.Value.(ledger.Endpoint)), nil
}

func deleteEndpoint(c *call, _ none) (none, error) {
	e, err := c.ownEndpoint()
	if err != nil {
		return none{}, err
	}
	_, err = c.change(e, "delete", ledger.EndpointChange{Delete: true})
	c.header.Del("ETag")
	return none{}, err
}

func enableEndpoint(c *call, _ none) (endpointJSON, error) {
	return c.disable(false, "enable", "")
}

func pauseEndpoint(c *call, _ none) (endpointJSON, error) {
	return c.disable(true, "pause", "paused")
}

func (c *call) disable(disabled bool, action, reason string) (endpointJSON, error) {
	e, err := c.endpoint()
	if err != nil {
		return endpointJSON{}, err
	}
	return c.change(e, action, ledger.EndpointChange{Disabled: &disabled, DisabledReason: reason})
}
