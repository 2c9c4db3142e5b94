package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// odd stores an inbound event that could not be used and gives its id.
func (g *rig) odd(up ledger.Upstream, event, body string, v pawl.Verdict) string {
	g.t.Helper()
	got := g.do(ledger.ReceiveEvent{
		Header: head(), Up: up, Event: event, Obs: ledger.Observation{Task: "job_1", Word: "odd", Progress: -1}, Preset: v, Reason: v.String(),
		Body: body, Headers: `{"x-webhook-payload-version":"2"}`,
	}).(ledger.Received)
	return got.Event.Text(pawl.PrefixEvent)
}

func ended(event string) string {
	return fmt.Sprintf(`{"code":200,"request_id":%q,"data":{"taskId":"job_1","state":"succeeded","result":{}}}`, event)
}

// One event is judged anew by its id, and refused where it cannot be.
func TestReprocessOne(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", `{"upstream":"studio","model":"free","input":{}}`)
	g.created("studio", ledger.CreateAccepted, "job_1")
	studio := g.policy("studio")
	e := g.odd(studio, "whd_1", ended("whd_1"), pawl.UnknownState)
	gone := studio
	gone.Name = "gone"
	nobody, bodiless := g.odd(gone, "whd_2", ended("whd_2"), pawl.Rejected), g.odd(studio, "whd_3", "", pawl.Rejected)
	outbound := g.call("reader", "GET", "/v1/events?direction=outbound", "").items()[0]["id"].(string)

	a := g.call("acme", "POST", "/v1/events/"+e+"/reprocess", "{}").want(200, "")
	if was := a.json["reprocessed"].(map[string]any); a.text("verdict") != "unknown_state" || was["verdict"] != "applied" || was["reason"] != "state" || was["actor"] != g.keys["acme"].ID.Text(pawl.PrefixKey) {
		t.Errorf("%s", a.body)
	}
	if op := g.call("reader", "GET", "/v1/operations/"+id, ""); op.text("state") != "succeeded" {
		t.Errorf("%s", op.body)
	}
	if line := g.call("reader", "GET", "/v1/audit", "").items()[0]; line["action"] != "event.reprocess" || line["subject"] != e || line["detail"] != "applied" {
		t.Errorf("%v", line)
	}
	again := g.call("acme", "POST", "/v1/events/"+e+"/reprocess", "").want(200, "")
	if again.json["reprocessed"].(map[string]any)["at"] != a.json["reprocessed"].(map[string]any)["at"] {
		t.Errorf("judged once more: %s", again.body)
	}
	g.call("acme", "POST", "/v1/events/"+outbound+"/reprocess", "{}").want(409, "not_inbound")
	g.call("admin", "POST", "/v1/events/"+nobody+"/reprocess", "{}").want(409, "source_unknown")
	g.call("acme", "POST", "/v1/events/"+bodiless+"/reprocess", "{}").want(409, "body_gone")
	g.call("reader", "POST", "/v1/events/"+e+"/reprocess", "{}").want(403, "insufficient_scope")
	g.call("other", "POST", "/v1/events/"+e+"/reprocess", "{}").want(404, "not_found")

	full := g.policy("open")
	full.Name, full.OrphanLimit = "open", 0
	g.do(ledger.ReceiveEvent{
		Header: head(), Up: full, Event: "whd_4", Obs: ledger.Observation{Task: "job_9", Progress: -1}, Preset: pawl.Rejected, Reason: "unknown_task",
		Body: strings.Replace(ended("whd_4"), "job_1", "job_9", 1), Headers: `{"x-webhook-payload-version":"2"}`,
	})
	stray := g.call("admin", "GET", "/v1/events?source=open", "").items()[0]["id"].(string)
	b := g.call("admin", "POST", "/v1/events/"+stray+"/reprocess", "{}").want(200, "")
	if b.json["parked"] != true || b.json["reprocessed"].(map[string]any)["verdict"] != "orphan" {
		t.Errorf("%s", b.body)
	}
}

