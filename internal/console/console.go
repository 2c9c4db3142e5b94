// Package console is the operator's page: HTML made on the server, readable
// without JavaScript, live with it. It shows what the API answers and does what
// the API does, by calling it inside the process for the API key of the session:
// so tenants, scopes, idempotency and audit are the API's own, and no rule of the
// ledger is here.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/watch"
)

// Options are what the console works with. API is required.
type Options struct {
	// API answers everything that pages show, and does what they do.
	API api.Handler
	// Watch tells pages that an operation has changed; without it they are told at
	// every tick.
	Watch *watch.Hub
	// Metrics are this node's, for the overview; nil shows none.
	Metrics prometheus.Gatherer
	// Version is the program's.
	Version string
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
}

// Console serves everything under /console. Take it from [New]; it is safe for
// concurrent use.
type Console struct {
	o        Options
	mux      *http.ServeMux
	sessions *sessions
	logins   *attempts
	trend    *trend
	pages    pages
	assets   assets
	origin   *http.CrossOriginProtection
	streams  *streams
	ended    chan struct{}
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// New builds the console. [Console.Run] measures for it.
func New(o Options) *Console {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Console{
		o: o, mux: http.NewServeMux(), sessions: newSessions(), logins: newAttempts(), trend: newTrend(time.Now()),
		assets: loadAssets(), origin: http.NewCrossOriginProtection(),
		streams: newStreams(), ended: make(chan struct{}),
	}
	c.pages = loadPages(c.assets)
	c.routes()
	return c
}

// routes are all pages and acts. What changes something is in the table of
// [acts]; everything else is a GET that changes nothing.
func (c *Console) routes() {
	c.mux.HandleFunc("GET /console/static/{name}", c.assets.serve)
	c.open("GET /console/login", (*visit).loginPage)
	c.open("POST /console/login", (*visit).login)
	c.open("POST /console/logout", (*visit).logout)
	c.page("GET /console/live", (*visit).live)
	c.page("GET /console", (*visit).overview)
	c.page("GET /console/search", (*visit).search)
	c.page("GET /console/operations", (*visit).operations)
	c.page("GET /console/operations/{id}", (*visit).operation)
	c.page("GET /console/operations/{id}/input", (*visit).input)
	c.page("GET /console/reviews", (*visit).reviews)
	c.page("GET /console/reviews/{id}", (*visit).review)
	c.page("GET /console/upstreams", (*visit).upstreams)
	c.page("GET /console/events", (*visit).events)
	c.page("GET /console/events/{id}", (*visit).event)
	c.page("GET /console/events/{id}/raw", (*visit).raw)
	c.page("GET /console/deliveries", (*visit).deliveries)
	c.page("GET /console/deliveries/{id}", (*visit).delivery)
	c.page("GET /console/endpoints", (*visit).endpoints)
	c.page("POST /console/endpoints", (*visit).addEndpoint)
	c.page("GET /console/endpoints/{id}", (*visit).endpoint)
	c.page("GET /console/accounts", (*visit).accounts)
	c.page("GET /console/accounts/{id}", (*visit).account)
	c.page("GET /console/keys", (*visit).keys)
	c.page("POST /console/keys", (*visit).addKey)
	c.page("GET /console/keys/{id}", (*visit).key)
	c.page("GET /console/audit", (*visit).audit)
	c.page("GET /console/replays", (*visit).replays)
	c.page("POST /console/replays", (*visit).addReplay)
	c.page("GET /console/replays/{id}", (*visit).replay)
	c.page("GET /console/nodes", (*visit).nodes)
	for path, r := range rotations {
		c.page("POST "+path, func(v *visit) error { return v.rotate(r.to, r.title) })
	}
	for _, a := range acts {
		c.page("POST "+a.path, a.run)
	}
	c.page("/console/", func(*visit) error { return errNoPage })
}

// open registers a page that needs no session.
func (c *Console) open(pattern string, serve func(*visit) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := &visit{Console: c, w: w, r: r}
		v.session, v.token = c.sessions.find(r, time.Now())
		v.finish(serve(v))
	})
}

// page registers a page for those alone who have logged in.
func (c *Console) page(pattern string, serve func(*visit) error) {
	c.open(pattern, func(v *visit) error {
		if err := v.enter(); err != nil {
			return err
		}
		return serve(v)
	})
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	harden(w.Header(), secure(r))
	v := &visit{Console: c, w: w, r: r}
	switch err := c.origin.Check(r); {
	case !secure(r) && !loopback(r.Host):
		v.finish(errPlain)
	case err != nil:
		v.finish(errOrigin)
	case r.URL.EscapedPath() != r.URL.Path:
		// An encoded slash in an id would make another path of the API of it.
		v.finish(errNoPage)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		c.mux.ServeHTTP(w, r)
	}
}

// Run measures what the overview shows over time, until the context ends.
func (c *Console) Run(ctx context.Context) {
	if c.o.Metrics != nil {
		c.trend.run(ctx, c.o.Metrics)
	}
}

// Close ends the pages that wait for changes, so that the node can stop. It is
// called once.
func (c *Console) Close() { close(c.ended) }

// policy is the Content-Security-Policy of everything here: nothing inline,
// nothing from elsewhere, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// harden sets the headers that every answer has (CO-03).
func harden(h http.Header, tls bool) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if tls {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// secure reports whether the browser speaks TLS, to us or to a proxy before us.
// Who lies about it harms only the cookie that is given back.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// loopback reports whether a Host header names the machine itself. A page
// elsewhere that has its name resolve to this machine names itself (DNS
// rebinding), and over the wire the key would be readable.
func loopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback() || strings.EqualFold(name, "localhost")
}

// remote is where a request comes from, without the port.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

var (
	errNoPage = &problem{Status: http.StatusNotFound, Title: "There is no such page", Detail: "The address is mistyped, or what it names is not visible to your key."}
	errOrigin = &problem{Status: http.StatusForbidden, Title: "The request came from another site", Detail: "Open the console in its own window and do it there."}
	errPlain  = &problem{Status: http.StatusForbidden, Title: "Not without TLS", Detail: "Over plain HTTP the console answers on the machine itself alone. Open it by an SSH tunnel (ssh -L 8081:127.0.0.1:8081 HOST, then http://127.0.0.1:8081/console), or behind a proxy with TLS that sets X-Forwarded-Proto."}
)

// problem is what a page cannot be shown for; the API's refusals have the same
// members.
type problem struct {
	Status   int    `json:"status"`
	Title    string `json:"title"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
	Reason   string `json:"reason"`
	Scope    string `json:"scope"`
}

// Error is the title and what to do.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// asProblem gives an error as something to show.
func (v *visit) asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	v.o.Log.ErrorContext(v.r.Context(), "a page failed", "route", v.r.Pattern, "error", err)
	return &problem{Status: http.StatusInternalServerError, Title: "An error on our side", Detail: "The page could not be made. Load it again; the log says more."}
}
