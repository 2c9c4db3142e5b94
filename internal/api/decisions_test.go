package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// priced is an operation at studio of a price in USD.
func priced(amount string) string {
	return `{"upstream":"studio","model":"kling-2","input":{},"expected_cost":{"amount":"` + amount + `","currency":"USD"}}`
}

// refusedKeys holds a call that takes an Idempotency-Key against what all of
// them share: key is used for it, other for something else, and who is another
// API key of the tenant that may make the call.
func (g *rig) refusedKeys(by, who, method, path, body, used, other string) {
	g.t.Helper()
	g.call(by, method, path, body, "Idempotency-Key", `"`).want(400, "idempotency_key_invalid")
	g.call(by, method, path, body, "Idempotency-Key", other).want(422, "idempotency_mismatch")
	g.call(who, method, path, body, "Idempotency-Key", used).want(409, "idempotency_key_in_use")
}

func TestCancel(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", priced("10"))
	path := "/v1/operations/" + id + "/cancel"
	g.call("sibling", "POST", path, "").want(403, "insufficient_scope")
	g.call("other", "POST", path, "").want(404, "not_found")
	a := g.call("acme", "POST", path, "", "Idempotency-Key", "stop").want(202, "")
	if a.text("state") != "canceled" || a.json["cancel"].(map[string]any)["confirmed"] != true || a.header.Get("Retry-After") != "" {
		t.Errorf("%s", a.body)
	}
	again := g.call("acme", "POST", path, "", "Idempotency-Key", "stop").want(200, "")
	if again.text("state") != "canceled" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", again.header, again.body)
	}
	g.refusedKeys("acme", "full", "POST", path, "", "stop", "k")

	running := g.submit("r", openBody)
	g.created("open", ledger.CreateAccepted, "job_1")
	g.call("acme", "POST", "/v1/operations/"+running+"/cancel", "").want(409, "cancel_unsupported")
	up := g.policy("open")
	up.Name = "gone"
	gone := g.do(ledger.Submit{Header: head(), Tenant: "acme", APIKey: g.keys["acme"].ID, Key: "g", Up: up, Input: "{}", Deadline: pawl.Never}).(ledger.Submitted)
	g.do(ledger.LeaseWork{Header: head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, "gone", "acme"), Limit: 1, Up: up})
	g.call("acme", "POST", "/v1/operations/"+gone.Operation.ID.Text(pawl.PrefixOperation)+"/cancel", "").want(409, "upstream_unknown")
}

// endedAs submits an operation of a price and has its provider end it.
func (g *rig) endedAs(key, amount string, end pawl.State) string {
	g.t.Helper()
	id := g.submit(key, priced(amount))
	op := g.created("studio", ledger.CreateAccepted, "job_"+key)
	g.tell(op, key+"-end", end, "")
	return id
}

// tell has the provider call back with an end.
func (g *rig) tell(op ledger.Operation, event string, end pawl.State, cost string) {
	g.t.Helper()
	o := ledger.Observation{Task: op.Task, State: end, Word: end.String(), Progress: -1, Result: `{"ok":true}`}
	if cost != "" {
		amount, err := pawl.ParseAmount(cost)
		if err != nil {
			g.t.Fatal(err)
		}
		o.Cost, o.CostText, o.HasCost, o.Settled = amount, cost, true, ledger.SettledYes
	}
	g.do(ledger.ReceiveEvent{Header: head(), Up: g.policy(op.Upstream), Token: op.ID, Event: event, Obs: o})
}

