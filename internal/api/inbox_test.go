package api

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// payment stores an event of the generic source of acme and gives its id.
func (g *rig) payment(event string) string {
	g.t.Helper()
	c := testSources(g.t)["payments"].Reread(ledger.Event{}, []byte(`{"id":"`+event+`","type":"invoice.paid"}`))
	c.Header, c.Body, c.Headers = head(), `{"id":"`+event+`","type":"invoice.paid"}`, `{"content-type":"application/json"}`
	return g.do(c).(ledger.Received).Event.Text(pawl.PrefixEvent)
}

// sent are the deliveries of an event.
func (g *rig) sent(event string) []ledger.Delivery {
	g.t.Helper()
	id, err := pawl.ParseID(pawl.PrefixEvent, event)
	if err != nil {
		g.t.Fatal(err)
	}
	rows, err := g.driver.Deliveries(g.t.Context(), store.DeliveryFilter{Event: id}, store.Page{Limit: 9})
	if err != nil {
		g.t.Fatal(err)
	}
	return rows
}

// An event of a generic source shows how far it has come, to its tenant alone
// (7-rules R21), and its receiver reports that it is done (1-product C9).
func TestCompleteDelivery(t *testing.T) {
	g := newRig(t)
	lone := g.payment("evt_0")
	if a := g.call("reader", "GET", "/v1/events/"+lone, "").want(200, ""); a.text("state") != "received" || a.text("verdict") != "applied" || a.text("type") != "invoice.paid" {
		t.Errorf("nobody wanted it: %s", a.body)
	}
	endpoint := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in","types":["invoice.paid"],"complete_within":"10m"}`).want(201, "")
	if endpoint.text("complete_within") != "10m0s" || endpoint.text("content") != "native" {
		t.Errorf("%s", endpoint.body)
	}
	e := g.payment("evt_1")
	rows := g.sent(e)
	if len(rows) != 1 {
		t.Fatalf("%d deliveries", len(rows))
	}
	path := "/v1/deliveries/" + rows[0].ID.Text(pawl.PrefixDelivery)
	waiting := g.call("reader", "GET", "/v1/events?state=waiting", "").want(200, "").items()
	if len(waiting) != 1 || waiting[0]["id"] != e || waiting[0]["next_try_at"] != rows[0].DueAt.String() {
		t.Errorf("%v", waiting)
	}
	g.call("acme", "POST", path+"/complete", "").want(409, "not_sent")
	g.attempt(rows[0], 200)
	a := g.call("acme", "GET", path, "").want(200, "")
	if by, err := time.Parse(time.RFC3339, a.text("complete_by")); err != nil || a.text("state") != "delivered" || a.text("completed_at") != "" || time.Until(by) > 10*time.Minute || time.Until(by) < 9*time.Minute {
		t.Errorf("delivered is not done: %s, %v", a.body, err)
	}
	if a := g.call("acme", "GET", "/v1/events/"+e, ""); a.text("state") != "waiting" {
		t.Errorf("%s", a.body)
	}

	g.call("reader", "POST", path+"/complete", "").want(403, "insufficient_scope")
	g.call("other", "POST", path+"/complete", "").want(404, "not_found")
	first := g.call("acme", "POST", path+"/complete", "").want(200, "")
	again := g.call("full", "POST", path+"/complete", "").want(200, "")
	if first.text("completed_by") != g.keys["acme"].ID.Text(pawl.PrefixKey) || again.text("completed_by") != first.text("completed_by") || again.text("completed_at") != first.text("completed_at") {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	if line := g.call("reader", "GET", "/v1/audit", "").items()[0]; line["action"] != "delivery.complete" || line["actor"] != first.text("completed_by") {
		t.Errorf("%v", line)
	}
	if done := g.call("reader", "GET", "/v1/events?state=done", "").items(); len(done) != 1 || done[0]["id"] != e || done[0]["next_try_at"] != nil {
		t.Errorf("%v", done)
	}
	if others := g.call("other", "GET", "/v1/events?state=done", "").want(200, "").items(); len(others) != 0 {
		t.Errorf("another tenant sees %v", others)
	}
	g.call("reader", "GET", "/v1/events?state=finished", "").want(400, "invalid_query")

	// What nobody wanted is handed over when it is judged anew.
	g.call("acme", "POST", "/v1/events/"+lone+"/reprocess", "{}").want(200, "")
	if rows := g.sent(lone); len(rows) != 1 {
		t.Errorf("%d deliveries", len(rows))
	}
	if a := g.call("reader", "GET", "/v1/events/"+lone, ""); a.text("state") != "waiting" {
		t.Errorf("%s", a.body)
	}
	etag := g.call("acme", "GET", "/v1/endpoints/"+endpoint.text("id"), "").header.Get("ETag")
	g.call("acme", "DELETE", "/v1/endpoints/"+endpoint.text("id"), "", "If-Match", etag).want(204, "")
	g.call("acme", "POST", "/v1/deliveries/"+g.sent(lone)[0].ID.Text(pawl.PrefixDelivery)+"/complete", "").want(409, "skipped")
	if a := g.call("reader", "GET", "/v1/events/"+lone, ""); a.text("state") != "received" {
		t.Errorf("its only endpoint is gone: %s", a.body)
	}
}

// How long a receiver has can be changed, and given up.
func TestChangeCompleteWithin(t *testing.T) {
	g := newRig(t)
	id := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in"}`).want(201, "").text("id")
	for _, c := range []struct{ body, want string }{{`{"complete_within":"2h"}`, "2h0m0s"}, {`{"owner":"ops"}`, "2h0m0s"}, {`{"complete_within":""}`, ""}} {
		etag := g.call("acme", "GET", "/v1/endpoints/"+id, "").header.Get("ETag")
		if a := g.call("acme", "PATCH", "/v1/endpoints/"+id, c.body, "If-Match", etag).want(200, ""); a.text("complete_within") != c.want {
			t.Errorf("%s: %s", c.body, a.body)
		}
	}
	etag := g.call("acme", "GET", "/v1/endpoints/"+id, "").header.Get("ETag")
	a := g.call("acme", "PATCH", "/v1/endpoints/"+id, `{"complete_within":"1000h"}`, "If-Match", etag).want(400, "invalid_request")
	if !strings.Contains(string(a.body), "#/complete_within") {
		t.Errorf("%s", a.body)
	}
}

// Nobody is asked for a report where no event of a generic source ever comes.
func TestReportsThatNobodyAwaits(t *testing.T) {
	g := newRig(t)
	for _, body := range []string{`{"kind":"feed"}`, `{"url":"https://hooks.example.com/in","scheme":"media-v2"}`} {
		id := g.call("acme", "POST", "/v1/endpoints", body).want(201, "").text("id")
		g.call("acme", "PATCH", "/v1/endpoints/"+id, `{"complete_within":"1m"}`, "If-Match", "*").want(400, "invalid_request")
		g.call("acme", "PATCH", "/v1/endpoints/"+id, `{"complete_within":""}`, "If-Match", "*").want(200, "")
	}
}
