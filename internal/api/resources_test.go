package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func TestOperationSearch(t *testing.T) {
	g := newRig(t)
	one := g.submit("1", `{"upstream":"open","model":"m","input":{},"metadata":{"order":"7","a b":"c"},"correlation_id":"c1"}`)
	g.created("open", ledger.CreateAccepted, "job_9")
	two := g.submit("2", `{"upstream":"studio","model":"free","input":{}}`)
	for query, want := range map[string][]string{
		"":                             {two, one},
		"?state=running":               {one},
		"?state=pending":               {two},
		"?unfinished=true":             {two, one},
		"?upstream=studio":             {two},
		"?task_id=job_9":               {one},
		"?correlation_id=c1":           {one},
		"?metadata.order=7":            {one},
		"?metadata.a%20b=c":            {one},
		"?metadata.order=8":            {},
		"?state=running&upstream=open": {one},
		"?tenant=acme":                 {two, one},
	} {
		items := g.call("reader", "GET", "/v1/operations"+query, "").want(200, "").items()
		if len(items) != len(want) {
			t.Errorf("%s: %d items, want %d", query, len(items), len(want))
			continue
		}
		for i, item := range items {
			if item["id"] != want[i] {
				t.Errorf("%s: item %d is %v, want %s", query, i, item["id"], want[i])
			}
		}
	}
	if md := g.call("reader", "GET", "/v1/operations?task_id=job_9", "").items()[0]["metadata"].(map[string]any); md["order"] != "7" {
		t.Errorf("%v", md)
	}
	for _, query := range []string{"?state=nope", "?unfinished=1", "?colour=red", "?state=running&state=pending", "?metadata.=x", "?metadata.a=1&metadata.b=2", "?idempotency_key=1&state=pending", "?%zz", "?page_size=x"} {
		g.call("reader", "GET", "/v1/operations"+query, "").want(400, "invalid_query")
	}
}

func TestTimeline(t *testing.T) {
	g := newRig(t)
	_, operation, row := g.deliverTo()
	g.attempt(row, 200)
	items := g.call("reader", "GET", "/v1/operations/"+operation+"/timeline", "").want(200, "").items()
	var kinds []string
	last := ""
	for _, item := range items {
		kinds = append(kinds, item["kind"].(string))
		if at := item["at"].(string); at < last {
			t.Errorf("%s after %s", at, last)
		} else {
			last = at
		}
	}
	line := strings.Join(kinds, " ")
	if !strings.HasPrefix(line, "submitted create ") || !strings.HasSuffix(line, " attempt") || !strings.Contains(line, "event") {
		t.Errorf("%s", line)
	}
	if end := items[len(items)-1]; end["status"] != 200.0 || end["delivery_id"] != row.ID.Text(pawl.PrefixDelivery) || end["attempt"] != 1.0 {
		t.Errorf("%v", end)
	}
	if first := items[0]; first["version"] != 1.0 || first["state"] != "pending" || first["actor"] != g.keys["acme"].ID.Text(pawl.PrefixKey) {
		t.Errorf("%v", first)
	}
	g2 := g.submit("paid", `{"upstream":"studio","model":"kling-2","input":{}}`)
	for _, item := range g.call("reader", "GET", "/v1/operations/"+g2+"/timeline", "").want(200, "").items() {
		if item["kind"] == "money" && item["reason"] == "reserve" && item["amount"].(map[string]any)["amount"] == "0.150000000" {
			return
		}
	}
	t.Error("the reservation is not in the timeline")
}

