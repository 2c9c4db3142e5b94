// Package intake is the edge that inbound events come to: it bounds, verifies
// and turns each into one command, and answers only after the commit
// (1-product C1, C2).
package intake

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// diskRetry is when a sender may try again while the disk is nearly full, in
// seconds: somebody has to make room.
const diskRetry = "60"

// MaxBody is the largest inbound body, in bytes (2-contracts §1).
const MaxBody = 4 << 20

// Options are what a [Handler] works with.
type Options struct {
	Store     store.Commands
	Upstreams upstream.InForce
	// Senders are the generic sources; nil stands for none.
	Senders   sender.InForce
	Callbacks upstream.Callbacks
	Metrics   *telemetry.Metrics
	Log       *slog.Logger
	// Full reports whether the disk is too full for anything new; nil never says
	// so.
	Full func() bool
	// Arrivals counts what comes in; nil counts in Metrics alone.
	Arrivals *telemetry.Arrivals
	// Now is the clock that timestamps are judged by; nil is that of the machine.
	Now func() time.Time
}

// Handler answers POST /hooks/{source} and /hooks/{source}/{token}, and what asks
// at the former before it sends. It is safe for concurrent use.
type Handler struct {
	o      Options
	mux    *http.ServeMux
	seen   *sampler
	rates  *rates
	bodies *bodies
}

// New makes the handler.
func New(o Options) *Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Senders == nil {
		o.Senders = sender.Set{}
	}
	if o.Arrivals == nil {
		o.Arrivals = telemetry.NewArrivals(o.Metrics, o.Now())
	}
	h := &Handler{o: o, mux: http.NewServeMux(), seen: newSampler(time.Second), rates: newRates(), bodies: newBodies()}
	h.mux.HandleFunc("POST /hooks/{source}", h.receive)
	h.mux.HandleFunc("POST /hooks/{source}/{token}", h.receive)
	h.mux.HandleFunc("GET /hooks/{source}", h.greet)
	h.mux.HandleFunc("OPTIONS /hooks/{source}", h.greet)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strict.HeadSize(r) > strict.MaxHead {
		h.refuse(w, r, nobody(r), http.StatusRequestHeaderFieldsTooLarge, "headers_too_large")
		return
	}
	// The mux would redirect, and repeat the token in the answer.
	if called := r.URL.EscapedPath(); path.Clean(called) != called {
		h.refuse(w, r, nobody(r), http.StatusNotFound, "unknown_source")
		return
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		h.mux.ServeHTTP(w, r)
		return
	}
	h.unmatched(w, r)
}

// receive runs lines 1 to 4 of 7-rules §1 and hands what is verified to the
// ledger, which runs the rest.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("source")
	if s, ok := h.o.Senders.Now()[name]; ok {
		h.receiveGeneric(w, r, s)
		return
	}
	up, ok := h.o.Upstreams.Now()[name]
	if !ok || up.Worked() {
		h.refuse(w, r, nobody(r), http.StatusNotFound, "unknown_source")
		return
	}
	from := claimed(up.Name(), up.SchemeHeaders(), r)
	var token pawl.ID
	if text := r.PathValue("token"); text != "" {
		if token, ok = h.o.Callbacks.Operation(up.Name(), text); !ok {
			h.refuse(w, r, from, http.StatusNotFound, "unknown_token")
			return
		}
		up = up.Hiding(text)
	}
	body, done, err := h.body(w, r, from, isJSON)
	defer done()
	if err != nil {
		if errors.Is(err, errTooLarge) || errors.Is(err, errEncoding) {
			h.readInstead(r, up, from, token)
		}
		h.unread(w, r, from, err)
		return
	}
	call, rejection := up.ParseCallback(r.Header, body, h.o.Now())
	if rejection != nil && !rejection.Kind.Verified() {
		h.refuse(w, r, from, http.StatusUnauthorized, rejection.Reason)
		return
	}
	if h.limited(w, r, from, up.Settings().CallbackRate) {
		return
	}
	if up.Trust() == upstream.TrustHint {
		h.hint(w, r, up, from, token, call, rejection)
		return
	}
	c := up.Arrival(call, rejection)
	c.Header, c.Token = store.NewHeader(""), token
	c.Body, c.Headers, c.Digest = string(body), keptHeaders(r.Header, up.SchemeHeaders()), from.digest
	c.Traceparent = telemetry.TraceContext(r.Context(), nil)
	h.decide(w, r, from, c)
}

// limited answers a source that sends more than it may.
func (h *Handler) limited(w http.ResponseWriter, r *http.Request, from *source, rate float64) bool {
	wait, ok := h.rates.take(from.name, rate, h.o.Now())
	if !ok {
		w.Header().Set("Retry-After", seconds(wait))
		h.refuse(w, r, from, http.StatusTooManyRequests, "rate_limited")
	}
	return !ok
}

// hint takes a callback that proves nothing. What its body lacks is told, and
// none of it is stored (1-product C6).
func (h *Handler) hint(w http.ResponseWriter, r *http.Request, up upstream.Upstream, from *source, token pawl.ID, call upstream.Callback, bad *upstream.Rejection) {
	switch {
	case bad == nil:
		h.decide(w, r, from, ledger.ReceiveHint{Header: store.NewHeader(""), Up: up.Policy(), Token: token, Task: call.Observation.Task})
	case bad.Kind == upstream.RejectUnknownType:
		h.hinted(w, from, bad.Reason)
	default:
		h.refuse(w, r, from, http.StatusBadRequest, bad.Reason)
	}
}

// isJSON accepts what the sources known so far send; no content type counts as
// the source's own.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// decide has the event decided and answers once it is committed. The caller's
// going away does not undo it.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request, from *source, c ledger.Command) {
	out, err := h.o.Store.Do(context.WithoutCancel(r.Context()), c)
	switch {
	case err != nil:
		h.o.Log.WarnContext(r.Context(), "an event could not be stored", "source", from.name, "error", err)
		w.Header().Set("Retry-After", "5")
		h.refuse(w, r, from, http.StatusServiceUnavailable, "store_unavailable")
	case out.Err != nil:
		h.refused(w, r, from, out)
	default:
		got := out.Value.(ledger.Received)
		telemetry.Concerns(r.Context(), got.Operation, got.Submission)
		h.answer(w, from, got)
	}
}

func (h *Handler) refused(w http.ResponseWriter, r *http.Request, from *source, out ledger.Outcome) {
	status := http.StatusInternalServerError
	switch out.Err.Kind {
	case pawl.NotFound:
		status = http.StatusNotFound
	case pawl.Invalid:
		status = http.StatusBadRequest
	case pawl.Unavailable:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "60")
	}
	h.refuse(w, r, from, status, out.Reason)
}
