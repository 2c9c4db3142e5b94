package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// requestTimeout bounds the work for one request, so that a slow store is told
// as 503 and not as a cut connection.
const requestTimeout = 20 * time.Second

// route describes one route: for the mux, for the checks that come before its
// handler, and for the OpenAPI document.
type route struct {
	method, path string
	// name is the operationId, tag the group in the document.
	name, tag, summary string
	// scope is what the API key needs; zero for any valid key.
	scope ledger.Scopes
	// query are the parameters beside "tenant", and paging if paged. Others are
	// refused: a mistyped filter must not list everything.
	query []param
	paged bool
	// keyed says whether an Idempotency-Key is needed or taken.
	keyed keying
	// match says that If-Match is needed.
	match bool
	// status is that of a success; maxBody bounds the body, 64 KiB if zero.
	status  int
	maxBody int64
	// intake says that it takes in something new, which is refused while the disk
	// is nearly full (1-product I7).
	intake bool
	// also are further statuses of successes.
	also []int
	// waits says that the answer can wait for the operation's end.
	waits bool
	// shows are the bodies of statuses that have another one than the rest.
	shows map[int]reflect.Type
	// refuses are the reasons for refusals beside those that follow from the
	// rest of the route, by status; headers are those of its successes.
	refuses reasons
	headers []answerHeader
}

// keying says what a route does with an Idempotency-Key.
type keying uint8

const (
	// optional: the key is honoured where one is given.
	optional keying = iota + 1
	// required: a request without a key is refused.
	required
)

// param is a query parameter; a name ending in ".*" stands for all names with
// what comes before.
type param struct{ name, doc string }

// call is one request to a route after the checks before its handler.
type call struct {
	*api
	*live
	ctx context.Context
	r   *http.Request
	// header and status are those of the answer.
	header http.Header
	status int
	// by is the API key that asks; blind says that it asks without the scope
	// payloads, though it may have it.
	by    ledger.APIKey
	blind bool
	// tenant restricts what is seen and changed; empty for an admin key that
	// did not narrow its view.
	tenant string
	query  url.Values
	// key is the Idempotency-Key, why the Pawl-Reason, empty where none was given.
	key, why string
	wish     wish
}

