package inbox

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// maxBody is the largest body that a handler reads, in bytes.
const maxBody = 4 << 20

// Verify tells a sender's event from a forgery. It is given the raw body and
// returns an error for whatever was not signed by the sender.
type Verify func(header http.Header, body []byte) (Event, error)

// ErrNoAddress says that a scheme signs the address that is called, and that the
// receiver was not told its own: see [SignedAt].
var ErrNoAddress = errors.New("inbox: the scheme signs the receiver's address: use SignedAt")

// Signed verifies with a scheme of package webhook and any of the keys, and
// takes the event's id from where id finds it; nil takes the id that the
// signature covers, as Standard Webhooks has it. Elsewhere the id must come
// from the verified body. Schemes that sign the address too ("rfc9421") need
// [SignedAt]: of these all is [ErrNoAddress].
func Signed(source string, scheme webhook.Scheme, id func(webhook.Verified, []byte) (string, error), keys ...webhook.Key) Verify {
	return SignedAt("", source, scheme, id, keys...)
}

// SignedAt is [Signed] for a receiver that is called at url: the public address as
// the sender was given it, with its query. What a request says of its own address
// does not do: behind a proxy it is another one.
func SignedAt(url, source string, scheme webhook.Scheme, id func(webhook.Verified, []byte) (string, error), keys ...webhook.Key) Verify {
	return func(header http.Header, body []byte) (Event, error) {
		if url == "" && scheme.SignsAddress() {
			return Event{}, ErrNoAddress
		}
		verified, err := scheme.Verify(webhook.Request{Header: header, Body: body, URL: url}, time.Now(), keys...)
		if err != nil {
			return Event{}, err
		}
		e := Event{Source: source, ID: verified.ID, Body: body}
		if id != nil {
			if e.ID, err = id(verified, body); err != nil {
				return Event{}, errors.Join(ErrInvalidEvent, err)
			}
		}
		return e, nil
	}
}

// Handler serves a webhook: it bounds and reads the body, verifies, and has
// take store or apply the event, which is [Inbox.Accept] or a function around
// [Inbox.Apply]. It answers only after the commit:
//
//	200 {"received":true}                   stored or applied
//	200 {"received":true,"duplicate":true}  known before
//	400, 401, 413                           unusable, not signed, too large
//	500                                     the receiver is not set up: ErrNoAddress
//	503 with Retry-After                    not stored: send it again
func Handler(verify Verify, take func(context.Context, Event) (Outcome, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			answer(w, http.StatusMethodNotAllowed, `{"error":"send it with POST"}`)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			status := http.StatusBadRequest
			if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
				status = http.StatusRequestEntityTooLarge
			}
			answer(w, status, `{"error":"the body cannot be read, or has more than 4 MiB"}`)
			return
		}
		e, err := verify(r.Header, body)
		if err == nil && !e.usable() {
			err = ErrInvalidEvent
		}
		if errors.Is(err, ErrInvalidEvent) {
			answer(w, http.StatusBadRequest, `{"error":"the event has no id"}`)
			return
		}
		if errors.Is(err, ErrNoAddress) {
			// Not the sender's fault: it must not give the event up.
			answer(w, http.StatusInternalServerError, `{"error":"this receiver does not know its own address"}`)
			return
		}
		if err != nil {
			answer(w, http.StatusUnauthorized, `{"error":"the signature does not verify"}`)
			return
		}
		// The sender's going away must not undo what it has handed over.
		out, err := take(context.WithoutCancel(r.Context()), e)
		switch {
		case err != nil:
			w.Header().Set("Retry-After", "5")
			answer(w, http.StatusServiceUnavailable, `{"error":"not stored; send it again"}`)
		case out.Duplicate:
			answer(w, http.StatusOK, `{"received":true,"duplicate":true}`)
		default:
			answer(w, http.StatusOK, `{"received":true}`)
		}
	})
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body+"\n")
}
