// Package intake is the edge that inbound events come to: it bounds, verifies
// and turns each into one command, and answers only after the commit
// (1-product C1, C2).
package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// MaxBody is the largest inbound body, in bytes (2-contracts §1).
const MaxBody = 4 << 20

// Options are what a [Handler] works with.
type Options struct {
	Store     *store.Committer
	Upstreams upstream.Set
	Callbacks upstream.Callbacks
	Metrics   *telemetry.Metrics
	Log       *slog.Logger
}

// Handler answers POST /hooks/{source} and /hooks/{source}/{token}. It is safe
// for concurrent use.
type Handler struct {
	o    Options
	mux  *http.ServeMux
	seen *sampler
}

// New makes the handler.
func New(o Options) *Handler {
	h := &Handler{o: o, mux: http.NewServeMux(), seen: newSampler(time.Second)}
	h.mux.HandleFunc("POST /hooks/{source}", h.receive)
	h.mux.HandleFunc("POST /hooks/{source}/{token}", h.receive)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The mux would redirect, and repeat the token in the answer.
	if called := r.URL.EscapedPath(); path.Clean(called) != called {
		h.refuse(w, r, telemetry.UnknownName, http.StatusNotFound, "unknown_source")
		return
	}
	h.mux.ServeHTTP(w, r)
}

// receive runs lines 1 to 4 of 7-rules §1 and hands what is verified to the
// ledger, which runs the rest.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request) {
	up, ok := h.o.Upstreams[r.PathValue("source")]
	if !ok {
		h.refuse(w, r, telemetry.UnknownName, http.StatusNotFound, "unknown_source")
		return
	}
	var token pawl.ID
	if text := r.PathValue("token"); text != "" {
		if token, ok = h.o.Callbacks.Operation(up.Name(), text); !ok {
			h.refuse(w, r, up.Name(), http.StatusNotFound, "unknown_token")
			return
		}
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		w.Header().Set("Accept", "application/json")
		h.refuse(w, r, up.Name(), http.StatusUnsupportedMediaType, "content_type")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		h.refuse(w, r, up.Name(), http.StatusRequestEntityTooLarge, "too_large")
		return
	}
	if err != nil {
		h.refuse(w, r, up.Name(), http.StatusBadRequest, "unreadable")
		return
	}
	call, rejection := up.ParseCallback(r.Header, body, time.Now())
	if rejection != nil && !rejection.Kind.Verified() {
		h.refuse(w, r, up.Name(), http.StatusUnauthorized, rejection.Reason)
		return
	}
	h.decide(w, r, up, command(up, token, call, rejection, r.Header, body))
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

func command(up upstream.Upstream, token pawl.ID, call upstream.Callback, bad *upstream.Rejection, header http.Header, body []byte) ledger.ReceiveEvent {
	c := ledger.ReceiveEvent{
		Header: store.NewHeader(""), Up: up.Policy(), Token: token, Event: call.EventID, Type: call.Type, Obs: call.Observation,
		Body: string(body), Headers: keptHeaders(header), Digest: sha256.Sum256(body),
	}
	if bad == nil {
		return c
	}
	c.Event, c.Type, c.Reason = bad.EventID, bad.Type, bad.Reason
	c.Obs = ledger.Observation{Task: bad.Task, Word: bad.Word, Progress: -1}
	switch bad.Kind {
	case upstream.RejectUnknownState:
		c.Preset = pawl.UnknownState
	case upstream.RejectUnknownType:
		c.Preset = pawl.UnknownType
	default:
		c.Preset = pawl.Rejected
	}
	return c
}

// decide has the event decided and answers once it is committed. The caller's
// going away does not undo it.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request, up upstream.Upstream, c ledger.ReceiveEvent) {
	out, err := h.o.Store.Do(context.WithoutCancel(r.Context()), c)
	switch {
	case err != nil:
		h.o.Log.Warn("an event could not be stored", "source", up.Name(), "error", err)
		w.Header().Set("Retry-After", "5")
		h.refuse(w, r, up.Name(), http.StatusServiceUnavailable, "store_unavailable")
	case out.Err != nil:
		h.refused(w, r, up, out)
	default:
		h.answer(w, up.Name(), out.Value.(ledger.Received))
	}
}

func (h *Handler) refused(w http.ResponseWriter, r *http.Request, up upstream.Upstream, out ledger.Outcome) {
	switch out.Err.Kind {
	case pawl.NotFound:
		h.refuse(w, r, up.Name(), http.StatusNotFound, out.Reason)
	case pawl.Unavailable:
		w.Header().Set("Retry-After", "60")
		h.refuse(w, r, up.Name(), http.StatusServiceUnavailable, out.Reason)
	default:
		h.refuse(w, r, up.Name(), http.StatusInternalServerError, out.Reason)
	}
}
