package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// feedOf makes a feed of acme's with n events of its own.
func (g *rig) feedOf(n int) (endpoint string) {
	g.t.Helper()
	a := g.call("acme", "POST", "/v1/endpoints", `{"kind":"feed","types":["order.paid"]}`).want(201, "")
	if a.text("kind") != "feed" || a.text("url") != "" || a.text("secret") == "" {
		g.t.Errorf("a feed: %s", a.body)
	}
	for i := range n {
		g.order(i + 1)
	}
	return a.text("id")
}

func (g *rig) order(n int) {
	g.call("acme", "POST", "/v1/events", fmt.Sprintf(`{"id":"order-%d","type":"order.paid","data":{"n":%d}}`, n, n)).want(202, "")
}

// A feed gives an endpoint's events in the order of their sequence, each as it
// would be sent, and says where the stream ends (7-rules §3).
func TestFeed(t *testing.T) {
	g := newRig(t)
	ep := g.feedOf(3)
	feed := func(rest string) answer { return g.call("acme", "GET", "/v1/events?endpoint="+ep+rest, "") }
	a := feed("&after=0&page_size=2").want(200, "")
	items := a.items()
	if len(items) != 2 || a.header.Get("Pawl-Endpoint-Sequence") != "3" {
		t.Fatalf("%s, end %q", a.body, a.header.Get("Pawl-Endpoint-Sequence"))
	}
	for i, item := range items {
		data, _ := item["data"].(map[string]any)
		if item["sequence"] != float64(i+1) || item["external_id"] != fmt.Sprintf("order-%d", i+1) || item["type"] != "order.paid" || data["n"] != float64(i+1) {
			t.Errorf("item %d: %v", i, item)
		}
	}
	if rest := feed("&after=2").want(200, "").items(); len(rest) != 1 || rest[0]["sequence"] != float64(3) {
		t.Errorf("after 2: %v", rest)
	}
	if a := feed("&after=3").want(200, ""); len(a.items()) != 0 || a.header.Get("Pawl-Endpoint-Sequence") != "3" {
		t.Errorf("after the end: %s", a.body)
	}
	for _, query := range []string{"?after=0", "?endpoint=" + ep, "?endpoint=" + ep + "&after=-1", "?endpoint=" + ep + "&after=x", "?endpoint=" + ep + "&after=0&type=x", "?endpoint=ep_1&after=0", "?wait=1"} {
		g.call("acme", "GET", "/v1/events"+query, "").want(400, "invalid_query")
	}
	g.call("other", "GET", "/v1/events?endpoint="+ep+"&after=0", "").want(404, "not_found")
	// Nothing is sent to it, and it gets no address.
	d := g.call("acme", "GET", "/v1/deliveries?endpoint="+ep, "").items()[0]
	if d["state"] != "delivered" || d["attempts"] != float64(0) {
		t.Errorf("delivery %v", d)
	}
	g.call("acme", "POST", fmt.Sprintf("/v1/deliveries/%s/retry", d["id"]), "").want(409, "endpoint_feed")
	g.call("acme", "PATCH", "/v1/endpoints/"+ep, `{"url":"https://hooks.example.com/in"}`, "If-Match", "*").want(400, "invalid_request")
	for _, body := range []string{`{"kind":"feed","url":"https://hooks.example.com/in"}`, `{"kind":"callback","url":"https://hooks.example.com/in"}`, `{}`} {
		g.call("acme", "POST", "/v1/endpoints", body).want(400, "invalid_request")
	}
	g.call("acme", "DELETE", "/v1/endpoints/"+ep, "", "If-Match", "*").want(204, "")
	feed("&after=0").want(404, "not_found")
}

