package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// generic is a generic source, whose events go to the handlers of its tenant.
var generic = ledger.Upstream{Name: "gen", Tenant: "t", Owner: "ops", Generic: true}

// inbox is what generic sources send, and what their handlers report.
func inbox() []Generator {
	receive := Generator{Name: "ReceiveEvent", Make: receiveGeneric, Repeat: []string{"event keys", "events", "payloads", "sources", "unknown types", "deliveries", "queues", "reviews"}}
	return []Generator{
		receive, receive,
		{Name: "ReprocessEvent", Repeat: []string{"events", "audits"}, Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.Events(context.Background(), store.EventFilter{Source: generic.Name}, wide)
			e, ok := pickRow(t, "stored generic", all, err)
			if !ok {
				return nil
			}
			c := receiveGeneric(t, l).(ledger.ReceiveEvent)
			c.Event, c.Body, c.Headers, c.Digest = e.ExternalID, "", "", ledger.Digest{}
			return ledger.ReprocessEvent{ReceiveEvent: c, Tenant: pick(t, "tenant", "", "t", "u"), ID: e.ID}
		}},
		{Name: "CompleteDelivery", Make: onDelivery(func(t *rapid.T, l Live, row ledger.Delivery) ledger.Command {
			c := ledger.CompleteDelivery{Header: l.Header, Tenant: pick(t, "tenant", "", row.Tenant), Delivery: row.ID, Review: row.Review}
			if row.Inbound {
				c.Event = row.Event
			}
			return c
		})},
	}
}

func receiveGeneric(t *rapid.T, l Live) ledger.Command {
	c := ledger.ReceiveEvent{
		Header: l.Header, Up: generic, Event: pick(t, "event", "g0", "g1", "g2"), Type: pick(t, "type", "paid", "paid", "sent"),
		Obs: ledger.Observation{Progress: -1}, Body: "{}", Headers: "{}", Digest: ledger.Digest{pick[byte](t, "body", 1, 1, 2)},
		Preset: pick(t, "preset", 0, 0, 0, 0, 0, 0, pawl.UnknownType, pawl.Rejected), Traceparent: drawTraceparent(t),
	}
	if c.Preset != 0 {
		c.Reason = c.Preset.String()
	}
	return c
}

// completeWithin is how long an endpoint's receiver has for its report.
func completeWithin(t *rapid.T) time.Duration {
	return pick(t, "complete within", 0, time.Minute, time.Hour)
}
