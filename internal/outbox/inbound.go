package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
)

// maxCurrent bounds the record that is read before an event is handed over, in
// bytes: it must fit into the event beside its body.
const maxCurrent = 128 << 10

// content is what a body is said to be: JSON, or what the sender said, with those
// of its headers that its source allows. Of a source that is no longer configured
// it is the content type alone.
func (o *Outbox) content(j Job) http.Header {
	if j.original() {
		return o.o.Senders.Now()[j.event.Source].Forwarded(j.event)
	}
	return http.Header{"Content-Type": {"application/json"}}
}

// unread says why the current record is not there; the attempt has failed.
type unread string

// Error is the reason, without anything of the answer.
func (u unread) Error() string { return "the current record could not be read: " + string(u) }

// readCurrent reads the record that an event is about, where its source asks for
// that (1-product C9), unless the body of an earlier attempt holds it already. A
// record that is gone is an answer too.
func (o *Outbox) readCurrent(ctx context.Context, j *Job) error {
	if !j.delivery.Inbound || j.delivery.BodyKept || j.original() {
		return nil
	}
	s, ok := o.o.Senders.Now()[j.event.Source]
	timeout, reads := s.Reads()
	switch {
	// A handler that relies on the record must not miss it because of a reload.
	case !ok && j.event.Reads:
		return unread("the source is not configured any more")
	case !reads && j.event.Reads:
		return unread("the source is configured without a read now")
	case !reads:
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
	case strict.Check(answer.Body) != nil:
		// It becomes a part of what we sign: what we would not take, we do not send.
		return unread("the answer is no JSON, or has names twice or more than 64 levels")
	}
	j.current = &ledger.CurrentJSON{Status: answer.Status, Data: answer.Body}
	return nil
}