func TestCorrection(t *testing.T) {
	g := newRig(t)
	id := g.endedAs("k", "10", pawl.Failed)
	path := "/v1/operations/" + id + "/resolve"
	correct := func(members string) answer {
		t.Helper()
		return g.call("acme", "POST", path, `{"from":"failed","note":"they found it",`+members+`}`)
	}
	g.call("acme", "POST", path, `{"decision":"succeeded","note":"n"}`).want(409, "finished")
	g.call("acme", "POST", path, `{"decision":"succeeded","from":"canceled","note":"n"}`).want(409, "finished")
	g.call("acme", "POST", path, `{"decision":"succeeded","from":"failed"}`).want(400, "note_missing")
	for _, body := range []string{
		`{"decision":"succeeded","from":"running","note":"n"}`,
		`{"decision":"succeeded","note":"n","charge":{"amount":"1","currency":"USD"}}`,
		`{"decision":"succeeded","from":"failed","note":"n","charge":{"amount":"-1","currency":"USD"}}`,
		`{"decision":"succeeded","from":"failed","note":"n","charge":{"amount":"x","currency":"USD"}}`,
		`{"decision":"` + strings.Repeat("x", 65) + `","from":"failed","note":"n"}`,
	} {
		g.call("acme", "POST", path, body).want(400, "invalid_request")
	}
	correct(`"decision":"running"`).want(400, "unknown_decision")
	correct(`"decision":"failed"`).want(409, "nothing_to_correct")
	correct(`"decision":"expired","charge":{"amount":"1","currency":"USD"}`).want(422, "charge_refused")
	correct(`"decision":"succeeded","charge":{"amount":"10.000000001","currency":"USD"}`).want(422, "above_reservation")
	correct(`"decision":"succeeded","charge":{"amount":"1","currency":"EUR"}`).want(422, "currency")
	g.submit("rest", priced("91"))
	correct(`"decision":"succeeded","charge":{"amount":"9.1","currency":"USD"}`).want(402, "insufficient_credit")

	const good = `{"decision":"succeeded","from":"failed","note":"they found it","charge":{"amount":"9","currency":"USD"}}`
	a := g.call("acme", "POST", path, good, "Idempotency-Key", "mend").want(200, "")
	cost := a.json["cost"].(map[string]any)
	if a.text("state") != "succeeded" || cost["amount"] != "9.000000000" || cost["settled"] != true || a.json["error"] != nil {
		t.Errorf("%s", a.body)
	}
	if a := g.call("acme", "POST", path, good, "Idempotency-Key", "mend").want(200, ""); a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v", a.header)
	}
	g.refusedKeys("acme", "full", "POST", path, good, "mend", "k")
	events := g.call("reader", "GET", "/v1/events?type=operation.succeeded&operation="+id, "").want(200, "").items()
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	data := g.call("reader", "GET", "/v1/events/"+events[0]["id"].(string), "").want(200, "").json["data"].(map[string]any)
	want := map[string]any{"from": "failed", "actor": g.keys["acme"].ID.Text(pawl.PrefixKey), "reason": "they found it"}
	if fmt.Sprint(data["correction"]) != fmt.Sprint(want) {
		t.Errorf("the event tells %v, want %v", data["correction"], want)
	}
	var kinds []string
	account := g.call("reader", "GET", "/v1/accounts", "").items()[0]["id"].(string)
	for _, e := range g.call("reader", "GET", "/v1/accounts/"+account+"/entries", "").want(200, "").items() {
		if e["operation_id"] == id {
			kinds = append(kinds, e["kind"].(string))
		}
	}
	if got := strings.Join(kinds, " "); got != "charge reserve release reserve" { // newest first
		t.Errorf("the journal has %s", got)
	}

	free := g.submit("free", openBody)
	g.tell(g.created("open", ledger.CreateAccepted, "job_f"), "f", pawl.Failed, "")
	g.call("acme", "POST", "/v1/operations/"+free+"/resolve", `{"decision":"succeeded","from":"failed","note":"n","charge":{"amount":"0","currency":"USD"}}`).want(422, "unmetered")
}

// reviewOf is the path of the one open review of a reason.
func (g *rig) reviewOf(reason string) string {
	g.t.Helper()
	items := g.call("reader", "GET", "/v1/reviews?reason="+reason, "").want(200, "").items()
	if len(items) != 1 {
		items = g.call("admin", "GET", "/v1/reviews?reason="+reason, "").want(200, "").items()
	}
	if len(items) != 1 {
		g.t.Fatalf("%d reviews of reason %s", len(items), reason)
	}
	return "/v1/reviews/" + items[0]["id"].(string)
}

// TestUnconfirmedReview: whose deadline is over, a person decides.
func TestUnconfirmedReview(t *testing.T) {
	g := newRig(t)
	g.submit("a", openBody)
	g.created("open", ledger.CreateAccepted, "job_a")
	g.submit("b", openBody)
	op := g.created("open", ledger.CreateUnknown, "")
	id := op.ID.Text(pawl.PrefixOperation)
	g.call("acme", "POST", "/v1/operations/"+id+"/resolve", `{"decision":"created","task_id":"job_a"}`).want(409, "task_of_another_operation")
	late := head()
	late.Now = op.Deadline + 1
	for _, l := range g.do(ledger.LeaseWork{Header: late, Queue: ledger.WorkQueueID(ledger.ReadQueue, "open", "acme"), Limit: 9, Up: g.policy("open")}).([]ledger.Lease) {
		if l.Operation.ID == op.ID {
			g.do(ledger.Advance{Header: late, Up: g.policy("open"), Operation: op.ID, Fence: l.Fence})
		}
	}
	review := g.reviewOf("unconfirmed")
	g.call("acme", "POST", review+"/assign", `{"owner":"a\nb"}`).want(400, "invalid_request")
	g.call("other", "POST", review+"/assign", `{"owner":"bea"}`).want(404, "not_found")
	if a := g.call("acme", "POST", review+"/assign", `{"owner":"bea"}`).want(200, ""); a.text("owner") != "bea" {
		t.Errorf("%s", a.body)
	}
	if a := g.call("reader", "GET", review, "").want(200, ""); a.text("owner") != "bea" || a.json["closed_at"] != nil {
		t.Errorf("%s", a.body)
	}
	defer func() { g.call("acme", "POST", review+"/assign", `{"owner":"ada"}`).want(409, "already_decided") }()
	path := review + "/resolve"
	g.call("acme", "POST", path, `{"note":"n"}`).want(400, "invalid_request")
	g.call("acme", "POST", path, `{"decision":"created"}`).want(400, "task_id_missing")
	g.call("acme", "POST", path, `{"decision":"created","task_id":"job_a"}`).want(409, "task_of_another_operation")
	g.call("acme", "POST", path, `{"decision":"created","task_id":"job_b","note":"seen"}`, "Idempotency-Key", "d").want(200, "")
	again := g.call("acme", "POST", path, `{"decision":"created","task_id":"job_b","note":"seen"}`, "Idempotency-Key", "d").want(200, "")
	if again.text("note") != "seen" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", again.header, again.body)
	}
	g.refusedKeys("acme", "full", "POST", path, `{"decision":"created","task_id":"job_b","note":"seen"}`, "d", "a")
}

