package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/upstream"
)

// The bounds of what bodies take of the memory before anybody knows who sent
// them (field case O-044): all but small ones wait for one of a few turns (see
// turns), and whoever has one must use it: largeTime is for the whole of the body.
const (
	smallBody = 64 << 10
	largeWait = 10 * time.Second
	largeTime = 10 * time.Second
)

var (
	// errFull: the disk is too full for anything new.
	errFull = errors.New("intake: the disk is nearly full")
	// errType: the source does not send that content type.
	errType = errors.New("intake: another content type than the source's")
	// errEncoding: the body is compressed, or encoded in another way.
	errEncoding = errors.New("intake: a content encoding")
	// errTooLarge: the body is over MaxBody.
	errTooLarge = errors.New("intake: the body is too large")
	// errSlow: the body has not come whole within largeTime.
	errSlow = errors.New("intake: the body comes too slowly")
	// errBusy: too many large bodies are read at the moment.
	errBusy = errors.New("intake: too many large bodies at once")
)

// bodies reads the bodies of requests. Safe for concurrent use.
type bodies struct {
	turns *turns
	// used are the buffers of earlier large bodies.
	used sync.Pool
}

func newBodies() *bodies { return &bodies{turns: newTurns()} }

// read takes the whole body, and never more than MaxBody of it, in a turn of the
// source and kind of address that it came to. The caller calls
// done when it needs the body no longer: its bytes are another's after that.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, at address) (body []byte, done func(), err error) {
	done = func() {}
	if r.ContentLength > MaxBody {
		return nil, done, errTooLarge
	}
	from := http.MaxBytesReader(w, r.Body, MaxBody)
	head, err := io.ReadAll(io.LimitReader(from, smallBody+1))
	if err != nil || len(head) <= smallBody {
		return head, done, err
	}
	give, err := b.turns.take(r.Context(), at)
	if err != nil {
		return nil, done, err
	}
	// Where deadlines are not known the server's own bounds must do.
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(largeTime))
	whole, ok := b.used.Get().(*bytes.Buffer)
	if !ok {
		whole = new(bytes.Buffer)
	}
	done = func() { b.used.Put(whole); give() }
	whole.Reset()
	whole.Grow(MaxBody + bytes.MinRead)
	whole.Write(head)
	_, err = whole.ReadFrom(from)
	switch {
	case err == nil:
		// What is read now is whether the sender is still there.
		_ = connection.SetReadDeadline(time.Time{})
	case errors.As(err, new(*http.MaxBytesError)):
		err = errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
	}
	return whole.Bytes(), done, err
}

// body reads what a source sent, of a content type that it may send, while there
// is room for it. The caller calls done when it needs the body no longer.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, from *source, takes func(contentType string) bool) (body []byte, done func(), err error) {
	if h.o.Full != nil && h.o.Full() {
		return nil, func() {}, errFull
	}
	// Of two content types one would be taken now, and another when the stored event
	// is read again.
	if len(r.Header.Values("Content-Type")) > 1 || !takes(r.Header.Get("Content-Type")) {
		return nil, func() {}, errType
	}
	if !plainly(r.Header.Values("Content-Encoding")) {
		return nil, func() {}, errEncoding
	}
	if body, done, err = h.bodies.read(w, r, address{from.name, r.PathValue("token") != ""}); err == nil {
		from.read(body)
	}
	return body, done, err
}

// identity is the content encoding of a body that has none.
const identity = "identity"

// plainly reports whether the header says that a body comes as it is: senders
// differ on whether they sign it before or after it is encoded, and what is
// stored must be what was signed (field case O-027).
func plainly(encodings []string) bool {
	for _, line := range encodings {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one != "" && !strings.EqualFold(one, identity) {
				return false
			}
		}
	}
	return true
}

// unread answers a request whose body is not here.
func (h *Handler) unread(w http.ResponseWriter, r *http.Request, from *source, err error) {
	switch {
	case errors.Is(err, errFull):
		w.Header().Set("Retry-After", diskRetry)
		h.refuse(w, r, from, http.StatusServiceUnavailable, "disk_full")
	case errors.Is(err, errType):
		w.Header().Set("Accept", from.accept)
		h.refuse(w, r, from, http.StatusUnsupportedMediaType, "content_type")
	case errors.Is(err, errEncoding):
		w.Header().Set("Accept-Encoding", identity) // RFC 9110 §12.5.3
		h.refuse(w, r, from, http.StatusUnsupportedMediaType, "content_encoding")
	case errors.Is(err, errTooLarge):
		h.refuse(w, r, from, http.StatusRequestEntityTooLarge, "too_large")
	case errors.Is(err, errSlow):
		w.Header().Set("Connection", "close")
		h.refuse(w, r, from, http.StatusRequestTimeout, "too_slow")
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
		h.refuse(w, r, from, http.StatusServiceUnavailable, "busy")
	default:
		h.refuse(w, r, from, http.StatusBadRequest, "unreadable")
	}
}

// readInstead makes a read of the operation due whose own address got a body that
// is too large, or encoded: it may tell of an end that was paid for, and counts as a hint does
// (1-product C6; field cases O-027, O-048). The answer is a refusal whatever comes of it: its
// sender can do nothing about it.
func (h *Handler) readInstead(r *http.Request, up upstream.Upstream, from *source, token pawl.ID) {
	if _, ok := h.rates.take(up.Name(), up.Settings().CallbackRate, h.o.Now()); !ok || token.IsZero() {
		return
	}
	hint := ledger.ReceiveHint{Header: store.NewHeader(""), Up: up.Policy(), Token: token}
	if _, err := h.o.Store.Do(context.WithoutCancel(r.Context()), hint); err != nil {
		h.o.Log.WarnContext(r.Context(), "no read was made due for a callback whose body was not taken", "source", from.name, "error", err)
	}
}