// handle registers a route with its handler.
func handle[In, Out any](a *api, rt route, fn func(*call, In) (Out, error)) {
	a.describe(rt, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	a.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		wish := wishOf(rt, r)
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		c := &call{api: a, live: a.live.Load(), ctx: ctx, r: r, header: make(http.Header), status: rt.status, wish: wish}
		out, err := run(c, w, rt, fn)
		if err == nil {
			maps.Copy(w.Header(), c.header)
			err = writeJSON(w, c.status, out)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

func run[In, Out any](c *call, w http.ResponseWriter, rt route, fn func(*call, In) (Out, error)) (out Out, err error) {
	if err = c.admit(rt); err != nil {
		return out, err
	}
	var in In
	if rt.method == http.MethodPost || rt.method == http.MethodPatch {
		most := rt.maxBody
		if most == 0 {
			most = maxBody
		}
		if err = decode(w, c.r, most, &in); err != nil {
			return out, err
		}
	}
	if asked, ok := any(in).(patienter); ok {
		c.wish.wait = asked.patience()
	}
	defer c.patient(w)()
	return fn(c, in)
}

// admit checks who asks, what they may, the query and the headers.
func (c *call) admit(rt route) error {
	by, err := c.asks()
	if err != nil {
		return err
	}
	c.by = by
	telemetry.Believe(c.ctx)
	return c.permit(rt)
}

// permit is [call.admit] once it is known who asks.
func (c *call) permit(rt route) (err error) {
	if err := c.paced(); err != nil {
		return err
	}
	if rt.scope != 0 && !c.may(rt.scope) {
		p := refuse(http.StatusForbidden, "insufficient_scope", "this call needs an API key with the scope "+scopeWord(rt.scope))
		p.Scope = scopeWord(rt.scope)
		return p
	}
	if err := c.readQuery(rt); err != nil {
		return err
	}
	if lines := c.r.Header.Values("Idempotency-Key"); rt.keyed == required || rt.keyed == optional && len(lines) > 0 {
		if c.key, err = idempotencyKey(lines); err != nil {
			return err
		}
	}
	if c.why, err = c.reasonGiven(rt); err != nil {
		return err
	}
	if rt.intake && c.opts.Full != nil && c.opts.Full() {
		return refuse(http.StatusServiceUnavailable, "disk_full", "nothing new is taken in until more of the server's disk is free; repeat it later, with the same Idempotency-Key if it had one").with("Retry-After", "60")
	}
	if rt.match && len(c.r.Header.Values("If-Match")) == 0 {
		return refuse(http.StatusPreconditionRequired, "if_match_missing", `send the ETag of the last GET as If-Match, so that nobody's change is overwritten unseen`)
	}
	return nil
}

// may reports whether the key has a scope; admin stands for all.
func (c *call) may(scope ledger.Scopes) bool {
	return c.by.Scopes&(scope|ledger.ScopeAdmin) != 0 && (scope != ledger.ScopePayloads || !c.blind)
}

func (c *call) admin() bool { return c.may(ledger.ScopeAdmin) }

func (c *call) readQuery(rt route) error {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_query", "the query is not well-formed")
	}
	c.query = query
	for name, values := range query {
		if !rt.takes(name) {
			return refuse(http.StatusBadRequest, "invalid_query", fmt.Sprintf("this call has no parameter %.60q", name))
		}
		if rt.filters(name) && values[0] == "" {
			return refuse(http.StatusBadRequest, "invalid_query", fmt.Sprintf("the parameter %.60q has no value; leave it out to ask for all", name))
		}
		if len(values) > 1 {
			return refuse(http.StatusBadRequest, "invalid_query", fmt.Sprintf("the parameter %.60q is given twice", name))
		}
	}
	if c.wish.wrong {
		return refuse(http.StatusBadRequest, "invalid_query", "wait must be a number of seconds that is not negative")
	}
	c.tenant = query.Get("tenant")
	if c.admin() {
		return nil
	}
	if c.tenant != "" && c.tenant != c.by.Tenant {
		return refuse(http.StatusForbidden, "tenant_forbidden", "only a key with the scope admin chooses another tenant")
	}
	c.tenant = c.by.Tenant
	return nil
}

func (rt route) takes(name string) bool {
	if name == "tenant" || rt.paged && (name == "page_size" || name == "page_token") {
		return true
	}
	for _, p := range rt.query {
		prefix, open := strings.CutSuffix(p.name, "*")
		if p.name == name || open && strings.HasPrefix(name, prefix) && name != prefix {
			return true
		}
	}
	return false
}

// filters reports whether a parameter that the route takes restricts what it is
// about, so that an empty value is a mistake: of those only that stand for
// themselves. A member of the metadata may well be empty.
func (rt route) filters(name string) bool {
	return name == "tenant" || slices.ContainsFunc(rt.query, func(p param) bool { return p.name == name })
}

// idempotencyKey reads the lines of the header (1-product A2, A3).
func idempotencyKey(lines []string) (string, error) {
	key, err := strict.IdempotencyKey(lines)
	if err == nil {
		return key, nil
	}
	reason := "idempotency_key_invalid"
	if err == strict.ErrKeyMissing {
		reason = "idempotency_key_missing"
	}
	p := refuse(http.StatusBadRequest, reason, err.Error())
	p.Documentation = docsIdempotency
	return "", p.with("Link", "<"+docsIdempotency+`>; rel="describedby"`)
}

// owner is the tenant that something new belongs to: the one that an admin key
// chose, else the key's own. A tenant that does not exist is not found.
func (c *call) owner() (string, error) {
	if c.tenant == "" || c.tenant == c.by.Tenant {
		return c.by.Tenant, nil
	}
	rows, err := c.load(c.ctx, ledger.Keys{Tenants: []string{c.tenant}})
	if err != nil {
		return "", err
	}
	if _, ok := rows.Tenants.Get(c.tenant); !ok {
		return "", errNotFound
	}
	return c.tenant, nil
}

// sees reports whether a row of the tenant is shown to this call.
func (c *call) sees(tenant string) bool { return c.tenant == "" || c.tenant == tenant }

// id reads the id in the path. One of another form is as unknown as one that
// does not exist.
func (c *call) id(prefix string) (pawl.ID, error) {
	id, err := pawl.ParseID(prefix, c.r.PathValue("id"))
	if err != nil {
		return id, errNotFound
	}
	return id, nil
}

// filterID reads an id in the query; zero if it is not given.
func (c *call) filterID(name, prefix string) (pawl.ID, error) {
	text := c.query.Get(name)
	if text == "" {
		return pawl.ID{}, nil
	}
	id, err := pawl.ParseID(prefix, text)
	if err != nil {
		return id, refuse(http.StatusBadRequest, "invalid_query", fmt.Sprintf("%s must be an id that begins with %s_", name, prefix))
	}
	return id, nil
}

// filterWord reads a word in the query; zero if it is not given.
func filterWord[T any](c *call, name string, parse func(string) (T, bool)) (v T, err error) {
	text := c.query.Get(name)
	if text == "" {
		return v, nil
	}
	v, ok := parse(text)
	if !ok {
		return v, refuse(http.StatusBadRequest, "invalid_query", fmt.Sprintf("%s has no such value; GET /v1/openapi.json lists them", name))
	}
	return v, nil
}

// head is the header of a command that this call gives.
func (c *call) head() ledger.Header {
	h := store.NewHeader(c.by.ID.Text(pawl.PrefixKey))
	h.Why = c.why
	return h
}

// because is the head of a command whose request says itself why: that goes into
// the audit where no header says it. It is not for what is said of an operation,
// which an erasure removes: the audit outlives that.
func (c *call) because(note string) ledger.Header {
	h := c.head()
	if h.Why == "" {
		h.Why = note
	}
	return h
}

// accessed records that something was read which is read under audit only; it
// must succeed before the thing is shown (7-rules R53).
func (c *call) accessed(tenant, action, subject string) error {
	_, err := c.do(c.ctx, ledger.RecordAccess{Header: c.head(), Tenant: tenant, Action: action, Subject: subject})
	return err
}

// once is the call's Idempotency-Key for a command that takes one.
func (c *call) once() ledger.Once {
	return ledger.Once{APIKey: c.by.ID, KeyTenant: c.by.Tenant, Key: c.key, Window: c.window}
}

// decide is [api.do] for a command that takes the call's Idempotency-Key: the
// answer to a repeat is marked.
func (c *call) decide(cmd ledger.Command) (ledger.Outcome, error) {
	out, err := c.do(c.ctx, cmd)
	if err == nil && out.Reason == "replayed" {
		c.replayed()
	}
	return out, err
}

// replayed marks the answer to a repeated request.
func (c *call) replayed() { c.header.Set("Idempotency-Replayed", "true") }
