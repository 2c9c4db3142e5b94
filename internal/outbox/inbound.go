package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
)

// maxCurrent bounds the record that is read before an event is handed over, in
// bytes: it must fit into the event beside its body.
const maxCurrent = 128 << 10

// emptyDigest is that of an empty body, of which no payload is stored.
var emptyDigest = ledger.Digest(sha256.Sum256(nil))

// original reports whether the endpoint gets the event as the bytes received.
func (j Job) original() bool {
	return j.delivery.Inbound && j.endpoint.Content == ledger.OriginalContent
}

// inboundBody is the body of an event of a generic source. What is no JSON is
// wrapped as the text of its Base64. An event that is too large goes by link; the
// bytes received were bounded when they came.
func (j Job) inboundBody() ([]byte, error) {
	if j.received == "" && j.event.Digest != emptyDigest {
		return nil, unsendable("the event's body is no longer stored")
	}
	if j.original() {
		return []byte(j.received), nil
	}
	e := j.event.Handed(j.delivery.Sequence, j.received, sender.Sender{}.Forwarded(j.event).Get("Content-Type"), j.current)
	body := e.Text()
	if len(body) > ledger.MaxOutbound {
		e.Data, e.ContentType = json.RawMessage(j.event.Link()), ""
		body = e.Text()
	}
	if len(body) > ledger.MaxOutbound {
		return nil, tooLarge(len(body))
	}
	return body, nil
}

// forward gives a request the content type and those headers of the sender that
// its source allows. Of a source that is no longer configured it is the content
// type alone.
func (o *Outbox) forward(j Job, header http.Header) {
	forwarded := o.o.Senders.Now()[j.event.Source].Forwarded(j.event)
	header.Del("Content-Type")
	for name, values := range forwarded {
		header[name] = values
	}
}

// unread says why the current record is not there; the attempt has failed.
type unread string

// Error is the reason, without anything of the answer.
func (u unread) Error() string { return "the current record could not be read: " + string(u) }

// readCurrent reads the record that an event is about, where its source asks for
// that (1-product C9), unless the body of an earlier attempt holds it already. A
// record that is gone is an answer too.
func (o *Outbox) readCurrent(ctx context.Context, j *Job) error {
	s, ok := o.o.Senders.Now()[j.event.Source]
	timeout, reads := s.Reads()
	if !j.delivery.Inbound || !ok || !reads || j.delivery.BodyKept || j.original() {
		return nil
	}
	request, err := s.Current(j.event, []byte(j.received))
	if err != nil {
		return unsendable(err.Error())
	}
	answer, err := o.o.Client.Do(ctx, request, egress.Limits{Timeout: timeout, MaxResponse: maxCurrent})
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		// The guard forbids the record's address, not the endpoint's.
		return unsendable("the address of the current record is forbidden by the egress rules")
	case err != nil:
		return unread("no answer")
	case answer.Truncated || answer.Cut != nil:
		return unread("the answer is cut off or has more than 128 KiB")
	case answer.Status == http.StatusNotFound || answer.Status == http.StatusGone:
		j.current = &ledger.CurrentJSON{Status: answer.Status, Data: json.RawMessage("null")}
		return nil
	case answer.Status < 200 || answer.Status > 299:
		return unread("it was answered " + http.StatusText(answer.Status))
	case !json.Valid(answer.Body):
		return unread("the answer is no JSON")
	}
	j.current = &ledger.CurrentJSON{Status: answer.Status, Data: answer.Body}
	return nil
}
