package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestFeed: the events of an endpoint without an address get their numbers with
// the event, one by one and disabled or not, and nothing is ever due for it.
func TestFeed(t *testing.T) {
	w := stage(t)
	feed := pawl.NewID(start, 60)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: feed, Tenant: tenant, URL: FeedURL, Scheme: "standard"}})
	publish := func(id string) {
		t.Helper()
		w.do(PublishEvent{Tenant: tenant, ID: id, Type: "order.paid", Data: "1", Digest: digest("1")})
	}
	publish("a")
	off := true
	w.do(ChangeEndpoint{ID: feed, Change: EndpointChange{Disabled: &off, DisabledReason: "paused"}})
	publish("b")
	got := map[int64]Delivery{}
	for _, d := range w.deliveries {
		if d.Endpoint == feed {
			got[d.Sequence] = d
		}
	}
	expect(t, "deliveries in the feed", len(got), 2)
	for n, id := range map[int64]string{1: "a", 2: "b"} {
		row := got[n]
		expect(t, "event", w.events[row.Event].ExternalID, id)
		expect(t, "state", row.State, pawl.DeliveryDelivered)
		expect(t, "due", row.DueAt, pawl.Never)
		expect(t, "finished", row.FinishedAt, row.CreatedAt)
		expect(t, "attempts", row.Attempts, 0)
	}
	expect(t, "the last number", w.queues[DeliveryQueueID(feed)].Sequence, 2)
	expect(t, "the queue is due", w.queues[DeliveryQueueID(feed)].NextDue, pawl.Never)
	if out := w.do(RetryDelivery{Delivery: got[1].ID, Endpoint: feed}); out.Fate != Dropped || out.Reason != "endpoint_feed" {
		t.Errorf("a delivery of a feed is sent again: %+v", out)
	}
	w.sound()
}

// TestTestEvent: it goes to the one endpoint, whatever types that wants, and its
// body says what it is.
func TestTestEvent(t *testing.T) {
	w := stage(t)
	picky := pawl.NewID(start, 61)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: picky, Tenant: tenant, URL: "https://b.example/", Types: "order.paid", Scheme: "standard"}})
	c := TestEndpoint{Tenant: tenant, Endpoint: picky, Type: pawl.TypeSucceeded, Data: `{"id":"op_x"}`, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "k", Window: time.Hour}}
	out := w.do(c)
	expect(t, "reason", out.Reason, "sent")
	expect(t, "again", w.do(c).Value, out.Value)
	expect(t, "deliveries", len(w.deliveries), 1)
	row := w.deliveries[out.Value.(pawl.ID)]
	expect(t, "endpoint", row.Endpoint, picky)
	expect(t, "due", row.DueAt, w.now)
	e := w.events[row.Event]
	if body := string(RenderOwn(e, 1, c.Data)); body != `{"id":"`+e.PublicID()+`","type":"operation.succeeded","timestamp":"`+e.At.String()+`","sequence":1,"test":true,"data":{"id":"op_x"}}` {
		t.Errorf("body %s", body)
	}
	w.sound()

	dialects := pawl.NewID(start, 62)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: dialects, Tenant: tenant, URL: "https://c.example/", Scheme: "media-v2"}})
	off := true
	w.do(ChangeEndpoint{ID: picky, Change: EndpointChange{Disabled: &off, DisabledReason: "paused"}})
	for reason, c := range map[string]TestEndpoint{
		"endpoint_disabled": {Tenant: tenant, Endpoint: picky},
		"no_test":           {Tenant: tenant, Endpoint: dialects},
		"not_found":         {Tenant: "other", Endpoint: hookID},
	} {
		c.Type, c.Data = "x", "1"
		if out := w.do(c); out.Fate != Dropped || out.Reason != reason {
			t.Errorf("%s: %+v", reason, out)
		}
	}
	expect(t, "deliveries after refusals", len(w.deliveries), 1)
}