func TestOrphanReview(t *testing.T) {
	g := newRig(t)
	got := g.do(ledger.ReceiveEvent{
		Header: head(), Up: g.policy("open"), Event: "e",
		Obs: ledger.Observation{Task: "job_x", State: pawl.Succeeded, Word: "succeeded", Progress: -1, Result: `{"ok":true}`},
	}).(ledger.Received)
	g.do(ledger.OrphanOverdue{Header: head(), Event: got.Event})
	path := g.reviewOf("orphan") + "/resolve"
	attach := func(to string) answer {
		t.Helper()
		return g.call("admin", "POST", path, `{"decision":"attach","operation_id":"`+to+`"}`)
	}
	running := g.submit("r", openBody)
	g.created("open", ledger.CreateAccepted, "job_r")
	waits := g.submit("w", openBody)
	elsewhere := g.submit("e", priced("1"))
	g.call("admin", "POST", path, `{"decision":"attach"}`).want(400, "operation_id_missing")
	attach("op_nothing").want(404, "not_found")
	attach(running).want(409, "task_known")
	attach(waits).want(409, "never_created")
	attach(elsewhere).want(409, "other_upstream")
	g.created("open", ledger.CreateUnknown, "")
	if a := attach(waits).want(200, ""); a.text("decision") != "attach" {
		t.Errorf("%s", a.body)
	}
	if a := g.call("reader", "GET", "/v1/operations/"+waits, "").want(200, ""); a.text("state") != "succeeded" || a.text("task_id") != "job_x" {
		t.Errorf("%s", a.body)
	}
}

func TestAcceptedLateSuccess(t *testing.T) {
	g := newRig(t)
	id := g.endedAs("k", "10", pawl.Expired)
	opID, err := pawl.ParseID(pawl.PrefixOperation, id)
	if err != nil {
		t.Fatal(err)
	}
	g.tell(ledger.Operation{ID: opID, Upstream: "studio", Task: "job_k"}, "late", pawl.Succeeded, "4")
	path := g.reviewOf("late_success")
	reported := g.call("reader", "GET", path, "").want(200, "").json["reported"].(map[string]any)
	if cost := reported["cost"].(map[string]any); reported["state"] != "succeeded" || cost["amount"] != "4.000000000" || cost["settled"] != true {
		t.Errorf("%v", reported)
	}
	rest := g.submit("rest", priced("97"))
	g.call("acme", "POST", path+"/resolve", `{"decision":"accept"}`).want(402, "insufficient_credit")
	g.call("acme", "POST", "/v1/operations/"+rest+"/cancel", "").want(202, "")
	g.call("acme", "POST", path+"/resolve", `{"decision":"accept","note":"it is fine"}`).want(200, "")
	if a := g.call("reader", "GET", "/v1/operations/"+id, "").want(200, ""); a.text("state") != "succeeded" || a.json["result"] == nil {
		t.Errorf("%s", a.body)
	}
}

