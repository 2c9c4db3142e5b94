package api

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// erasable is a success with two captured files, of which all deliveries are made.
func (g *rig) erasable(key string) (operation string, op ledger.Operation, files []string) {
	g.t.Helper()
	operation, op = g.filed(key, openBody)
	files = idsOf(g.call("reader", "GET", "/v1/operations/"+operation+"/artifacts", "").want(200, "").items())
	for _, name := range files {
		g.captured(op.ID, name, ledger.ArtifactStored)
	}
	return operation, op, files
}

// TestErasures: who may erase what, and what is then answered.
func TestErasures(t *testing.T) {
	g := newRig(t)
	operation, _, files := g.erasable("a")
	open := g.submit("open", openBody)
	path := "/v1/operations/" + operation
	ask := func(body string) answer { return g.call("admin", "POST", "/v1/erasures", body) }

	ask(`{"operation_id":"`+operation+`"}`).want(400, "invalid_request")
	ask(`{"operation_id":"`+operation+`","tenant":"acme","reason":"r"}`).want(400, "invalid_request")
	ask(`{"operation_id":"op_00000000000000000000000001","reason":"r"}`).want(404, "not_found")
	ask(`{"tenant":"nobody","reason":"r"}`).want(404, "not_found")
	ask(`{"operation_id":"`+open+`","reason":"r"}`).want(409, "not_erasable")
	g.call("full", "POST", "/v1/erasures", `{"tenant":"acme","reason":"r"}`).want(403, "insufficient_scope")

	if a := ask(`{"tenant":"acme","reason":"r","dry_run":true}`).want(200, ""); a.text("state") != "dry_run" || a.json["operations"] != 1.0 || a.json["held_back"] != 1.0 {
		t.Errorf("the dry run says %s", a.body)
	}
	g.call("reader", "GET", "/v1/artifacts/"+files[0], "").want(302, "")
	if a := ask(`{"operation_id":"`+operation+`","reason":"request 4711"}`).want(202, ""); a.text("state") != "erasing" || a.text("requested_at") == "" {
		t.Errorf("it is answered %s", a.body)
	}
	// From the answer on nothing is shown.
	shown := string(g.call("full", "GET", path, "").want(200, "").body)
	if strings.Contains(shown, files[0]) || strings.Contains(shown, `"input"`) || !strings.Contains(shown, `"erased_at"`) {
		t.Errorf("it reads %s", shown)
	}
	g.call("reader", "GET", "/v1/artifacts/"+files[0], "").want(410, "artifact_removed")
	g.call("acme", "POST", path+"/resolve", `{"decision":"failed","from":"succeeded","note":"n"}`).want(409, "erased")
	if a := g.call("admin", "GET", "/v1/audit?action=operation.erase", "").items(); len(a) != 1 || a[0]["detail"] != "request 4711" || a[0]["actor"] == "" {
		t.Errorf("the audit says %v", a)
	}
	g.call("admin", "GET", "/v1/erasures/nobody", "").want(404, "not_found")
	// Again: nothing changes.
	ask(`{"operation_id":"`+operation+`","reason":"request 4711"}`).want(202, "")
	if a := g.call("admin", "GET", "/v1/audit?action=operation.erase", "").items(); len(a) != 1 {
		t.Errorf("%d lines", len(a))
	}
	if a := ask(`{"tenant":"acme","reason":"r"}`).want(202, ""); a.text("state") != "erasing" || a.json["held_back"] != 1.0 {
		t.Errorf("the tenant: %s", a.body)
	}
	if a := g.call("admin", "GET", "/v1/erasures/acme", "").want(200, ""); a.text("requested_at") == "" {
		t.Errorf("the tenant reads %s", a.body)
	}
	if a := g.call("admin", "GET", "/v1/erasures/"+open, "").want(200, ""); a.text("state") != "not_asked" || a.json["held_back"] != 1.0 {
		t.Errorf("the other operation reads %s", a.body)
	}
}

// TestRemovedContentIsNotSentAgain: a delivery whose event holds nothing any more.
func TestRemovedContentIsNotSentAgain(t *testing.T) {
	g := newRig(t)
	g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in"}`).want(201, "")
	_, op, _ := g.erasable("a")
	rows, err := g.driver.Deliveries(t.Context(), store.DeliveryFilter{Operation: op.ID}, store.Page{Limit: 9})
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d deliveries, %v", len(rows), err)
	}
	for _, row := range g.do(ledger.LeaseDeliveries{Header: head(), Endpoint: rows[0].Endpoint, Limit: 9}).([]ledger.Delivery) {
		g.do(ledger.RecordAttempt{Header: head(), Delivery: row.ID, Endpoint: row.Endpoint, Fence: row.Lease, Policy: ledger.DefaultPolicy(), At: 1, Status: 204})
	}
	c := ledger.RemoveContent{Header: head(), Operation: op.ID}
	for _, row := range rows {
		c.Deliveries, c.Events, c.Endpoints = append(c.Deliveries, row.ID), append(c.Events, row.Event), append(c.Endpoints, row.Endpoint)
	}
	g.do(c)
	g.call("acme", "POST", "/v1/deliveries/"+rows[0].ID.Text(pawl.PrefixDelivery)+"/retry", "").want(409, "body_gone")
	e := g.call("reader", "GET", "/v1/events/"+rows[0].Event.Text(pawl.PrefixEvent), "").want(200, "")
	if e.text("content_removed_at") == "" || e.json["data"] != nil {
		t.Errorf("the event reads %s", e.body)
	}
}