// Many are judged page by page in the order received, within their tenant; what
// cannot be judged does not stop the others, and a dry run changes nothing.
func TestReprocessMany(t *testing.T) {
	g := newRig(t)
	g.submit("k", `{"upstream":"studio","model":"free","input":{}}`)
	g.created("studio", ledger.CreateAccepted, "job_1")
	var want []string
	for i := range 5 {
		body := ended(fmt.Sprint("whd_", i))
		if i == 2 {
			body = ""
		}
		want = append(want, g.odd(g.policy("studio"), fmt.Sprint("whd_", i), body, pawl.Rejected))
	}
	judged := func(key, body string) (answer, []string) {
		t.Helper()
		a := g.call(key, "POST", "/v1/events/reprocess", body).want(200, "")
		var ids []string
		for _, item := range a.items() {
			ids = append(ids, item["event_id"].(string))
		}
		return a, ids
	}
	dry, ids := judged("acme", `{"dry_run":true}`)
	if fmt.Sprint(ids) != fmt.Sprint(want) || fmt.Sprint(dry.json["verdicts"]) != "map[:1 applied:4]" {
		t.Errorf("dry run: %s", dry.body)
	}
	if e := g.call("reader", "GET", "/v1/events/"+want[0], ""); e.json["reprocessed"] != nil {
		t.Errorf("a dry run has judged: %s", e.body)
	}
	if a, ids := judged("other", `{}`); len(ids) != 0 {
		t.Errorf("another tenant judges %s", a.body)
	}
	if a, ids := judged("admin", `{"filter":{"source":"open"}}`); len(ids) != 0 {
		t.Errorf("another source's: %s", a.body)
	}
	first, ids := judged("acme", `{"limit":2}`)
	if fmt.Sprint(ids) != fmt.Sprint(want[:2]) || fmt.Sprint(first.json["verdicts"]) != "map[applied:1 stale:1]" || first.text("next") != want[1] {
		t.Errorf("two: %s", first.body)
	}
	rest, ids := judged("acme", fmt.Sprintf(`{"limit":500,"after":%q}`, first.text("next")))
	if fmt.Sprint(ids) != fmt.Sprint(want[2:]) || rest.json["next"] != nil || rest.items()[0]["reason"] != "body_gone" || rest.items()[0]["verdict"] != "" {
		t.Errorf("the rest: %s", rest.body)
	}
	for _, body := range []string{
		`{"filter":{"verdict":"lost"}}`, `{"filter":{"from":"yesterday"}}`, `{"filter":{"until":"2026-01-31"}}`, `{"after":"evt_x"}`, `{"limit":501}`, `{"limit":-1}`,
	} {
		g.call("acme", "POST", "/v1/events/reprocess", body).want(400, "invalid_request")
	}
	g.call("acme", "POST", "/v1/events/reprocess", `{"filter":{"verdikt":"rejected"}}`).want(400, "invalid_json")
	g.call("reader", "POST", "/v1/events/reprocess", `{}`).want(403, "insufficient_scope")
}

