package api

import (
	"cmp"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/render"
	"github.com/pawlhq/pawl/internal/sender"
)

// renderedEvent is an event as it is sent to an endpoint, but for the signature.
type renderedEvent struct {
	Headers map[string]string `json:"headers" doc:"What the body is said to be: Content-Type, and with original content what the source allows of its sender's."`
	Body    []byte            `json:"body" doc:"The body in base64."`
}

// feed shows one endpoint's deliveries.
type feed struct {
	*call
	endpoint ledger.Endpoint
	// rendered asks for the events as they are sent.
	rendered bool
}

// show shows events as they are delivered, and how large that is. Raw bodies are
// for keys that may read payloads, which is audited (7-rules R53); other keys are
// told that something is left out.
func (f feed) show(rows []ledger.Delivery) (items []storedEvent, bytes int, err error) {
	var keys ledger.Keys
	for _, d := range rows {
		keys.Events = append(keys.Events, d.Event)
	}
	found, err := f.load(f.ctx, keys)
	if err != nil {
		return nil, 0, err
	}
	deliveries := make([]render.Delivery, len(rows))
	var wanted []ledger.PayloadID
	read := false
	for i, row := range rows {
		e, _ := found.Events.Get(row.Event)
		deliveries[i] = render.Delivery{Row: row, Event: e, Endpoint: f.endpoint}
		if f.withheld(row) {
			continue
		}
		read = read || row.Inbound
		deliveries[i].Row.BodyKept = row.BodyKept && f.rendered // Else it is shown as the event has it.
		wanted = append(wanted, deliveries[i].Payloads()...)
	}
	if read {
		if err := f.accessed(rows[0].Tenant, "event.body", f.endpoint.ID.Text(pawl.PrefixEndpoint)); err != nil {
			return nil, 0, err
		}
	}
	payloads, err := f.opts.Reader.Payloads(f.ctx, wanted...)
	if err != nil {
		return nil, 0, err
	}
	for _, d := range deliveries {
		d.Fill(payloads)
		shown, size := f.item(d)
		items, bytes = append(items, shown), bytes+size
	}
	return items, bytes, nil
}

// withheld reports whether a key may not see what is delivered.
func (f feed) withheld(row ledger.Delivery) bool { return row.Inbound && !f.may(ledger.ScopePayloads) }

func (f feed) item(d render.Delivery) (storedEvent, int) {
	e := d.Event
	e.ID = d.Row.Event // Also where it is no longer stored.
	shown := eventShape(e)
	shown.Sequence, shown.DeliveryID = d.Row.Sequence, d.Row.ID.Text(pawl.PrefixDelivery)
	switch {
	case f.withheld(d.Row):
		shown.Withheld = true
		return shown, 0
	case f.rendered:
		return f.render(shown, d)
	case d.Row.Inbound:
		return inboundItem(shown, d), 2 * len(d.Received)
	case e.Operation.IsZero():
		shown.Data = ledger.Raw(d.Data)
		return shown, len(d.Data)
	}
	return operationItem(shown, d)
}

// render adds the event as it is sent, or why it cannot be.
func (f feed) render(shown storedEvent, d render.Delivery) (storedEvent, int) {
	body, err := d.Body(cmp.Or(f.endpoint.Scheme, defaultScheme))
	if err != nil {
		shown.Unsendable = err.Error()
		return shown, 0
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if d.Original() {
		header = f.live.sources[d.Event.Source].Forwarded(d.Event)
	}
	shown.Rendered = &renderedEvent{Headers: map[string]string{}, Body: body}
	for name := range header {
		shown.Rendered.Headers[name] = header.Get(name)
	}
	return shown, len(body)
}

// inboundItem adds the data that handlers get in the native form, and the bytes
// that were received.
func inboundItem(shown storedEvent, d render.Delivery) storedEvent {
	if d.Received == "" {
		return shown
	}
	native := d.Event.Handed(d.Row.Sequence, d.Received, sender.Sender{}.Forwarded(d.Event).Get("Content-Type"), nil)
	shown.Data, shown.ContentType, shown.Body = native.Data, native.ContentType, []byte(d.Received)
	shown.Type = native.Type
	return shown
}

// operationItem adds the operation as of the event: a result that would be too
// large to be sent goes by link here too (2-contracts §1, limits).
func operationItem(shown storedEvent, d render.Delivery) (storedEvent, int) {
	body, result, err := d.Event.Fitting(d.Result, func(result string) ([]byte, error) {
		return ledger.Render(d.Event, d.Row.Sequence, d.Metadata, result)
	})
	if err != nil {
		return shown, 0
	}
	if data, err := d.Event.Data(d.Metadata, result); err == nil {
		shown.Data = data
	}
	return shown, len(body)
}
