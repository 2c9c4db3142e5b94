package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/desk"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/internal/watch"
)

// Options are what the API works with. All but the fields with a default given
// are required, but for Sources.
type Options struct {
	// Store takes the commands, Reader serves lists and single rows.
	Store  store.Commands
	Reader store.Reader
	// Upstreams are the configured upstreams, Sources the configured sources
	// that are no upstreams; [Handler.Reload] replaces both.
	Upstreams upstream.InForce
	Sources   sender.Set
	// Egress judges the URLs that callers want requests sent to.
	Egress *egress.Policy
	// Watch tells those who wait for an operation that it has changed; without
	// one nobody waits.
	Watch *watch.Hub
	// Desk hands work to own workers; without one there is none.
	Desk *desk.Desk
	// Lists reads the lists of sources; without it there are none.
	Lists *Lists
	// Vault seals the secrets that the ledger keeps.
	Vault *vault.Vault
	// Rewrap seals everything anew, where an operator asks for it.
	Rewrap *vault.Rewrapper
	// ReviewDue is how long there is to decide a review; nil is the reasons' own.
	ReviewDue func(pawl.Reason) time.Duration
	// Window is how long an idempotency key lives at least; 24 h if zero.
	Window time.Duration
	// Nodes are the nodes that serve the ledger; nil shows none.
	Nodes func(context.Context) ([]store.Node, error)
	// Health is what this node has measured, with the calls to the named upstreams;
	// nil shows none of it.
	Health func(upstreams []string) Health
	// Arrivals is what has come from each source; nil shows none of it.
	Arrivals *telemetry.Arrivals
	// Full reports whether the disk is too full for anything new; nil never says
	// so.
	Full func() bool
	// ArtifactURL gives a link to a captured file and when it ends.
	ArtifactURL func(a ledger.Artifact, now time.Time) (string, time.Time)
	// PageKey is what the key of page tokens is derived from; all nodes of one
	// ledger share it. Without one a random key is drawn, and tokens end with
	// the process.
	PageKey []byte
	// Version is that of the program, for the API's description.
	Version string
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
}

// api is the handler's state.
type api struct {
	opts Options
	live atomic.Pointer[live]
	mux  *http.ServeMux
	doc  *huma.OpenAPI
	text []byte
	// statuses are those that calls answer with for each reason.
	statuses map[string][]int
	keys     *keyCache
	uses     *keyUses
	rates    *keyRates
	money    *currencyCache
	pages    sealer
}

// Handler serves everything under /v1. Take it from [New]; it is safe for
// concurrent use.
type Handler struct{ *api }

// New builds the handler.
func New(opts Options) Handler {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{
		opts: opts, mux: http.NewServeMux(), doc: newDescription(opts.Version), statuses: make(map[string][]int),
		keys: newKeyCache(), uses: newKeyUses(), rates: newKeyRates(), money: newCurrencyCache(), pages: newSealer(opts.PageKey),
	}
	a.operationRoutes()
	a.artifactRoutes()
	a.endpointRoutes()
	a.deliveryRoutes()
	a.replayRoutes()
	a.eventRoutes()
	a.reviewRoutes()
	a.accountRoutes()
	a.keyRoutes()
	a.tenantRoutes()
	a.nodeRoutes()
	a.statusRoutes()
	a.upstreamRoutes()
	a.pauseRoutes()
	a.sourceRoutes()
	a.twoSidedRoutes()
	a.auditRoutes()
	a.secretRoutes()
	a.erasureRoutes()
	a.workRoutes()
	a.problemRoutes()
	a.describeRoute()
	h := Handler{a}
	h.Reload(opts.Sources, opts.Window)
	return h
}

// load reads single rows.
func (a *api) load(ctx context.Context, keys ledger.Keys) (*ledger.Rows, error) {
	rows := new(ledger.Rows)
	return rows, a.opts.Reader.Load(ctx, &keys, rows)
}

// do has a command decided; a refusal is the error.
func (a *api) do(ctx context.Context, cmd ledger.Command) (ledger.Outcome, error) {
	out, err := a.opts.Store.Do(ctx, cmd)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	if p, ok := out.Value.(ledger.Panic); ok {
		a.opts.Log.ErrorContext(ctx, "command panicked", "panic_type", p.Type, "stack", p.Stack)
	}
	return out, err
}

var errNotFound = &pawl.Error{Kind: pawl.NotFound, Reason: "not_found", Message: "there is nothing under this id that this key may see"}

// asError gives an error back as one of a type, or nil.
func asError[E error](err error) (e E) {
	_ = errors.As(err, &e)
	return e
}
