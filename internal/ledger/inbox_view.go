package ledger

import (
	"encoding/json"

	"github.com/pawlhq/pawl"
)

// InboundJSON is the native form of an event of a generic source as its handlers
// get it (7-rules R20).
type InboundJSON struct {
	ID        string          `json:"id" doc:"Pawl's id of the event, as in webhook-id."`
	Type      string          `json:"type" example:"invoice.paid" doc:"The sender's word; event where it names none. Behind the source's name and a full stop where the word is one of Pawl's own types."`
	Source    string          `json:"source" doc:"The source's name in the configuration."`
	Timestamp pawl.Time       `json:"timestamp" doc:"When it was received."`
	Sequence  int64           `json:"sequence,omitempty"`
	Data      json.RawMessage `json:"data" doc:"The body, as it was received but for white space; a link to the event where it is too large."`
	// ContentType is that of a body which is no JSON.
	ContentType string `json:"content_type,omitempty" doc:"Of a body that is no JSON: data is its Base64."`
	// Current is the record as it was read just before.
	Current *CurrentJSON `json:"current,omitempty" doc:"The record that the event is about, as it was read before the first attempt, where the source asks for that."`
}

// CurrentJSON is the answer to a read of the record that an event is about.
type CurrentJSON struct {
	Status int             `json:"status" doc:"200, or 404 or 410 for a record that is gone."`
	Data   json.RawMessage `json:"data" doc:"The record; null if it is gone."`
}

// HandedType is the type that handlers are told. A sender's word that is one of
// Pawl's own types stands behind the source's name: nobody but Pawl tells what
// became of an operation, and a handler that looks at the type alone must not be
// misled.
func (e Event) HandedType() string {
	if e.Direction == Inbound && pawl.ReservedType(e.Type) {
		return e.Source + "." + e.Type
	}
	return e.Type
}

// Handed is an event of a generic source for one delivery: the same event,
// sequence and body always give the same. JSON is wrapped as it is; of all else the
// content type says what it is.
func (e Event) Handed(sequence int64, body, contentType string, current *CurrentJSON) InboundJSON {
	out := InboundJSON{
		ID: e.PublicID(), Type: e.HandedType(), Source: e.Source, Timestamp: e.At, Sequence: sequence, Data: json.RawMessage(body), Current: current,
	}
	if !json.Valid(out.Data) {
		out.ContentType, out.Data = contentType, json.RawMessage(encode([]byte(body)))
	}
	return out
}

// Text is the body of a delivery.
func (e InboundJSON) Text() []byte { return []byte(encode(e)) }