// TestDeliveryRetryOnce: the key of a retry by hand (7-rules R52), and what is
// not sent again.
func TestDeliveryRetryOnce(t *testing.T) {
	g := newRig(t)
	endpoint, _, row := g.deliverTo()
	g.attempt(row, 400)
	path := "/v1/deliveries/" + row.ID.Text(pawl.PrefixDelivery) + "/retry"
	pause := func() {
		t.Helper()
		etag := g.call("acme", "GET", "/v1/endpoints/"+endpoint, "").want(200, "").header.Get("ETag")
		g.call("acme", "POST", "/v1/endpoints/"+endpoint+"/pause", "", "If-Match", etag).want(200, "")
	}
	pause()
	g.call("acme", "POST", path, "").want(409, "endpoint_disabled")
	g.call("acme", "POST", g.reviewOf("dead_letter")+"/resolve", `{"decision":"retry"}`).want(409, "endpoint_disabled")
	etag := g.call("acme", "GET", "/v1/endpoints/"+endpoint, "").header.Get("ETag")
	g.call("acme", "POST", "/v1/endpoints/"+endpoint+"/enable", "", "If-Match", etag).want(200, "")

	g.call("acme", "POST", path, "", "Idempotency-Key", "again").want(202, "")
	g.attempt(row, 400)
	a := g.call("acme", "POST", path, "", "Idempotency-Key", "again").want(202, "")
	if a.header.Get("Idempotency-Replayed") != "true" || a.text("state") != "dead" {
		t.Errorf("one key, one send: %s", a.body)
	}
	g.refusedKeys("acme", "full", "POST", path, "", "again", "for-delivery")

	// A callback endpoint that lives again: what was skipped has lost its place.
	const body = `{"upstream":"open","model":"m","input":{},"callback_url":"https://hooks.example.com/cb"}`
	g.submit("cb", body)
	g.created("open", ledger.CreateAccepted, "job_cb")
	callback := ledger.CallbackEndpointID(g.keys["acme"].ID, "https://hooks.example.com/cb", defaultScheme)
	g.do(ledger.ChangeEndpoint{Header: head(), ID: callback, Change: ledger.EndpointChange{Delete: true}})
	g.submit("cb2", body)
	rows, err := g.driver.Deliveries(t.Context(), store.DeliveryFilter{Endpoint: callback}, store.Page{Limit: 9})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d deliveries, %v", len(rows), err)
	}
	g.call("acme", "POST", "/v1/deliveries/"+rows[0].ID.Text(pawl.PrefixDelivery)+"/retry", "").want(409, "skipped")
}

// TestAccounts: a tenant may have several, and the one in a price's currency
// pays (7-rules R27).
func TestAccounts(t *testing.T) {
	g := newRig(t)
	g.key("admin2", "ops", ledger.ScopeAdmin)
	g.submit("k", priced("1"))
	euros := `{"upstream":"studio","model":"kling-2","input":{},"expected_cost":{"amount":"2","currency":"EUR"}}`
	g.call("acme", "POST", "/v1/operations", euros, "Idempotency-Key", "e").want(422, "currency")

	const path = "/v1/accounts?tenant=acme"
	g.call("acme", "POST", "/v1/accounts", `{"currency":"EUR"}`).want(403, "insufficient_scope")
	g.call("admin", "POST", "/v1/accounts?tenant=nobody", `{"currency":"EUR"}`).want(404, "not_found")
	for _, body := range []string{`{}`, `{"currency":"eur"}`, `{"currency":"EUR","credit":"1"}`} {
		if a := g.call("admin", "POST", path, body); a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	made := g.call("admin", "POST", path, `{"currency":"EUR"}`, "Idempotency-Key", "a").want(201, "")
	again := g.call("admin", "POST", path, `{"currency":"EUR"}`, "Idempotency-Key", "a").want(201, "")
	if made.text("tenant") != "acme" || made.text("balance") != "0.000000000" || made.header.Get("Location") != "/v1/accounts/"+made.text("id") ||
		again.text("id") != made.text("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", made.body, again.body)
	}
	g.call("admin", "POST", path, `{"currency":"JPY"}`, "Idempotency-Key", "a").want(422, "idempotency_mismatch")
	g.call("admin2", "POST", path, `{"currency":"EUR"}`, "Idempotency-Key", "a").want(409, "idempotency_key_in_use")

	g.call("acme", "POST", "/v1/operations", euros, "Idempotency-Key", "e").want(402, "insufficient_credit")
	credit := "/v1/accounts/" + made.text("id") + "/credit"
	g.call("admin", "POST", credit, `{"amount":"5","currency":"EUR"}`, "Idempotency-Key", "c").want(200, "")
	g.call("admin2", "POST", credit, `{"amount":"5","currency":"EUR"}`, "Idempotency-Key", "c").want(409, "idempotency_key_in_use")
	g.call("admin", "POST", credit, `{"amount":"9223372036"}`, "Idempotency-Key", "max").want(422, "amount_range")
	g.call("acme", "POST", "/v1/operations", euros, "Idempotency-Key", "e").want(202, "")
	if a := g.call("reader", "GET", "/v1/accounts/"+made.text("id"), "").want(200, ""); a.text("reserved") != "2.000000000" || a.text("available") != "3.000000000" {
		t.Errorf("%s", a.body)
	}
	if items := g.call("reader", "GET", "/v1/accounts", "").want(200, "").items(); len(items) != 2 {
		t.Errorf("%v", items)
	}
}