func TestReconcileAndResolve(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	path := "/v1/operations/" + id
	g.call("acme", "POST", path+"/reconcile", "").want(409, "nothing_to_read")
	g.call("acme", "POST", path+"/resolve", `{"decision":"failed"}`).want(409, "not_unconfirmed")
	if op := g.created("open", ledger.CreateUnknown, ""); op.State != pawl.Unconfirmed {
		t.Fatalf("%s", op.State)
	}
	g.call("acme", "POST", path+"/resolve", ``).want(400, "invalid_request")
	g.call("acme", "POST", path+"/resolve", `{"decision":"maybe"}`).want(400, "unknown_decision")
	g.call("acme", "POST", path+"/resolve", `{"decision":"created"}`).want(400, "task_id_missing")
	g.call("sibling", "POST", path+"/resolve", `{"decision":"failed"}`).want(403, "insufficient_scope")
	a := g.call("acme", "POST", path+"/resolve", `{"decision":"created","task_id":"job_5","note":"seen in their console"}`).want(200, "")
	if a.text("state") != "running" || a.text("task_id") != "job_5" {
		t.Errorf("%s", a.body)
	}
	if a := g.call("acme", "POST", path+"/reconcile", "").want(202, ""); a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
}

func TestReviews(t *testing.T) {
	g := newRig(t)
	_, _, row := g.deliverTo()
	g.attempt(row, 400)
	item := g.call("reader", "GET", "/v1/reviews", "").want(200, "").items()[0]
	for _, member := range []string{"id", "reason", "event_id", "opened_at"} {
		if item[member] == nil {
			t.Errorf("%s is missing: %v", member, item)
		}
	}
	path := "/v1/reviews/" + item["id"].(string)
	if a := g.call("reader", "GET", path, "").want(200, ""); a.text("reason") != "dead_letter" || a.json["meaning"] == nil {
		t.Errorf("%s", a.body)
	}
	g.call("acme", "POST", path+"/resolve", `{"decision":"maybe"}`).want(400, "unknown_decision")
	a := g.call("acme", "POST", path+"/resolve", `{"decision":"retry","note":"fixed"}`).want(200, "")
	if a.text("decision") != "retry" || a.text("closed_at") == "" || a.text("decided_by") != g.keys["acme"].ID.Text(pawl.PrefixKey) {
		t.Errorf("%s", a.body)
	}
	g.call("acme", "POST", path+"/resolve", `{"decision":"retry"}`).want(409, "already_decided")
	if items := g.call("reader", "GET", "/v1/reviews?open=true", "").want(200, "").items(); len(items) != 0 {
		t.Errorf("%v", items)
	}
}

func TestCredit(t *testing.T) {
	g := newRig(t)
	id := g.call("acme", "GET", "/v1/accounts", "").items()[0]["id"].(string)
	path := "/v1/accounts/" + id + "/credit"
	g.call("acme", "POST", path, `{"amount":"10.00"}`, "Idempotency-Key", "c").want(403, "insufficient_scope")
	g.call("admin", "POST", path, `{"amount":"10.00"}`).want(400, "idempotency_key_missing")
	a := g.call("admin", "POST", path, `{"amount":"10.00","currency":"USD","note":"invoice 7"}`, "Idempotency-Key", "c").want(200, "")
	if a.text("balance") != "110.000000000" || a.text("available") != "110.000000000" {
		t.Errorf("%s", a.body)
	}
	again := g.call("admin", "POST", path, `{"amount":"10.00"}`, "Idempotency-Key", "c").want(200, "")
	if again.text("balance") != "110.000000000" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", again.header, again.body)
	}
	g.call("admin", "POST", path, `{"amount":"11"}`, "Idempotency-Key", "c").want(422, "idempotency_mismatch")
	g.call("admin", "POST", path, `{"amount":"1","currency":"EUR"}`, "Idempotency-Key", "d").want(422, "currency")
	g.call("admin", "POST", path, `{"amount":"0"}`, "Idempotency-Key", "d").want(400, "invalid_request")
	g.call("admin", "POST", path, `{"amount":1}`, "Idempotency-Key", "d").want(400, "invalid_json")
	// 7-rules R30: down to what is available and no further.
	g.call("admin", "POST", path, `{"amount":"-110.000000001"}`, "Idempotency-Key", "d").want(422, "insufficient_credit")
	if a := g.call("admin", "POST", path, `{"amount":"-110"}`, "Idempotency-Key", "d").want(200, ""); a.text("balance") != "0.000000000" {
		t.Errorf("%s", a.body)
	}
	entries := g.call("reader", "GET", "/v1/accounts/"+id+"/entries", "").want(200, "").items()
	if len(entries) != 3 || entries[1]["note"] != "invoice 7" || entries[1]["amount"].(map[string]any)["amount"] != "10.000000000" || entries[0]["from"] != "available" {
		t.Errorf("%v", entries)
	}
}