// An own event needs the scope submit, belongs to one tenant, and is refused
// where it is none.
func TestPublishEvent(t *testing.T) {
	g := newRig(t)
	const body = `{"id":"order-7","type":"order.paid","data":{"n":1}}`
	g.call("reader", "POST", "/v1/events", body).want(403, "insufficient_scope")
	a := g.call("submitter", "POST", "/v1/events", body).want(202, "")
	if a.header.Get("Location") != "/v1/events/"+a.text("id") || a.json["data"].(map[string]any)["n"] != 1.0 || a.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if b := g.call("sibling", "POST", "/v1/events", body).want(202, ""); b.text("id") != a.text("id") || b.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a sibling's repeat: %v %s", b.header, b.body)
	}
	g.call("acme", "POST", "/v1/events", strings.Replace(body, "1}", "2}", 1)).want(409, "event_id_taken")
	if b := g.call("other", "POST", "/v1/events", body).want(202, ""); b.text("id") == a.text("id") {
		t.Errorf("another tenant's id is the same event")
	}
	if b := g.call("admin", "POST", "/v1/events?tenant=acme", body).want(202, ""); b.text("id") != a.text("id") {
		t.Errorf("an admin for the tenant: %s", b.body)
	}
	g.call("admin", "POST", "/v1/events?tenant=nobody", body).want(404, "not_found")
	g.call("other", "GET", "/v1/events/"+a.text("id"), "").want(404, "not_found")

	keyed := func(key, data string) answer {
		return g.call(key, "POST", "/v1/events", `{"type":"x","data":`+data+`}`, "Idempotency-Key", "once")
	}
	first := keyed("acme", "1").want(202, "")
	if again := keyed("acme", "1.0").want(202, ""); again.text("id") != first.text("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("under the same key: %s", again.body)
	}
	keyed("acme", "2").want(422, "idempotency_mismatch")
	keyed("sibling", "1").want(409, "idempotency_key_in_use")
	for name, body := range map[string]string{
		"id with a full stop": `{"id":"a.b","type":"x","data":1}`, "no type": `{"data":1}`, "no data": `{"type":"x"}`,
		"a type of Pawl's": `{"type":"operation.sold","data":1}`, "one of the installation's": `{"type":"delivery.dead","data":1}`,
	} {
		if a := g.call("acme", "POST", "/v1/events", body); a.status != 400 || a.text("reason") != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	nested := func(depth int) string {
		return `{"type":"x","data":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	}
	g.call("acme", "POST", "/v1/events", nested(63)).want(202, "")
	g.call("acme", "POST", "/v1/events", nested(64)).want(400, "invalid_json")
	g.call("acme", "POST", "/v1/events", `{"type":"x","data":"`+strings.Repeat("x", 256<<10)+`"}`).want(413, "content_too_large")
}

// What came from a source is shown to who may see all of it.
func TestSources(t *testing.T) {
	g := newRig(t)
	g.odd(g.policy("studio"), "whd_1", ended("whd_1"), pawl.UnknownType)
	g.arrivals.Judged("studio", "unknown_type")
	g.arrivals.Unstored("studio", telemetry.Refused, telemetry.Sample{At: time.Unix(1_800_000_001, 0), Reason: "no_match", Status: 401, Size: 5, Digest: "00", Headers: []string{"X"}})
	g.arrivals.Unstored(telemetry.UnknownName, telemetry.Refused, telemetry.Sample{Reason: "unknown_source", Status: 404, Size: -1})

	one := g.call("admin", "GET", "/v1/sources/studio", "").want(200, "")
	for path, want := range map[string]string{
		"kind": "upstream", "trust": "signed", "scheme": "media-v2", "orphans": "park", "owner": "media team",
	} {
		if one.text(path) != want {
			t.Errorf("%s is %q, want %q", path, one.text(path), want)
		}
	}
	counts := one.json["counts"].(map[string]any)
	if fmt.Sprint(counts["verdicts"]) != "map[refused:1 unknown_type:1]" || fmt.Sprint(counts["unstored"]) != "map[no_match:1]" ||
		one.json["unknown_types"] != 1.0 || one.json["parked"] != 0.0 || one.json["last_event_at"] == nil || len(one.json["samples"].([]any)) != 1 {
		t.Errorf("%s", one.body)
	}
	if items := g.call("admin", "GET", "/v1/sources", "").want(200, "").items(); len(items) != 7 || items[6]["kind"] != "unknown" && items[5]["kind"] != "unknown" {
		t.Errorf("%v", items)
	}
	// A tenant that shares a source sees how it is configured.
	shared := g.call("reader", "GET", "/v1/sources/studio", "").want(200, "")
	if shared.json["counts"] != nil || shared.json["samples"] != nil || shared.json["parked"] != nil || shared.text("scheme") != "media-v2" {
		t.Errorf("%s", shared.body)
	}
	if own := g.call("other", "GET", "/v1/sources/private", "").want(200, ""); own.json["parked"] != 0.0 || own.json["counts"] == nil {
		t.Errorf("%s", own.body)
	}
	for _, name := range []string{"private", "hidden", "unknown", "nobody"} {
		g.call("reader", "GET", "/v1/sources/"+name, "").want(404, "not_found")
	}
}
