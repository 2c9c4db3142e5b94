package api

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/pawlhq/pawl/internal/strict"
)

// ServeHTTP runs the route of a request. Only canonical paths have one: the
// mux would answer others with a redirect (HT-13).
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if err := dispatch(a.mux, w, r); err != nil {
		a.fail(w, r, err)
	}
}

// dispatch serves a request by a mux; the error is the refusal of one that it has
// no route for.
func dispatch(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	if !canonical(r) {
		return refuse(http.StatusNotFound, "not_found", "no such path; paths have no empty, dotted or encoded segments and no slash at the end")
	}
	if h, pattern := mux.Handler(r); pattern == "" {
		return unmatched(r, h)
	}
	if strict.HeadSize(r) > strict.MaxHead {
		return refuse(http.StatusRequestHeaderFieldsTooLarge, "headers_too_large", "the request line and its headers have more than 32 KiB together")
	}
	mux.ServeHTTP(w, r)
	return nil
}

func canonical(r *http.Request) bool {
	p := r.URL.Path
	return r.Method != http.MethodConnect && strings.HasPrefix(p, "/") && path.Clean(p) == p && r.URL.EscapedPath() == p
}

// unmatched turns the mux's own 404 or 405 into a problem; of the mux's answer
// the Allow header is kept (HT-04).
func unmatched(r *http.Request, h http.Handler) error {
	probe := &probe{header: make(http.Header)}
	h.ServeHTTP(probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return refuse(http.StatusNotFound, "not_found", "no such path; GET /v1/openapi.json lists them")
	}
	allow := probe.header.Get("Allow")
	return refuse(http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("this path takes %s", allow)).with("Allow", allow)
}

// probe is a ResponseWriter that keeps status and header only.
type probe struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (p *probe) Header() http.Header { return p.header }

// Write implements http.ResponseWriter and drops the body.
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (p *probe) WriteHeader(status int) { p.status = status }