// The feed of an ordinary endpoint is what was sent to it: an operation's events
// with their data.
func TestFeedOfOperations(t *testing.T) {
	g := newRig(t)
	ep, op, d := g.deliverTo()
	before := g.call("acme", "GET", "/v1/events?endpoint="+ep+"&after=0", "").want(200, "")
	if len(before.items()) != 0 || before.header.Get("Pawl-Endpoint-Sequence") != "0" {
		t.Errorf("before it was sent: %s", before.body)
	}
	g.attempt(d, 500)
	items := g.call("acme", "GET", "/v1/events?endpoint="+ep+"&after=0", "").want(200, "").items()
	if len(items) != 1 {
		t.Fatal(items)
	}
	data, _ := items[0]["data"].(map[string]any)
	if items[0]["sequence"] != float64(1) || items[0]["operation_id"] != op || data["id"] != op || data["state"] != "running" {
		t.Errorf("%v", items[0])
	}
}

// A feed that has nothing more waits for something to come.
func TestFeedWaits(t *testing.T) {
	g := newRig(t)
	ep := g.feedOf(1)
	byParameter := g.later("acme", "GET", "/v1/events?endpoint="+ep+"&after=1&wait=30", "")
	byPreference := g.later("acme", "GET", "/v1/events?endpoint="+ep+"&after=1", "", "Prefer", "wait=30")
	g.waiting(2)
	began := time.Now()
	g.order(2)
	for _, answers := range []<-chan answer{byParameter, byPreference} {
		a := (<-answers).want(200, "")
		if items := a.items(); len(items) != 1 || items[0]["sequence"] != float64(2) || time.Since(began) > 5*time.Second {
			t.Errorf("%s after %s", a.body, time.Since(began))
		}
	}
	if a := g.call("acme", "GET", "/v1/events?endpoint="+ep+"&after=0&wait=60", "").want(200, ""); len(a.items()) != 2 {
		t.Error("what is there is waited for")
	}
	began = time.Now()
	if a := g.call("acme", "GET", "/v1/events?endpoint="+ep+"&after=2&wait=1", "").want(200, ""); len(a.items()) != 0 || time.Since(began) < time.Second {
		t.Errorf("%s after %s", a.body, time.Since(began))
	}
	// A client that is ahead of the stream waits its time and is told.
	if a := g.call("acme", "GET", "/v1/events?endpoint="+ep+"&after=9&wait=1", "").want(200, ""); a.header.Get("Pawl-Endpoint-Sequence") != "2" {
		t.Errorf("end %q", a.header.Get("Pawl-Endpoint-Sequence"))
	}
	g.waiting(0)
}

// A test event goes to one endpoint and says what it is.
func TestTestEndpoint(t *testing.T) {
	g := newRig(t)
	feed := g.feedOf(0)
	other := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in"}`).want(201, "").text("id")
	try := func(endpoint, body string, headers ...string) answer {
		return g.call("acme", "POST", "/v1/endpoints/"+endpoint+"/test", body, headers...)
	}
	a := try(feed, "{}", "Idempotency-Key", "k").want(202, "")
	if a.header.Get("Location") != "/v1/deliveries/"+a.text("id") || a.text("endpoint_id") != feed {
		t.Errorf("%s %q", a.body, a.header.Get("Location"))
	}
	if again := try(feed, "{}", "Idempotency-Key", "k").want(202, ""); again.text("id") != a.text("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again.body)
	}
	try(feed, `{"type":"order.lost"}`, "Idempotency-Key", "k").want(422, "idempotency_mismatch")
	g.call("full", "POST", "/v1/endpoints/"+feed+"/test", "{}", "Idempotency-Key", "k").want(409, "idempotency_key_in_use")
	try(feed, `{"type":"operation.failed"}`).want(202, "")
	try(feed, `{"type":"order.lost","data":[1.0]}`).want(202, "")
	items := g.call("acme", "GET", "/v1/events?endpoint="+feed+"&after=0", "").items()
	if len(items) != 3 {
		t.Fatal(items)
	}
	for i, want := range []string{"order.paid", "operation.failed", "order.lost"} {
		if items[i]["type"] != want || items[i]["test"] != true || items[i]["reason"] != nil {
			t.Errorf("%d: %v", i, items[i])
		}
	}
	if data := items[1]["data"].(map[string]any); data["state"] != "failed" {
		t.Errorf("the example: %v", data)
	}
	if n := len(g.call("acme", "GET", "/v1/deliveries?endpoint="+other, "").items()); n != 0 {
		t.Errorf("%d deliveries to another endpoint", n)
	}
	for _, body := range []string{`{"type":"operation.none"}`, `{"type":"a..b"}`, `{"type":"review.opened."}`} {
		try(feed, body).want(400, "invalid_request")
	}
	dialect := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in","scheme":"media-v2"}`).want(201, "").text("id")
	try(dialect, "{}").want(409, "no_test")
	g.call("acme", "POST", "/v1/endpoints/"+other+"/pause", "").want(200, "")
	try(other, "{}").want(409, "endpoint_disabled")
	g.call("other", "POST", "/v1/endpoints/"+feed+"/test", "{}").want(404, "not_found")
}

