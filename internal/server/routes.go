package server

import (
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/capture"
	"github.com/pawlhq/pawl/internal/console"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// readiness says whether the node wants traffic.
type readiness struct{ on, drains atomic.Bool }

func newReadiness() *readiness { return &readiness{} }

// begin takes requests; what has not begun is starting, and drains not.
func (r *readiness) begin() { r.on.Store(true) }

// end takes none any more, for good.
func (r *readiness) end() {
	r.on.Store(false)
	r.drains.Store(true)
}

// public is what the API listener serves. Paths are told apart before any
// ServeMux sees them: it would clean and redirect what must be refused.
func (n *Node) public(native, hooks, files http.Handler) http.Handler {
	rest := http.NewServeMux()
	n.health(rest)
	root := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/hooks/"):
			hooks.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, capture.FilesPath):
			files.ServeHTTP(w, r)
		case r.URL.Path == "/livez", r.URL.Path == "/readyz":
			rest.ServeHTTP(w, r)
		case n.fronts.Serves(r):
			n.fronts.ServeHTTP(w, r)
		default:
			native.ServeHTTP(w, r)
		}
	})
	return telemetry.HTTP(route, n.metrics, n.traces, n.log, n.panicked, root)
}

// panicked answers in the form of whoever the request was for.
func (n *Node) panicked(w http.ResponseWriter, r *http.Request) {
	if n.fronts.Serves(r) {
		n.fronts.Panicked(w, r)
		return
	}
	api.Panicked(w, r)
}

// admin is what the admin listener serves; it is loopback unless configured
// otherwise.
func (n *Node) admin() http.Handler {
	mux := http.NewServeMux()
	n.health(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /{$}", http.RedirectHandler(console.Path, http.StatusSeeOther)) // Who knows the port alone finds it.
	mux.Handle(console.Path, n.console)
	mux.Handle(console.Path+"/", n.console)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return telemetry.HTTP(route, n.metrics, nil, n.log, nil, mux)
}

// health answers the probes: /livez depends on nothing, /readyz is off while
// the node starts or drains, and while the disk is nearly full (OP-02, OP-03).
func (n *Node) health(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case !n.ready.on.Load():
			text(w, http.StatusServiceUnavailable, "not ready\n")
			return
		case n.disk.full():
			text(w, http.StatusServiceUnavailable, "not ready: the disk is nearly full, nothing new is taken in\n")
			return
		}
		text(w, http.StatusOK, "ready\n")
	})
}

func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// route is the pattern that served a request, never its path; "" if none did.
func route(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, "/hooks/") {
		return "/hooks/{source}/{token}"
	}
	if strings.HasPrefix(r.URL.Path, capture.FilesPath) {
		return capture.FilesPath + "{token}"
	}
	return r.Pattern
}
