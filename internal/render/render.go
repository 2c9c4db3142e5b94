// Package render writes the body of a delivery: for those that are sent, and for
// the feed of an endpoint, whose reader may hand them on (pawl listen). It has no
// state and does no I/O.
package render

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
)

// emptyDigest is that of an empty body, of which no payload is stored.
var emptyDigest = ledger.Digest(sha256.Sum256(nil))

// Unsendable says why a delivery cannot be made into a request. Its text is
// one of ours and holds nothing of the event.
type Unsendable string

// Error is the reason.
func (u Unsendable) Error() string { return string(u) }

// Delivery is what a body is made of. It prints nothing of that but the
// delivery's id.
type Delivery struct {
	Row   ledger.Delivery
	Event ledger.Event
	// Endpoint is whose content and scheme decide the form.
	Endpoint ledger.Endpoint
	// Metadata and Result belong to the event's operation, Data to an event of
	// none; Received is the body of an event of a generic source, Sent that of an
	// earlier attempt where it was kept. [Delivery.Fill] sets them.
	Metadata, Result, Data, Received, Sent string
	// Current is the record that an event is about, as it was read before handing it
	// over; nil if it was not.
	Current *ledger.CurrentJSON
}

// String is the delivery's id: the rest holds payloads.
func (d Delivery) String() string { return d.Row.ID.Text(pawl.PrefixDelivery) }

// GoString is [Delivery.String].
func (d Delivery) GoString() string { return d.String() }

// Payloads are those that the body is made of: what was sent before, else what
// it is rendered from.
func (d Delivery) Payloads() []ledger.PayloadID {
	switch {
	case d.Row.BodyKept:
		return []ledger.PayloadID{d.sent()}
	case d.Event.ID.IsZero():
		return nil
	case d.Row.Inbound:
		return []ledger.PayloadID{d.received()}
	case d.Event.Operation.IsZero():
		return []ledger.PayloadID{d.data()}
	}
	ids := []ledger.PayloadID{d.metadata()}
	if !d.Event.Result.IsZero() {
		ids = append(ids, d.result())
	}
	return ids
}

// Fill takes the delivery's own from what was read of [Delivery.Payloads].
func (d *Delivery) Fill(texts map[ledger.PayloadID]string) {
	d.Metadata, d.Result, d.Sent = texts[d.metadata()], texts[d.result()], texts[d.sent()]
	d.Data, d.Received = texts[d.data()], texts[d.received()]
}

func (d Delivery) metadata() ledger.PayloadID {
	return ledger.PayloadID{Owner: d.Event.Operation, Kind: ledger.MetadataPayload}
}

func (d Delivery) result() ledger.PayloadID {
	return ledger.PayloadID{Owner: d.Event.Result, Kind: ledger.ResultPayload}
}

func (d Delivery) data() ledger.PayloadID {
	return ledger.PayloadID{Owner: d.Event.ID, Kind: ledger.DataPayload}
}

func (d Delivery) received() ledger.PayloadID {
	return ledger.PayloadID{Owner: d.Event.ID, Kind: ledger.BodyPayload}
}

func (d Delivery) sent() ledger.PayloadID {
	return ledger.PayloadID{Owner: d.Row.ID, Kind: ledger.SentPayload}
}

// Original reports whether the endpoint gets the event as the bytes received.
func (d Delivery) Original() bool {
	return d.Row.Inbound && d.Endpoint.Content == ledger.OriginalContent
}

// Body is what is sent under a scheme: the bytes of the first attempt where they
// are kept, else the same bytes made again from what never changes. The error is
// an [Unsendable].
func (d Delivery) Body(scheme string) ([]byte, error) {
	if d.Row.BodyKept && d.Sent != "" {
		return []byte(d.Sent), nil
	}
	if d.Event.ID.IsZero() {
		return nil, Unsendable("the event is no longer stored")
	}
	if d.Event.RemovedAt.IsSet() || !d.Event.Result.IsZero() && d.Result == "" {
		return nil, Unsendable("what the event held is no longer kept")
	}
	if d.Row.Inbound {
		return d.inboundBody()
	}
	if d.Event.Operation.IsZero() {
		return d.ownBody(scheme)
	}
	if !optionalJSON(d.Metadata) || !optionalJSON(d.Result) {
		return nil, Unsendable("a stored payload of the event is damaged")
	}
	body, _, err := d.Event.Fitting(d.Result, func(result string) ([]byte, error) { return d.operationBody(scheme, result) })
	switch {
	case err != nil:
		return nil, Unsendable("the stored event is damaged")
	case len(body) > ledger.MaxOutbound:
		return nil, tooLarge(len(body))
	}
	return body, nil
}

// inboundBody is the body of an event of a generic source. What is no JSON is
// wrapped as the text of its Base64. An event that is too large goes by link; the
// bytes received were bounded when they came.
func (d Delivery) inboundBody() ([]byte, error) {
	if d.Received == "" && d.Event.Digest != emptyDigest {
		return nil, Unsendable("the event's body is no longer stored")
	}
	if d.Original() {
		return []byte(d.Received), nil
	}
	e := d.Event.Handed(d.Row.Sequence, d.Received, sender.Sender{}.Forwarded(d.Event).Get("Content-Type"), d.Current)
	body := e.Text()
	if len(body) > ledger.MaxOutbound {
		e.Data, e.ContentType = json.RawMessage(d.Event.Link()), ""
		body = e.Text()
	}
	if len(body) > ledger.MaxOutbound {
		return nil, tooLarge(len(body))
	}
	return body, nil
}

// ownBody is that of an event which is about no operation: the dialects have no
// word for it.
func (d Delivery) ownBody(scheme string) ([]byte, error) {
	switch {
	case dialect.Spoken(scheme):
		return nil, Unsendable("the endpoint's dialect has no word for this event")
	case d.Data == "" || !optionalJSON(d.Data):
		return nil, Unsendable("a stored payload of the event is damaged")
	}
	body := ledger.RenderOwn(d.Event, d.Row.Sequence, d.Data)
	if len(body) > ledger.MaxOutbound {
		return nil, tooLarge(len(body))
	}
	return body, nil
}

func (d Delivery) operationBody(scheme, result string) ([]byte, error) {
	if dialect.Spoken(scheme) {
		return dialect.Render(scheme, d.Event, d.Metadata, result)
	}
	return ledger.Render(d.Event, d.Row.Sequence, d.Metadata, result)
}

func tooLarge(size int) error {
	return Unsendable(fmt.Sprintf("the event has %d bytes or more, %d are the most: read the operation instead", size, ledger.MaxOutbound))
}

func optionalJSON(text string) bool { return text == "" || json.Valid([]byte(text)) }