// A caller that leaves while its feed waits is no fault of the server's: nothing
// warns of it.
func TestLeavingAFeed(t *testing.T) {
	g := newRig(t)
	ep := g.feedOf(0)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/v1/events?endpoint="+ep+"&after=0&wait=30", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.secrets["acme"])
	left := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(r)
		left <- err
	}()
	g.waiting(1)
	leave()
	if err := <-left; err == nil {
		t.Error("it was answered")
	}
	g.waiting(0)
	logged := ""
	for began := time.Now(); logged == "" && time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		for line := range strings.Lines(g.log.String()) {
			if strings.Contains(line, "GET /v1/events") {
				logged = line
			}
		}
	}
	if !strings.Contains(logged, `"level":"DEBUG"`) || !strings.Contains(logged, `"status":"499"`) {
		t.Errorf("logged %s", logged)
	}
}

// inbound stores an event of the source "payments" with a body of any kind.
func (g *rig) inbound(event, contentType, body string) {
	c := testSources(g.t)["payments"].Reread(ledger.Event{}, []byte(`{"id":"`+event+`","type":"invoice.paid"}`))
	c.Header, c.Body, c.Digest, c.Headers = head(), body, sha256.Sum256([]byte(body)), `{"content-type":"`+contentType+`"}`
	g.do(c)
}

// What came in is for keys that may read payloads. Others are told that something
// is left out: what they do not get must not look as if there were nothing.
func TestFeedWithheld(t *testing.T) {
	g := newRig(t)
	ep := g.feedOf(0)
	g.call("acme", "PATCH", "/v1/endpoints/"+ep, `{"types":[]}`, "If-Match", "*").want(200, "")
	g.inbound("evt_1", "application/json", `{"total": 1.10}`)
	g.inbound("evt_2", "text/plain", "a line")
	g.order(1)
	for _, rest := range []string{"", "&rendered=true"} {
		items := g.call("reader", "GET", "/v1/events?endpoint="+ep+"&after=0"+rest, "").want(200, "").items()
		if len(items) != 3 {
			t.Fatal(items)
		}
		for i, item := range items[:2] {
			if item["body_withheld"] != true || item["data"] != nil || item["body"] != nil || item["rendered"] != nil || item["source"] != "payments" {
				t.Errorf("%q %d: %v", rest, i, item)
			}
		}
		if items[2]["body_withheld"] != nil || items[2]["data"] == nil && items[2]["rendered"] == nil {
			t.Errorf("%q, an own event: %v", rest, items[2])
		}
	}
	items := g.call("full", "GET", "/v1/events?endpoint="+ep+"&after=0", "").want(200, "").items()
	if data, _ := items[0]["data"].(map[string]any); data["total"] != 1.1 || items[0]["body_withheld"] != nil || items[0]["content_type"] != nil {
		t.Errorf("JSON: %v", items[0])
	}
	if line := base64.StdEncoding.EncodeToString([]byte("a line")); items[1]["data"] != line || items[1]["body"] != line || items[1]["content_type"] != "text/plain" {
		t.Errorf("text: %v", items[1])
	}
	if id, _ := items[0]["delivery_id"].(string); g.call("full", "GET", "/v1/deliveries/"+id, "").want(200, "").text("endpoint_id") != ep {
		t.Errorf("delivery %q", id)
	}
}

