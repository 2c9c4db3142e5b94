package intake

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// receipt is the answer to an event that was taken (2-contracts §1).
type receipt struct {
	Received  bool         `json:"received"`
	Verdict   pawl.Verdict `json:"verdict"`
	Reason    string       `json:"reason,omitempty"`
	EventID   string       `json:"event_id,omitempty"`
	Duplicate bool         `json:"duplicate,omitempty"`
	Stale     bool         `json:"stale,omitempty"`
	Conflict  bool         `json:"conflict,omitempty"`
}

// answer maps the verdict to the status of 2-contracts §1.
func (h *Handler) answer(w http.ResponseWriter, from *source, got ledger.Received) {
	if got.Verdict == pawl.Hint {
		h.hinted(w, from, got.Reason)
		return
	}
	h.o.Arrivals.Judged(from.name, got.Verdict.String())
	body := receipt{Received: true, Verdict: got.Verdict, EventID: got.Event.Text(pawl.PrefixEvent)}
	switch got.Verdict {
	case pawl.Duplicate:
		body.Duplicate = true
		write(w, http.StatusOK, "application/json", body)
	case pawl.Stale:
		body.Stale = true
		write(w, http.StatusOK, "application/json", body)
	case pawl.Conflict:
		body.Conflict = true
		write(w, http.StatusOK, "application/json", body)
	case pawl.Rejected, pawl.UnknownState:
		problem(w, http.StatusBadRequest, got.Reason)
	default:
		write(w, http.StatusAccepted, "application/json", body)
	}
}

// hinted answers what only made a read due, if that.
func (h *Handler) hinted(w http.ResponseWriter, from *source, reason string) {
	h.o.Arrivals.Unstored(from.name, pawl.Hint.String(), from.sample(h.o.Now(), http.StatusAccepted, reason))
	write(w, http.StatusAccepted, "application/json", receipt{Received: true, Verdict: pawl.Hint, Reason: reason})
}

// refuse answers what was never judged. It is counted and sampled, and one in a
// while is logged, so that a flood leaves a trace and fills nothing. Who only looks
// whether somebody is there, at the address of no source that greets, has sent no
// callback: that is answered alike and is none of these.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, from *source, status int, reason string) {
	if from.name == telemetry.UnknownName && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		problem(w, status, reason)
		return
	}
	h.o.Arrivals.Unstored(from.name, telemetry.Refused, from.sample(h.o.Now(), status, reason))
	if missed, ok := h.seen.take(h.o.Now()); ok {
		h.o.Log.WarnContext(r.Context(), "an inbound request was refused", "source", from.name, "status", status, "reason", reason, "peer", r.RemoteAddr,
			"headers", from.headers, "absent", from.absent, "more", missed)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Signature")
	}
	problem(w, status, reason)
}

func problem(w http.ResponseWriter, status int, reason string) {
	write(w, status, "application/problem+json", map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "reason": reason,
	})
}

func write(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// sampler lets one through per interval and counts the rest.
type sampler struct {
	every time.Duration

	mu     sync.Mutex
	next   time.Time
	missed int
}

func newSampler(every time.Duration) *sampler { return &sampler{every: every} }

func (s *sampler) take(now time.Time) (missed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		s.missed++
		return 0, false
	}
	missed, s.missed = s.missed, 0
	s.next = now.Add(s.every)
	return missed, true
}
