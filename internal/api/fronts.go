package api

import (
	"context"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/ledger"
)

// backend is the API as the fronts use it: what it checks and commands is what a
// route of /v1 does.
type backend struct{ *api }

// Fronts is the API for the fronts of other dialects.
func (h Handler) Fronts() dialect.Backend { return backend(h) }

// Route implements [dialect.Backend].
func (b backend) Route(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	return dispatch(mux, w, r)
}

// Serve implements [dialect.Backend].
func (b backend) Serve(w http.ResponseWriter, r *http.Request, need dialect.Need, act func(dialect.Call) error) error {
	rt := route{method: r.Method, scope: need.Scope, intake: need.Creates, maxBody: maxBody}
	if need.Creates {
		rt.maxBody += maxInput
	}
	switch {
	case need.KeyRequired:
		rt.keyed = required
	case need.Keyed:
		rt.keyed = optional
	}
	for _, name := range need.Query {
		rt.query = append(rt.query, param{name: name})
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	c := &call{api: b.api, live: b.live.Load(), ctx: ctx, r: r, header: make(http.Header)}
	if err := c.enter(rt, need.Anonymous); err != nil {
		return err
	}
	return act(visit{c, w, rt})
}

// enter is [call.admit] for a route where a request without Authorization counts
// as an API key, unless that is zero.
func (c *call) enter(rt route, anonymous pawl.ID) error {
	if anonymous.IsZero() || len(c.r.Header.Values("Authorization")) > 0 {
		return c.admit(rt)
	}
	rows, err := c.load(c.ctx, ledger.Keys{APIKeys: []pawl.ID{anonymous}})
	if err != nil {
		return err
	}
	key, ok := rows.APIKeys.Get(anonymous)
	if !ok || !alive(key) {
		return unauthenticated("calls without an API key have ended here; send one as Authorization: Bearer "+KeyPrefix+"…", `Bearer realm="pawl"`)
	}
	c.used(key)
	c.by = key
	return c.permit(rt)
}

// Explain implements [dialect.Backend].
func (b backend) Explain(r *http.Request, err error) dialect.Refusal {
	p := b.explain(r, err)
	no := dialect.Refusal{Status: p.Status, Detail: p.Detail, Header: p.header}
	if id, err := pawl.ParseID(pawl.PrefixOperation, p.OperationID); err == nil {
		no.Operation = id
	}
	return no
}

// visit is a call that came through a front.
type visit struct {
	*call
	w  http.ResponseWriter
	rt route
}

// Decode implements [dialect.Call].
func (v visit) Decode(into any) error { return decode(v.w, v.r, v.rt.maxBody, into) }

// Submit implements [dialect.Call].
func (v visit) Submit(s dialect.Submission) (dialect.Job, error) {
	in := submitRequest{Upstream: s.Upstream, Model: s.Model, Input: s.Input, CallbackURL: s.Callback}
	if err := in.check(); err != nil {
		return dialect.Job{}, err
	}
	tenant, err := v.owner()
	if err != nil {
		return dialect.Job{}, err
	}
	cmd, err := v.command(in, tenant)
	if err != nil {
		return dialect.Job{}, err
	}
	cmd.AskedModel, cmd.CallbackScheme = s.Asked, s.Dialect
	view, err := v.place(cmd, in)
	return dialect.Job{View: view, Replayed: v.header.Get("Idempotency-Replayed") != ""}, err
}

// Job implements [dialect.Call].
func (v visit) Job(id pawl.ID) (dialect.Job, error) {
	op, err := v.operationOf(id)
	if err != nil {
		return dialect.Job{}, err
	}
	views, err := v.views(v.ctx, []ledger.Operation{op})
	if err != nil {
		return dialect.Job{}, err
	}
	return dialect.Job{View: views[0]}, nil
}
