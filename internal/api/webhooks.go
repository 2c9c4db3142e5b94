package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// deliveryHeaders are the headers of everything that is delivered. Endpoints
// with another scheme than standard-webhooks get that scheme's own signature
// and body instead.
var deliveryHeaders = []param{
	{"webhook-id", "The event's id: the same on every attempt and replay."},
	{"webhook-timestamp", "When this attempt was made, in seconds since 1970."},
	{"webhook-signature", "One signature for each secret in force, as Standard Webhooks describe."},
	{"pawl-delivery", "The delivery's id, by which a receiver reports that it is done (POST /v1/deliveries/{id}/complete)."},
	{"pawl-attempt", "1 for the first attempt."},
	{"pawl-endpoint-sequence", "The position in the endpoint's stream, as sequence in the body."},
	{"traceparent", "W3C Trace Context: one trace for each operation, one span for each attempt."},
}

// delivered describes what an endpoint is sent.
func delivered(id, summary string, body *huma.MediaType) *huma.PathItem {
	op := &huma.Operation{
		OperationID: id, Summary: summary, Tags: []string{"webhooks"}, Security: []map[string][]string{{}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": body}},
		Responses: map[string]*huma.Response{
			"2XX":     {Description: "Taken."},
			"410":     {Description: "Not delivered, and the endpoint is disabled."},
			"default": {Description: "Not delivered: tried again or given up, by the endpoint's policy."},
		},
	}
	for _, h := range deliveryHeaders {
		op.Parameters = append(op.Parameters, &huma.Param{Name: h.name, In: "header", Required: true, Description: h.doc, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	return &huma.PathItem{Post: op}
}

// eventSchema describes outbound events.
func eventSchema(doc *huma.OpenAPI) *huma.Schema {
	return doc.Components.Schemas.Schema(reflect.TypeFor[ledger.EventJSON](), true, "Event")
}

// publishedWebhook names the events of a tenant's own: their types are free.
const publishedWebhook = "published"

// receivedWebhook names the events of generic sources: their types are the
// senders'.
const receivedWebhook = "received"

// publishedEvent is an event of a tenant's own as it is sent.
type publishedEvent struct {
	ID        string          `json:"id" doc:"The tenant's own id if one was given."`
	Type      string          `json:"type" example:"order.paid"`
	Timestamp pawl.Time       `json:"timestamp"`
	Sequence  int64           `json:"sequence,omitempty"`
	Test      bool            `json:"test,omitempty" doc:"Somebody tries the endpoint: nothing has happened."`
	Data      json.RawMessage `json:"data" doc:"As it was published, but for white space."`
}

// webhooksOf describes the outbound events, one for each type, with an example.
func webhooksOf(doc *huma.OpenAPI) map[string]*huma.PathItem {
	items := make(map[string]*huma.PathItem, len(eventTypes)+len(notices)+2)
	items[publishedWebhook] = delivered(publishedWebhook, "An event of your own, of whatever type you published it with.", &huma.MediaType{
		Schema: doc.Components.Schemas.Schema(reflect.TypeFor[publishedEvent](), true, "PublishedEvent"),
		Examples: map[string]*huma.Example{"example": {Value: publishedEvent{
			ID: "order-7", Type: "order.paid", Timestamp: exampleAt, Sequence: 18, Data: json.RawMessage(`{"total":"1.10"}`),
		}}},
	})
	items[receivedWebhook] = delivered(receivedWebhook, "An event of a generic source, of whatever type its sender gave it, at an endpoint with content native. With content original the body is that which was received.", &huma.MediaType{
		Schema: doc.Components.Schemas.Schema(reflect.TypeFor[ledger.InboundJSON](), true, "ReceivedEvent"),
		Examples: map[string]*huma.Example{"example": {Value: ledger.InboundJSON{
			ID: "evt_01h455vb4pex5vsknk084sn02q", Type: "invoice.paid", Source: "payments", Timestamp: exampleAt, Sequence: 19, Data: json.RawMessage(`{"id":"evt_1","type":"invoice.paid"}`),
		}}},
	})
	for _, t := range eventTypes {
		items[t.name] = delivered(t.name, t.meaning, &huma.MediaType{
			Schema: &huma.Schema{AllOf: []*huma.Schema{
				eventSchema(doc), {Properties: map[string]*huma.Schema{"type": {Type: huma.TypeString, Enum: []any{t.name}}}},
			}},
			Examples: map[string]*huma.Example{"example": {Value: t.shape().Example}},
		})
	}
	for _, n := range notices {
		items[n.name] = delivered(n.name, n.meaning+" To endpoints of the installation alone.", &huma.MediaType{
			Schema: &huma.Schema{AllOf: []*huma.Schema{
				doc.Components.Schemas.Schema(reflect.TypeFor[ledger.NoticeEvent](), true, "NoticeEvent"),
				{Properties: map[string]*huma.Schema{"type": {Type: huma.TypeString, Enum: []any{n.name}}}},
			}},
			Examples: map[string]*huma.Example{"example": {Value: n.shape().Example}},
		})
	}
	return items
}

// callbacksOf describes what the callback_url of an operation is sent.
func callbacksOf(doc *huma.OpenAPI) map[string]map[string]*huma.PathItem {
	item := delivered("operationEvent", "The operation's events, signed with the webhook secret of the API key that submitted it.", &huma.MediaType{Schema: eventSchema(doc)})
	return map[string]map[string]*huma.PathItem{"operationEvent": {"{$request.body#/callback_url}": item}}
}
