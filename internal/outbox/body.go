package outbox

import (
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/ledger"
)

// unsendable says why a delivery cannot be made into a request. Its text is
// one of ours and holds nothing of the event.
type unsendable string

// Error is the reason.
func (u unsendable) Error() string { return string(u) }

// body is what is sent: the bytes of the first attempt where they are kept,
// else the same bytes made again from what never changes.
func (j Job) body(scheme string) ([]byte, error) {
	if j.delivery.BodyKept && j.sent != "" {
		return []byte(j.sent), nil
	}
	if j.event.ID.IsZero() {
		return nil, unsendable("the event is no longer stored")
	}
	if j.delivery.Inbound {
		return j.inboundBody()
	}
	if j.event.Operation.IsZero() {
		return j.ownBody(scheme)
	}
	if !optionalJSON(j.metadata) || !optionalJSON(j.result) {
		return nil, unsendable("a stored payload of the event is damaged")
	}
	body, _, err := j.event.Fitting(j.result, func(result string) ([]byte, error) { return j.render(scheme, result) })
	switch {
	case err != nil:
		return nil, unsendable("the stored event is damaged")
	case len(body) > ledger.MaxOutbound:
		return nil, tooLarge(len(body))
	}
	return body, nil
}

// ownBody is that of an event which is about no operation: the dialects have no
// word for it.
func (j Job) ownBody(scheme string) ([]byte, error) {
	switch {
	case dialect.Spoken(scheme):
		return nil, unsendable("the endpoint's dialect has no word for this event")
	case j.data == "" || !optionalJSON(j.data):
		return nil, unsendable("a stored payload of the event is damaged")
	}
	body := ledger.RenderOwn(j.event, j.delivery.Sequence, j.data)
	if len(body) > ledger.MaxOutbound {
		return nil, tooLarge(len(body))
	}
	return body, nil
}

func (j Job) render(scheme, result string) ([]byte, error) {
	if dialect.Spoken(scheme) {
		return dialect.Render(scheme, j.event, j.metadata, result)
	}
	return ledger.Render(j.event, j.delivery.Sequence, j.metadata, result)
}

func tooLarge(size int) error {
	return unsendable(fmt.Sprintf("the event has %d bytes or more, %d are the most: read the operation instead", size, ledger.MaxOutbound))
}

func optionalJSON(text string) bool { return text == "" || json.Valid([]byte(text)) }
