package api

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Options are what the API works with. All but the fields with a default given
// are required.
type Options struct {
	// Store takes the commands, Reader serves lists and single rows.
	Store  *store.Committer
	Reader store.Reader
	// Upstreams gives the configured upstreams by name. It is asked anew for
	// each request, so that a reload takes effect; the map is not changed.
	Upstreams func() map[string]Upstream
	// Sources gives the configured sources that are no upstreams.
	Sources func() []Source
	// Egress judges a URL that a caller wants requests sent to, without asking
	// DNS. Its error is shown to the caller and must not hold the URL's path.
	Egress func(url string) error
	// Window is how long an idempotency key lives at least; 24 h if zero.
	Window time.Duration
	// PageKey seals page tokens; all nodes of one ledger share it. A random key
	// is drawn if it is zero, and tokens end with the process.
	PageKey [32]byte
	// Version is that of the program, for the API's description.
	Version string
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
}

// Upstream is what the API knows of an upstream.
type Upstream struct {
	// Policy is handed on to decisions.
	Policy ledger.Upstream
	// Models are those that may be asked for, each with its price or nil where
	// it has none. An empty map lets any name pass.
	Models map[string]*pawl.Amount
	// Currency is that of the prices; empty means the account's.
	Currency string
	// Deadline is how long an operation may take unless it says otherwise.
	Deadline time.Duration
	// Tenants are those that may use it; empty means all.
	Tenants []string
}

// opens reports whether a tenant may use the upstream; an empty tenant stands
// for all of them.
func (u Upstream) opens(tenant string) bool {
	return tenant == "" || len(u.Tenants) == 0 || slices.Contains(u.Tenants, tenant)
}

// Source is a sender of inbound events that is no upstream.
type Source struct {
	Name, Scheme string
	// Tenant owns its events; empty means that only admin keys see them.
	Tenant string
}

// api is the handler's state.
type api struct {
	opts  Options
	mux   *http.ServeMux
	doc   *huma.OpenAPI
	keys  *keyCache
	money *currencyCache
	pages sealer
}

// New builds the handler of everything under /v1.
func New(opts Options) http.Handler {
	if opts.Window <= 0 {
		opts.Window = 24 * time.Hour
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.PageKey == [32]byte{} {
		_, _ = rand.Read(opts.PageKey[:]) // Never fails (crypto/rand).
	}
	a := &api{
		opts: opts, mux: http.NewServeMux(), doc: newDescription(opts.Version),
		keys: newKeyCache(), money: newCurrencyCache(), pages: newSealer(opts.PageKey),
	}
	a.operationRoutes()
	a.endpointRoutes()
	a.deliveryRoutes()
	a.eventRoutes()
	a.reviewRoutes()
	a.accountRoutes()
	a.keyRoutes()
	a.tenantRoutes()
	a.upstreamRoutes()
	a.auditRoutes()
	a.describeRoute()
	return a
}

// load reads single rows.
func (a *api) load(ctx context.Context, keys ledger.Keys) (*ledger.Rows, error) {
	rows := new(ledger.Rows)
	return rows, a.opts.Reader.Load(ctx, &keys, rows)
}

// upstream is the configured upstream of that name; one that is no longer
// configured keeps its name, so that decisions about its operations remain
// possible.
func (a *api) upstream(name string) ledger.Upstream {
	if u, ok := a.opts.Upstreams()[name]; ok {
		return u.Policy
	}
	return ledger.Upstream{Name: name}
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
