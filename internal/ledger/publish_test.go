package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestPublish: an own event and its deliveries are one decision; its id is the
// tenant's, and the same one again is a replay or another event's (R49).
func TestPublish(t *testing.T) {
	w := stage(t)
	for i, ep := range []Endpoint{
		{Types: "order.paid"}, {Types: "order.lost,operation.failed"}, {Scheme: "media-v2"}, {Scheme: "body-timestamp", Types: "order.paid"}, {Tenant: "other"},
	} {
		ep.ID = pawl.NewID(start, uint64(50+i))
		if ep.Tenant == "" {
			ep.Tenant = tenant
		}
		w.do(CreateEndpoint{Endpoint: ep})
	}
	c := PublishEvent{Tenant: tenant, ID: "order-1", Type: "order.paid", Data: `{"n":1}`, Digest: digest("1")}
	out := w.do(c)
	expect(t, "first", out.Reason, "published")
	id := out.Value.(pawl.ID)
	e := w.events[id]
	expect(t, "what receivers know it by", e.PublicID(), "order-1")
	expect(t, "data", w.payloads[len(w.payloads)-1], Payload{PayloadID{id, DataPayload}, `{"n":1}`})
	var to []pawl.ID
	for _, d := range w.deliveries {
		expect(t, "event", d.Event, id)
		expect(t, "due", d.DueAt, w.now)
		to = append(to, d.Endpoint)
	}
	slices.SortFunc(to, pawl.ID.Compare)
	if want := []pawl.ID{hookID, pawl.NewID(start, 50)}; !slices.Equal(to, want) {
		t.Errorf("it goes to %v, want %v", to, want)
	}
	if body := string(RenderOwn(e, 3, ` { "n" : 1.0, "html":"<&>" } `)); body != `{"id":"order-1","type":"order.paid","timestamp":"`+e.At.String()+`","sequence":3,"data":{"n":1.0,"html":"<&>"}}` {
		t.Errorf("body %s", body)
	}

	again := w.do(c)
	expect(t, "again", again.Reason, "replayed")
	expect(t, "the same event", again.Value, any(id))
	for what, change := range map[string]func(*PublishEvent){
		"other data": func(c *PublishEvent) { c.Digest = digest("2") },
		"other type": func(c *PublishEvent) { c.Type = "order.lost" },
	} {
		other := c
		change(&other)
		if out := w.do(other); out.Fate != Dropped || out.Err.Kind != pawl.Conflicting {
			t.Errorf("%s under the same id: %+v", what, out)
		}
	}
	c.Tenant = "other"
	expect(t, "another tenant's id", w.do(c).Reason, "published")
	expect(t, "events", len(w.events), 2)
	w.sound()
}

// TestPublishOnce: without an id of its own, a key keeps an event from being
// sent twice (R52).
func TestPublishOnce(t *testing.T) {
	w := stage(t)
	c := PublishEvent{Tenant: tenant, Type: "order.paid", Data: "1", Digest: digest("1"), Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "k", Window: time.Hour}}
	first := w.do(c)
	expect(t, "first", first.Reason, "published")
	expect(t, "again", w.do(c).Value, first.Value)
	expect(t, "events", len(w.events), 1)
	c.Digest = digest("2")
	if out := w.do(c); out.Fate != Dropped || out.Err.Kind != pawl.Unprocessable {
		t.Errorf("other data under the key: %+v", out)
	}
	c.Key = ""
	w.do(c)
	w.do(c)
	expect(t, "without a key each is an event", len(w.events), 3)
}