func TestKeys(t *testing.T) {
	g := newRig(t)
	g.call("acme", "POST", "/v1/keys", `{"scopes":["read"]}`).want(403, "insufficient_scope")
	for _, body := range []string{`{}`, `{"scopes":[]}`, `{"scopes":["root"]}`, `{"scopes":["read","read"]}`, `{"tenant":"A B","scopes":["read"]}`, `{"scopes":["read"],"expires_at":"2020-01-01T00:00:00Z"}`} {
		g.call("admin", "POST", "/v1/keys", body).want(400, "invalid_request")
	}
	a := g.call("admin", "POST", "/v1/keys", `{"tenant":"fresh","name":"ci","scopes":["submit","read"]}`).want(201, "")
	secret := a.text("secret")
	if len(secret) != len("pawl_sk_")+43 || !strings.HasPrefix(secret, "pawl_sk_") || !strings.HasPrefix(a.text("webhook_secret"), "whsec_") || !strings.HasPrefix(a.text("id"), "key_") {
		t.Fatalf("%s", a.body)
	}
	g.secrets["ci"] = secret
	who := g.call("ci", "GET", "/v1/whoami", "").want(200, "")
	if who.text("tenant") != "fresh" || who.text("name") != "ci" || len(who.json["scopes"].([]any)) != 2 {
		t.Errorf("%s", who.body)
	}
	g.submitAs("ci")
	list := g.call("admin", "GET", "/v1/keys?tenant=fresh", "").want(200, "")
	if len(list.items()) != 1 || strings.Contains(string(list.body), "pawl_sk_") || strings.Contains(string(list.body), "whsec_") {
		t.Errorf("%s", list.body)
	}
	row, err := g.driver.APIKeys(t.Context(), storeFilter("fresh"), onePage)
	if err != nil || row[0].Hash != sha256.Sum256([]byte(secret)) {
		t.Errorf("the stored hash is not the SHA-256 of the secret, %v", err)
	}
	g.call("admin", "DELETE", "/v1/keys/"+a.text("id"), "").want(204, "")
	g.call("ci", "GET", "/v1/whoami", "").want(401, "unauthenticated")
}

