package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// How often an event came again, and whether its body differed, is shown of the
// event, and on the timeline of its operation.
func TestRepeatsAreShown(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	op := g.created("open", ledger.CreateAccepted, "job_1")
	tell := func(body string) string {
		got := g.do(ledger.ReceiveEvent{
			Header: head(), Up: g.policy("open"), Token: op.ID, Event: "e1", Type: "t", Body: body, Digest: ledger.Digest{byte(len(body))},
			Obs: ledger.Observation{Task: "job_1", Word: "working", State: pawl.Running, Progress: 10},
		}).(ledger.Received)
		return got.Event.Text(pawl.PrefixEvent)
	}
	e := tell("a")
	if a := g.call("reader", "GET", "/v1/events/"+e, "").want(200, ""); a.json["repeats"] != 0.0 || a.json["body_differs"] != nil {
		t.Errorf("at first: %s", a.body)
	}
	tell("a")
	if a := g.call("reader", "GET", "/v1/events/"+e, ""); a.json["repeats"] != 1.0 || a.json["body_differs"] != nil {
		t.Errorf("after an equal one: %s", a.body)
	}
	tell("bb")
	tell("bb")
	if a := g.call("reader", "GET", "/v1/events/"+e, ""); a.json["repeats"] != 3.0 || a.json["body_differs"] != true {
		t.Errorf("after others: %s", a.body)
	}
	lines := 0
	for _, item := range g.call("reader", "GET", "/v1/operations/"+id+"/timeline", "").want(200, "").items() {
		if item["verdict"] == "duplicate" && item["reason"] == "body_differs" && item["event_id"] == e {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("%d lines of another body, want 1", lines)
	}
}

// Reads that came to the same are one line of the timeline, with a count.
func TestTimelineCountsReads(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	op := g.created("open", ledger.CreateAccepted, "job_1")
	for range 4 {
		due := head()
		due.Now = op.DueAt
		leases := g.do(ledger.LeaseWork{Header: due, Queue: ledger.WorkQueueID(ledger.ReadQueue, "open", "acme"), Limit: 1, Up: g.policy("open")}).([]ledger.Lease)
		if len(leases) != 1 {
			t.Fatalf("%d leases", len(leases))
		}
		due.Seed[0]++
		op = g.do(ledger.ObserveStatus{Header: due, Up: g.policy("open"), Operation: op.ID, Fence: leases[0].Fence, Outcome: ledger.ReadOtherTask}).(ledger.Operation)
	}
	var reads []map[string]any
	for _, item := range g.call("reader", "GET", "/v1/operations/"+id+"/timeline", "").want(200, "").items() {
		if item["kind"] == "read" {
			reads = append(reads, item)
		}
	}
	if len(reads) != 1 || reads[0]["repeats"] != 3.0 || reads[0]["reason"] != "task_mismatch" || reads[0]["last_at"] == nil || reads[0]["last_at"].(string) < reads[0]["at"].(string) {
		t.Errorf("reads on the timeline: %v, want one with 3 repeats", reads)
	}
}

// An attempt names the event, where it went without any of the path, and who
// asked for it (1-product H5, 7-rules R37).
func TestAttemptsTellWhereAndWho(t *testing.T) {
	g := newRig(t)
	_, operation, row := g.deliverTo()
	send := func(status int32) {
		leased := g.do(ledger.LeaseDeliveries{Header: head(), Endpoint: row.Endpoint, Limit: 1}).([]ledger.Delivery)
		if len(leased) != 1 {
			t.Fatalf("%d leases", len(leased))
		}
		g.do(ledger.RecordAttempt{
			Header: head(), Delivery: row.ID, Endpoint: row.Endpoint, Fence: leased[0].Lease, Policy: ledger.DefaultPolicy(),
			At: pawl.TimeOf(time.Now()), Status: status, Target: "https://hooks.example.com", TargetDigest: "0011223344556677",
		})
	}
	send(400)
	id := row.ID.Text(pawl.PrefixDelivery)
	g.call("acme", "POST", "/v1/deliveries/"+id+"/retry", "").want(202, "")
	send(200)
	items := g.call("reader", "GET", "/v1/deliveries/"+id+"/attempts", "").want(200, "").items()
	if len(items) != 2 {
		t.Fatalf("%d attempts, want 2", len(items))
	}
	for i, item := range items {
		if item["event_id"] != row.Event.Text(pawl.PrefixEvent) || item["target"] != "https://hooks.example.com" || item["target_sha256"] != "0011223344556677" {
			t.Errorf("attempt %d: %v", i, item)
		}
	}
	asker := g.keys["acme"].ID.Text(pawl.PrefixKey)
	if items[0]["actor"] != nil || items[0]["replay"] != nil || items[1]["actor"] != asker || items[1]["replay"] != true {
		t.Errorf("asked for by: %v, want nobody, then %s", items, asker)
	}
	told := 0
	for _, item := range g.call("reader", "GET", "/v1/operations/"+operation+"/timeline", "").items() {
		if item["kind"] == "attempt" {
			told++
		}
	}
	if told != 2 {
		t.Errorf("%d attempts on the timeline, want 2", told)
	}
}

// An empty value of a filter is a mistake, and lists nothing.
func TestEmptyFilters(t *testing.T) {
	g := newRig(t)
	for path, names := range map[string][]string{
		"/v1/operations": {"state", "unfinished", "upstream", "task_id", "correlation_id", "idempotency_key", "created_before", "tenant"},
		"/v1/events":     {"direction", "source", "verdict", "task_id", "type", "operation", "from", "until"},
		"/v1/deliveries": {"state", "endpoint", "event", "operation"},
		"/v1/reviews":    {"open", "reason", "operation"},
	} {
		for _, name := range names {
			g.call("acme", "GET", path+"?"+name+"=", "").want(400, "invalid_query")
			g.call("admin", "GET", path+"?"+name, "").want(400, "invalid_query")
		}
	}
	g.call("acme", "GET", "/v1/operations?metadata.note=", "").want(200, "")
	g.call("acme", "GET", "/v1/operations?metadata.a=1&metadata.b=2", "").want(400, "invalid_query")
	g.call("acme", "GET", "/v1/operations?page_size=&page_token=", "").want(200, "")
}

// A decision that there is not is refused as such in every state.
func TestUnknownDecision(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	resolve := func(decision string) answer {
		return g.call("acme", "POST", "/v1/operations/"+id+"/resolve", fmt.Sprintf(`{"decision":%q}`, decision))
	}
	resolve("foo").want(400, "unknown_decision")
	g.created("open", ledger.CreateAccepted, "job_1")
	resolve("foo").want(400, "unknown_decision")
	resolve("failed").want(409, "not_unconfirmed")
}

// The decision to judge anew takes the Idempotency-Key, is audited, keeps its
// note, and is about the events of the review's tenant alone.
func TestReprocessByReview(t *testing.T) {
	g := newRig(t)
	g.submit("k", `{"upstream":"studio","model":"free","input":{}}`)
	op := g.created("studio", ledger.CreateAccepted, "job_1")
	unknown := func(token pawl.ID, event string) {
		g.do(ledger.ReceiveEvent{
			Header: head(), Up: g.policy("studio"), Token: token, Event: event, Obs: ledger.Observation{Task: "job_1", Word: "odd", Progress: -1},
			Preset: pawl.UnknownType, Reason: "unknown_type", Body: ended(event), Headers: `{"x-webhook-payload-version":"2"}`,
		})
	}
	unknown(op.ID, "whd_1")
	g.odd(g.policy("studio"), "whd_2", `{"request_id":"whd_2"}`, pawl.UnknownType) // of the same task, thus of acme
	other := g.policy("studio")
	g.do(ledger.ReceiveEvent{Header: head(), Up: other, Event: "whd_3", Obs: ledger.Observation{Task: "job_9", Progress: -1}, Preset: pawl.UnknownType, Reason: "unknown_type", Body: "{}"})

	mine := g.call("acme", "GET", "/v1/reviews?reason=unknown_type", "").want(200, "").items()
	all := g.call("admin", "GET", "/v1/reviews?reason=unknown_type", "").want(200, "").items()
	if len(mine) != 1 || len(all) != 2 {
		t.Fatalf("%d reviews of acme and %d in all, want 1 and 2", len(mine), len(all))
	}
	id := mine[0]["id"].(string)
	path := "/v1/reviews/" + id + "/resolve"
	const body = `{"decision":"reprocess","note":"the description is mended"}`
	a := g.call("acme", "POST", path, body, "Idempotency-Key", "once").want(200, "")
	if a.text("decision") != "reprocess" || a.text("note") != "the description is mended" || a.text("closed_at") == "" || a.text("decided_by") != g.keys["acme"].ID.Text(pawl.PrefixKey) {
		t.Errorf("%s", a.body)
	}
	audited := 0
	for _, line := range g.call("reader", "GET", "/v1/audit", "").items() {
		if line["action"] == "review.resolve" && line["subject"] == id {
			audited++
		}
	}
	if audited != 1 {
		t.Errorf("audited %d times", audited)
	}
	again := g.call("acme", "POST", path, body, "Idempotency-Key", "once").want(200, "")
	if again.header.Get("Idempotency-Replayed") != "true" || again.text("id") != id {
		t.Errorf("repeated: %v %s", again.header, again.body)
	}
	g.refusedKeys("acme", "full", "POST", path, body, "once", "k")
	g.call("acme", "POST", path, body).want(409, "already_decided")
	left := g.call("admin", "GET", "/v1/reviews?reason=unknown_type", "").items()
	if len(left) != 1 || left[0]["tenant"] != nil {
		t.Fatalf("what is open at the end: %v, want nobody's", left)
	}
	unknown(op.ID, "whd_4")
	g.call("admin", "POST", "/v1/reviews/"+left[0]["id"].(string)+"/resolve", `{"decision":"reprocess"}`).want(200, "")
	for _, e := range g.call("reader", "GET", "/v1/events?verdict=unknown_type", "").items() {
		if e["external_id"] == "whd_4" && e["reprocessed"] != nil {
			t.Errorf("a decision about nobody's events has judged one of acme: %v", e)
		}
	}
}

// Discarding the events of unknown types of a generic source makes those of the
// review's tenant done (inbound.md).
func TestDiscardByReview(t *testing.T) {
	g := newRig(t)
	unknown := func(source, tenant, event string) {
		g.do(ledger.ReceiveEvent{
			Header: head(), Up: ledger.Upstream{Name: source, Tenant: tenant, Generic: true}, Event: event, Type: "odd",
			Obs: ledger.Observation{Progress: -1}, Preset: pawl.UnknownType, Reason: "unknown_type", Body: "{}",
		})
	}
	unknown("pay", "acme", "e1")
	unknown("pay", "acme", "e2")
	unknown("sign", "acme", "e3")
	unknown("pay", "", "e4")
	for _, r := range g.call("acme", "GET", "/v1/reviews?reason=unknown_type", "").want(200, "").items() {
		if r["source"] == "pay" {
			path := "/v1/reviews/" + r["id"].(string) + "/resolve"
			refused := g.call("acme", "POST", path, `{"decision":"bogus"}`).want(400, "unknown_decision")
			if !strings.Contains(refused.text("detail"), "there are reprocess, discard") {
				t.Errorf("%s", refused.body)
			}
			a := g.call("acme", "POST", path, `{"decision":"discard"}`).want(200, "")
			if a.text("closed_at") == "" || a.text("decision") != "discard" {
				t.Errorf("%s", a.body)
			}
		}
	}
	for state, want := range map[string]string{"review": "[e3 e4]", "done": "[e1 e2]"} {
		var ids []string
		for _, e := range g.call("admin", "GET", "/v1/events?state="+state, "").want(200, "").items() {
			ids = append(ids, e["external_id"].(string))
		}
		slices.Sort(ids)
		if fmt.Sprint(ids) != want {
			t.Errorf("%s: %v, want %s", state, ids, want)
		}
	}
}
