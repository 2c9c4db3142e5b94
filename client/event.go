package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

const events = "/v1/events"

// Event is one thing that an endpoint is told, as it is delivered and as its
// feed has it.
type Event struct {
	// ID is the same on every repeat: remember it to recognise one.
	ID   string `json:"id"`
	Type string `json:"type"`
	// Source is the generic source whose sender names Type and Data; empty for
	// what Pawl itself or the tenant tells.
	Source string `json:"source"`
	// Timestamp is when it happened.
	Timestamp pawl.Time `json:"timestamp"`
	// Sequence is its position in the endpoint's stream, from 1 and without gaps.
	Sequence int64 `json:"sequence"`
	// Test says that nothing has happened: somebody tries the endpoint.
	Test bool `json:"test"`
	// Data is the operation as of then, for the types of Pawl's own that begin
	// with "operation.", else what was published or what came from the source.
	Data json.RawMessage `json:"data"`
	// ContentType is that of a body from a source that is no JSON: Data is then a
	// string, its Base64.
	ContentType string `json:"content_type"`
	// Withheld says, of an event in a feed, that what came from the source is for
	// keys with the scope payloads, which the client's has not: Data is missing, and
	// the event must not be counted as done. Nothing that is delivered has it.
	Withheld bool `json:"-"`
}

// ParseEvent reads the body of a webhook. Verify its signature first, over the
// same bytes (package webhook): an event that was not verified is anybody's.
func ParseEvent(body []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" || e.Type == "" {
		return Event{}, errors.New("client: the body is not an event of Pawl's")
	}
	return e, nil
}

// Operation is the operation that the event is about, as of then; false for an
// event that is about none, as all that come from a source are.
func (e Event) Operation() (Operation, bool) {
	var op Operation
	if e.Source != "" || !strings.HasPrefix(e.Type, "operation.") || json.Unmarshal(e.Data, &op) != nil {
		return Operation{}, false
	}
	return op, true
}

// StoredEvent is one stored event of either direction.
type StoredEvent struct {
	ID string `json:"id"`
	// Direction is inbound or outbound.
	Direction string    `json:"direction"`
	Type      string    `json:"type"`
	At        pawl.Time `json:"at"`
	// OperationID and Version are those of an event about an operation.
	OperationID string `json:"operation_id"`
	Version     int64  `json:"version"`
	Source      string `json:"source"`
	TaskID      string `json:"task_id"`
	// ExternalID is the id that its sender, or the tenant that published it, gave
	// it.
	ExternalID string `json:"external_id"`
	// UpstreamState is the sender's word; Verdict is what became of an inbound
	// event, for Reason.
	UpstreamState string `json:"upstream_state"`
	Verdict       string `json:"verdict"`
	Reason        string `json:"reason"`
	Sequence      int64  `json:"sequence"`
	Test          bool   `json:"test"`
	ReviewID      string `json:"review_id"`
	// State is how far an event of a generic source has come: received, waiting,
	// done or review. It is empty for all others.
	State string `json:"state"`
	// Data is in the answer to [Client.Event] and in feeds, Body and Headers in the
	// former, for keys with the scope payloads.
	Data    json.RawMessage   `json:"data"`
	Body    []byte            `json:"body"`
	Headers map[string]string `json:"headers"`
	// The others are in feeds. DeliveryID is that of its delivery; for ContentType
	// and Withheld see [Event]. Rendered is the event as it is sent, where it was
	// asked for, and Unsendable why it cannot be.
	DeliveryID  string         `json:"delivery_id"`
	ContentType string         `json:"content_type"`
	Withheld    bool           `json:"body_withheld"`
	Rendered    *RenderedEvent `json:"rendered"`
	Unsendable  string         `json:"unsendable"`
}

// RenderedEvent is an event as it is sent to an endpoint, but for the signature.
type RenderedEvent struct {
	// Headers say what the body is.
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

// Delivered is the event as its receivers know it: what its sender calls an
// inbound event is not unique among sources.
func (e StoredEvent) Delivered() Event {
	id := e.ID
	if e.ExternalID != "" && e.Direction != "inbound" {
		id = e.ExternalID
	}
	out := Event{ID: id, Type: e.Type, Timestamp: e.At, Sequence: e.Sequence, Test: e.Test, Data: e.Data, ContentType: e.ContentType, Withheld: e.Withheld}
	if e.Direction == "inbound" {
		out.Source = e.Source
	}
	return out
}

// EventFilter narrows a list of events; what is empty does not.
type EventFilter struct {
	// Direction is inbound or outbound.
	Direction string
	Source    string
	Verdict   pawl.Verdict
	TaskID    string
	Type      string
	Operation string
	// State is that of events of generic sources.
	State string
	// From and Until bound when it was received or made.
	From, Until time.Time
}

// Events lists events of both directions, newest first.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[StoredEvent, error] {
	q := params("direction", f.Direction, "source", f.Source, "verdict", f.Verdict.String(), "task_id", f.TaskID, "type", f.Type, "operation", f.Operation, "state", f.State)
	for name, t := range map[string]time.Time{"from": f.From, "until": f.Until} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return list[StoredEvent](ctx, c, events, q)
}

// Event reads one event; with its raw bytes for a key with the scope payloads,
// which is audited.
func (c *Client) Event(ctx context.Context, id string) (StoredEvent, error) {
	return made[StoredEvent](ctx, c, get(events+"/"+segment(id), nil))
}

// Publish gives an event of the tenant's own to its endpoints that ask for the
// type. The same id again is the same event; without an id the call has a key, so
// that its repeats are. Data is any value that can be written as JSON.
func (c *Client) Publish(ctx context.Context, id, kind string, data any) (StoredEvent, error) {
	return made[StoredEvent](ctx, c, keyed(events, "", struct {
		ID   string `json:"id,omitempty"`
		Type string `json:"type"`
		Data any    `json:"data"`
	}{id, kind, data}))
}

// EventType is one type of events that Pawl tells of.
type EventType struct {
	Type    string `json:"type"`
	Meaning string `json:"meaning"`
	Example Event  `json:"example"`
}

// EventTypes are all types of Pawl's own, with examples.
func (c *Client) EventTypes(ctx context.Context) ([]EventType, error) {
	return whole[EventType](ctx, c, "/v1/event-types")
}