func (g *rig) submitAs(key string) {
	g.t.Helper()
	g.call(key, "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(202, "")
}

func TestTenants(t *testing.T) {
	g := newRig(t)
	g.call("acme", "GET", "/v1/tenants", "").want(403, "insufficient_scope")
	a := g.call("admin", "POST", "/v1/tenants", `{"name":"new","account":{"currency":"EUR","credit":"5.5"}}`).want(201, "")
	if !strings.HasPrefix(a.text("account_id"), "acct_") {
		t.Errorf("%s", a.body)
	}
	g.call("admin", "POST", "/v1/tenants", `{"name":"new","account":{"currency":"EUR","credit":"5.5"}}`).want(200, "")
	accounts := g.call("admin", "GET", "/v1/accounts?tenant=new", "").want(200, "").items()
	if len(accounts) != 1 || accounts[0]["balance"] != "5.500000000" || accounts[0]["currency"] != "EUR" {
		t.Errorf("%v", accounts)
	}
	for _, body := range []string{`{}`, `{"name":"_x"}`, `{"name":"x","account":{}}`, `{"name":"x","account":{"currency":"EUR","credit":"-1"}}`} {
		g.call("admin", "POST", "/v1/tenants", body).want(400, "invalid_request")
	}
	first := g.call("admin", "GET", "/v1/tenants?page_size=2", "").want(200, "")
	rest := g.call("admin", "GET", "/v1/tenants?page_token="+first.text("next_page_token"), "").want(200, "")
	var names []string
	for _, item := range append(first.items(), rest.items()...) {
		names = append(names, item["name"].(string))
	}
	if got := strings.Join(names, " "); got != "acme new ops other" {
		t.Errorf("%s", got)
	}
}

func TestUpstreamsAndSources(t *testing.T) {
	g := newRig(t)
	a := g.call("reader", "GET", "/v1/upstreams", "").want(200, "")
	items := a.items()[1:] // "capped" is for limits
	if len(items) != 2 || items[0]["name"] != "open" || items[1]["name"] != "studio" || strings.Contains(string(a.body), "studio.example.com") {
		t.Fatalf("%s", a.body)
	}
	models := items[1]["models"].([]any)
	if m := models[1].(map[string]any); len(models) != 2 || m["name"] != "kling-2" || m["price"] != "0.150000000" {
		t.Errorf("%v", models)
	}
	if items := g.call("other", "GET", "/v1/upstreams", "").want(200, "").items(); len(items) != 4 {
		t.Errorf("%v", items)
	}
	sources := g.call("reader", "GET", "/v1/sources", "").want(200, "")
	if len(sources.items()) != 4 || strings.Contains(string(sources.body), "hidden") {
		t.Errorf("%s", sources.body)
	}
}

func TestEvents(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", `{"upstream":"studio","model":"free","input":{}}`)
	g.created("studio", ledger.CreateAccepted, "job_1")
	body := "{\"raw\": \x00true}"
	g.do(ledger.ReceiveEvent{
		Header: head(), Up: g.policy("studio"), Event: "whd_1", Obs: ledger.Observation{Task: "job_1", Word: "succeeded", State: pawl.Succeeded, Version: -1, Progress: -1},
		Body: body, Headers: `{"content-type":"application/json"}`,
	})
	in := g.call("reader", "GET", "/v1/events?direction=inbound&verdict=applied&task_id=job_1&source=studio&operation="+id, "").want(200, "").items()
	if len(in) != 1 || in[0]["verdict"] != "applied" || in[0]["external_id"] != "whd_1" || in[0]["operation_id"] != id {
		t.Fatalf("%v", in)
	}
	path := "/v1/events/" + in[0]["id"].(string)
	if a := g.call("reader", "GET", path, "").want(200, ""); a.json["body"] != nil || a.json["headers"] != nil {
		t.Errorf("raw bytes without the scope payloads: %s", a.body)
	}
	a := g.call("payloads", "GET", path, "").want(200, "")
	raw, err := base64.StdEncoding.DecodeString(a.text("body"))
	if err != nil || string(raw) != body || a.json["headers"].(map[string]any)["content-type"] != "application/json" {
		t.Errorf("%s", a.body)
	}
	if line := g.call("reader", "GET", "/v1/audit", "").items()[0]; line["action"] != "event.body" || line["subject"] != in[0]["id"] {
		t.Errorf("%v", line)
	}
	out := g.call("reader", "GET", "/v1/events?direction=outbound&type=operation.succeeded", "").want(200, "").items()
	if len(out) != 1 || out[0]["version"] != 3.0 {
		t.Fatalf("%v", out)
	}
	one := g.call("reader", "GET", "/v1/events/"+out[0]["id"].(string), "").want(200, "")
	if data := one.json["data"].(map[string]any); data["id"] != id || data["state"] != "succeeded" {
		t.Errorf("%s", one.body)
	}
	g.call("reader", "GET", "/v1/events?verdict=nope", "").want(400, "invalid_query")
	g.call("reader", "GET", "/v1/events?endpoint=x&after=1", "").want(400, "invalid_query")
}

// Old operations are found by when they were submitted, over any number of
// pages.
func TestOperationsCreatedBefore(t *testing.T) {
	g := newRig(t)
	var ids []string
	for i := range 5 {
		ids = append([]string{g.submit(fmt.Sprint("old-", i), openBody)}, ids...)
	}
	time.Sleep(2 * time.Millisecond)
	moment := time.Now().UTC().Format(time.RFC3339Nano)
	time.Sleep(2 * time.Millisecond)
	g.submit("new", openBody)
	var got []string
	path := "/v1/operations?unfinished=true&page_size=2&created_before=" + moment
	for next := path; next != ""; {
		a := g.call("reader", "GET", next, "").want(200, "")
		for _, item := range a.items() {
			got = append(got, item["id"].(string))
		}
		next = ""
		if token := a.text("next_page_token"); token != "" {
			next = path + "&page_token=" + token
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("%v, want %v", got, ids)
	}
	if items := g.call("reader", "GET", "/v1/operations?created_before=1969-01-01T00:00:00Z", "").want(200, "").items(); len(items) != 0 {
		t.Errorf("%d operations before 1969", len(items))
	}
	g.call("reader", "GET", "/v1/operations?created_before=yesterday", "").want(400, "invalid_query")
	g.call("reader", "GET", "/v1/operations?idempotency_key=old-1&created_before="+moment, "").want(400, "invalid_query")
}

// An upstream that is not configured any more is shown to those whose
// operations wait for it, and to nobody else.
func TestRemovedUpstream(t *testing.T) {
	g := newRig(t)
	made := g.do(ledger.Submit{
		Header: head(), Tenant: "acme", APIKey: g.keys["acme"].ID, Key: "k", Window: time.Hour, Up: ledger.Upstream{Name: "gone"}, Model: "m", Input: "{}",
		Deadline: pawl.TimeOf(time.Now().Add(time.Hour)),
	}).(ledger.Submitted)
	names := func(key, query string) (removed []string) {
		t.Helper()
		for _, item := range g.call(key, "GET", "/v1/upstreams"+query, "").want(200, "").items() {
			if item["removed"] == true {
				removed = append(removed, item["name"].(string))
			}
		}
		return removed
	}
	for _, c := range []struct {
		key, query string
		want       []string
	}{{"reader", "", []string{"gone"}}, {"admin", "", []string{"gone"}}, {"admin", "?tenant=acme", []string{"gone"}}, {"other", "", nil}, {"admin", "?tenant=other", nil}} {
		if got := names(c.key, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s%s sees %v, want %v", c.key, c.query, got, c.want)
		}
	}
	g.call("acme", "POST", "/v1/operations/"+made.Operation.ID.Text(pawl.PrefixOperation)+"/reconcile", "").want(409, "upstream_unknown")
}

// TestTimelineIsBounded holds that an operation with more lines than one answer
// has is told in several, which miss nothing.
func TestTimelineIsBounded(t *testing.T) {
	g := newRig(t)
	id := g.submit("a", openBody)
	op, err := pawl.ParseID(pawl.PrefixOperation, id)
	if err != nil {
		t.Fatal(err)
	}
	const lines = 2500
	rows := &ledger.Rows{}
	for n := range lines {
		at := pawl.TimeOf(time.Now()).Add(time.Duration(n) * time.Second)
		rows.History = append(rows.History, ledger.History{Operation: op, At: at, ID: pawl.NewID(at, uint64(n)), Kind: "read", Detail: fmt.Sprint("line ", n)})
	}
	if err := g.driver.Update(t.Context(), store.NewID(), func(tx store.Tx) error { return tx.Save(rows) }); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	path, answers := "/v1/operations/"+id+"/timeline", 0
	for more := path; more != "" && answers < 9; answers++ {
		var got struct {
			Items   []struct{ Detail string }
			Earlier string
		}
		if err := json.Unmarshal(g.call("acme", "GET", more, "").want(200, "").body, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Items) > 1000 {
			t.Fatalf("%d lines in one answer", len(got.Items))
		}
		for _, line := range got.Items {
			seen[line.Detail] = true
		}
		if more = ""; got.Earlier != "" {
			more = path + "?until=" + url.QueryEscape(got.Earlier)
		}
	}
	for n := range lines {
		if !seen[fmt.Sprint("line ", n)] {
			t.Fatalf("line %d is missing after %d answers", n, answers)
		}
	}
}
