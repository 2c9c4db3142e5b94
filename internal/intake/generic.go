package intake

import (
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/webhook"
)

// receiveGeneric is receive for a generic source, which has no operations and so
// no tokens.
func (h *Handler) receiveGeneric(w http.ResponseWriter, r *http.Request, s sender.Sender) {
	from := claimed(s.Name(), s.SchemeHeaders(), r)
	if types := s.Settings().ContentTypes; len(types) > 0 {
		from.accept = strings.Join(types, ", ")
	}
	if r.PathValue("token") != "" {
		h.refuse(w, r, from, http.StatusNotFound, "unknown_token")
		return
	}
	body, done, err := h.body(w, r, from, s.Takes)
	defer done()
	if err != nil {
		h.unread(w, r, from, err)
		return
	}
	proof, reason := s.Verify(webhook.Request{Header: r.Header, Body: body, URL: h.o.Callbacks.Called(r)}, h.o.Now())
	if reason != "" {
		h.refuse(w, r, from, http.StatusUnauthorized, reason)
		return
	}
	if h.limited(w, r, from, s.Settings().CallbackRate) {
		return
	}
	if answer, ok := s.SignedHandshake(r.Header, body, proof); ok {
		h.shake(w, r, from, answer)
		return
	}
	c := s.Event(r.Header, body, proof)
	c.Header = store.NewHeader("")
	c.Body, c.Headers, c.Digest = string(body), keptHeaders(r.Header, s.SchemeHeaders(), s.KeptHeaders()...), from.digest
	c.Traceparent = telemetry.TraceContext(r.Context(), nil)
	h.decide(w, r, from, c)
}

// greet answers whoever asks whether an address is meant for it, where the source
// is configured for that (1-product C8), and otherwise as if nobody answered.
func (h *Handler) greet(w http.ResponseWriter, r *http.Request) {
	s, ok := h.o.Senders.Now()[r.PathValue("source")]
	from := nobody(r)
	var answer sender.Answer
	if ok {
		from = claimed(s.Name(), nil, r)
		switch r.Method {
		case http.MethodGet:
			answer, ok = s.Hub(r.URL.RawQuery)
		case http.MethodOptions:
			answer, ok = s.Consent(r.Header)
		default:
			ok = false
		}
	}
	if !ok {
		w.Header().Set("Allow", http.MethodPost)
		h.refuse(w, r, from, http.StatusMethodNotAllowed, "method")
		return
	}
	h.shake(w, r, from, answer)
}

// shake writes the answer to a handshake. Nothing is stored of it but a count.
func (h *Handler) shake(w http.ResponseWriter, r *http.Request, from *source, a sender.Answer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if a.Status >= http.StatusBadRequest {
		h.refuse(w, r, from, a.Status, "handshake")
		return
	}
	h.o.Arrivals.Unstored(from.name, telemetry.Handshake, from.sample(h.o.Now(), a.Status, "handshake"))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}
