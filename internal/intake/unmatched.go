package intake

import "net/http"

// unmatched answers what the mux has no route for, in the form of all other
// refusals: the mux's own answer is plain text. Of it the status and the header
// Allow are kept (HT-04).
func (h *Handler) unmatched(w http.ResponseWriter, r *http.Request) {
	fallback, _ := h.mux.Handler(r)
	probe := &probe{header: make(http.Header)}
	fallback.ServeHTTP(probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		h.refuse(w, r, nobody(r), http.StatusNotFound, "unknown_source")
		return
	}
	w.Header().Set("Allow", probe.header.Get("Allow"))
	h.refuse(w, r, nobody(r), http.StatusMethodNotAllowed, "method_not_allowed")
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
