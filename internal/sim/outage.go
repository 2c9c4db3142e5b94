package sim

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// outage is which dialects are down. Safe for concurrent use.
type outage struct {
	mu sync.Mutex
	of []Dialect
}

func (o *outage) has(d Dialect) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.of, d)
}

// Fail begins an outage of these dialects, and ends that of all others; none ends
// it. While it lasts every call is answered 500 and does nothing, and callbacks
// that fall due are lost for good. Tasks go on: what ended meanwhile is learned by
// a read.
func (s *Server) Fail(dialects ...Dialect) {
	s.outage.mu.Lock()
	defer s.outage.mu.Unlock()
	s.outage.of = slices.Clone(dialects)
}

// fails answers a call of a dialect that is down.
func (s *Server) fails(w http.ResponseWriter, r *http.Request) bool {
	d := Native
	switch {
	case r.URL.Path == "/books":
		return false
	case strings.HasPrefix(r.URL.Path, "/api/v1/jobs/"):
		d = MediaV2
	case strings.HasPrefix(r.URL.Path, "/tasks"):
		d = BodyTimestamp
	}
	if !s.outage.has(d) {
		return false
	}
	s.refuse(w, d, http.StatusInternalServerError, "internal", "something went wrong")
	return true
}

// lost drops a callback that falls due during an outage.
func (c *courier) lost(j *job, attempt Attempt) {
	attempt.Fault = CallbackDropped
	c.note(j, attempt)
	if j.tried != nil && j.attempt == 0 {
		close(j.tried)
	}
}

// Fail takes the receiver down, or brings it back: while it is down everything is
// answered 500 before it is looked at.
func (r *Receiver) Fail(on bool) { r.down.Store(on) }