// A feed gives the events as they are sent, if it is asked to: wrapped or the
// bytes that were received, and in the dialect of the endpoint (7-rules R20).
func TestFeedRendered(t *testing.T) {
	g := newRig(t)
	native := g.feedOf(0)
	g.call("acme", "PATCH", "/v1/endpoints/"+native, `{"types":[]}`, "If-Match", "*").want(200, "")
	original := g.call("acme", "POST", "/v1/endpoints", `{"kind":"feed","content":"original"}`).want(201, "").text("id")
	tasks := g.call("acme", "POST", "/v1/endpoints", `{"kind":"feed","scheme":"body-timestamp"}`).want(201, "").text("id")
	g.inbound("evt_1", "application/json", `{"total": 1.10}`)
	g.inbound("evt_2", "text/plain", "a line")
	g.inbound("evt_3", "text/plain", "")
	g.order(7)
	type sent struct{ contentType, body string }
	rendered := func(endpoint string) (all []sent, items []map[string]any) {
		items = g.call("full", "GET", "/v1/events?endpoint="+endpoint+"&after=0&rendered=true", "").want(200, "").items()
		for _, item := range items {
			r, _ := item["rendered"].(map[string]any)
			headers, _ := r["headers"].(map[string]any)
			text, _ := r["body"].(string)
			body, err := base64.StdEncoding.DecodeString(text)
			if err != nil || item["data"] != nil || item["body"] != nil {
				t.Errorf("%v, %v", item, err)
			}
			all = append(all, sent{fmt.Sprint(headers["Content-Type"]), string(body)})
		}
		return all, items
	}
	wrapped, items := rendered(native)
	begin := func(i int) string {
		return fmt.Sprintf(`{"id":"%s","type":"invoice.paid","source":"payments","timestamp":"%s","sequence":%d,"data":`, items[i]["id"], items[i]["at"], i+1)
	}
	for i, want := range []sent{
		{"application/json", begin(0) + `{"total":1.10}}`},
		{"application/json", begin(1) + `"` + base64.StdEncoding.EncodeToString([]byte("a line")) + `","content_type":"text/plain"}`},
		{"application/json", begin(2) + `"","content_type":"text/plain"}`},
		{"application/json", fmt.Sprintf(`{"id":"order-7","type":"order.paid","timestamp":"%s","sequence":4,"data":{"n":7}}`, items[3]["at"])},
	} {
		if wrapped[i] != want {
			t.Errorf("native %d: %v, want %v", i, wrapped[i], want)
		}
	}
	received, _ := rendered(original)
	for i, want := range []sent{{"application/json", `{"total": 1.10}`}, {"text/plain", "a line"}, {"text/plain", ""}} {
		if received[i] != want {
			t.Errorf("original %d: %v, want %v", i, received[i], want)
		}
	}
	op := g.submit("k", openBody)
	g.created("open", ledger.CreateAccepted, "job_1")
	told, _ := rendered(tasks)
	if want := `"data":{"task_id":"task_` + strings.TrimPrefix(op, "op_") + `","status":"running"`; len(told) != 1 || !strings.Contains(told[0].body, want) {
		t.Errorf("in the dialect: %v, want %s", told, want)
	}
	g.call("full", "GET", "/v1/events?endpoint="+native+"&after=0&rendered=perhaps", "").want(400, "invalid_query")
	// What the ledger has lost is told and not made up.
	c := testSources(t)["payments"].Reread(ledger.Event{}, []byte(`{"id":"evt_4","type":"invoice.paid"}`))
	c.Header, c.Digest = head(), sha256.Sum256([]byte("lost"))
	g.do(c)
	items = g.call("full", "GET", "/v1/events?endpoint="+original+"&after=0&rendered=true", "").want(200, "").items()
	if last := items[len(items)-1]; last["unsendable"] != "the event's body is no longer stored" || last["rendered"] != nil {
		t.Errorf("lost: %v", last)
	}
}
