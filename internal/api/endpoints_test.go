package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

func TestEndpointLife(t *testing.T) {
	g := newRig(t)
	a := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in","types":["operation.succeeded"],"policy":{"attempts":3,"timeout":"5s","retry":[422],"dead":[501],"gone":[404]}}`).want(201, "")
	id, secret := a.text("id"), a.text("secret")
	if !strings.HasPrefix(secret, "whsec_") || a.header.Get("ETag") != `"1"` || a.header.Get("Location") != "/v1/endpoints/"+id || a.text("scheme") != "standard-webhooks" {
		t.Errorf("%v %s", a.header, a.body)
	}
	path := "/v1/endpoints/" + id
	got := g.call("reader", "GET", path, "").want(200, "")
	policy, _ := got.json["policy"].(map[string]any)
	if got.text("secret") != "" || got.header.Get("ETag") != `"1"` || policy["attempts"] != 3.0 || policy["timeout"] != "5s" || fmt.Sprint(policy["retry"], policy["dead"], policy["gone"]) != "[422] [501] [404]" {
		t.Errorf("%v %s", got.header, got.body)
	}
	g.call("reader", "GET", path, "", "If-None-Match", `"7", W/"1"`).want(304, "")
	g.call("reader", "GET", path, "", "If-None-Match", `"2"`).want(200, "")

	g.call("acme", "PATCH", path, `{"owner":"ops"}`).want(428, "if_match_missing")
	g.call("acme", "PATCH", path, `{"owner":"ops"}`, "If-Match", `"2"`).want(412, "version")
	g.call("acme", "PATCH", path, `{"owner":"ops"}`, "If-Match", `W/"1"`).want(412, "version")
	patched := g.call("acme", "PATCH", path, `{"owner":"ops","policy":{}}`, "If-Match", `"1"`, "Content-Type", "application/merge-patch+json").want(200, "")
	if patched.header.Get("ETag") != `"2"` || patched.text("owner") != "ops" || patched.json["policy"] != nil || patched.text("url") != "https://hooks.example.com/in" {
		t.Errorf("%v %s", patched.header, patched.body)
	}
	g.call("acme", "PATCH", path, `{"policy":{"gone":[399]}}`, "If-Match", `"2"`).want(400, "invalid_request")
	g.call("acme", "PATCH", path, `{"url":"https://192.168.1.1/"}`, "If-Match", `"2"`).want(400, "url_refused")
	g.call("acme", "PATCH", path, `{"types":["operation.nope"]}`, "If-Match", `"2"`).want(400, "invalid_request")
	g.call("acme", "PATCH", path, `{"secret":"x"}`, "If-Match", `"2"`).want(400, "invalid_json")

	rotated := g.call("acme", "POST", path+"/rotate-secret", `{"overlap":"1h"}`).want(200, "")
	if s := rotated.text("secret"); s == secret || !strings.HasPrefix(s, "whsec_") || rotated.text("former_secret_until") == "" {
		t.Errorf("%s", rotated.body)
	}
	g.call("acme", "POST", path+"/rotate-secret", `{"overlap":"721h"}`).want(400, "invalid_request")
	g.call("acme", "POST", path+"/rotate-secret", `{"secret":"short"}`).want(400, "invalid_request")

	if a := g.call("acme", "POST", path+"/pause", "").want(200, ""); a.json["disabled"] != true || a.text("disabled_reason") != "paused" {
		t.Errorf("%s", a.body)
	}
	if a := g.call("acme", "POST", path+"/enable", "{}").want(200, ""); a.json["disabled"] != false {
		t.Errorf("%s", a.body)
	}
	g.call("acme", "DELETE", path, "", "If-Match", `"1"`).want(412, "version")
	if a := g.call("acme", "DELETE", path, "").want(204, ""); len(a.body) != 0 {
		t.Errorf("204 with a body: %s", a.body)
	}
	g.call("acme", "GET", path, "").want(404, "not_found")
}

// An endpoint with message signatures has room for two secrets (7-rules R39).
func TestEndpointWithMessageSignatures(t *testing.T) {
	g := newRig(t)
	a := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in","scheme":"rfc9421"}`).want(201, "")
	if !strings.HasPrefix(a.text("secret"), "whsec_") || a.text("scheme") != "rfc9421" {
		t.Errorf("%s", a.body)
	}
	rotated := g.call("acme", "POST", "/v1/endpoints/"+a.text("id")+"/rotate-secret", `{"overlap":"1h"}`).want(200, "")
	if rotated.text("former_secret_until") == "" || rotated.text("secret") == a.text("secret") {
		t.Errorf("%s", rotated.body)
	}
}

func TestEndpointRefusals(t *testing.T) {
	g := newRig(t)
	for name, c := range map[string]struct {
		body   string
		status int
		reason string
	}{
		"no url":              {`{}`, 400, "invalid_request"},
		"metadata address":    {`{"url":"http://169.254.169.254/"}`, 400, "url_refused"},
		"private":             {`{"url":"https://10.1.2.3/"}`, 400, "url_refused"},
		"loopback allowed":    {`{"url":"http://127.0.0.1:9/x"}`, 201, ""},
		"userinfo":            {`{"url":"https://u:p@example.com/"}`, 400, "url_refused"},
		"plain http":          {`{"url":"http://93.184.216.34/"}`, 400, "url_refused"},
		"unknown type":        {`{"url":"https://a.example.com/","types":["operation.x"]}`, 400, "invalid_request"},
		"type twice":          {`{"url":"https://a.example.com/","types":["operation.failed","operation.failed"]}`, 400, "invalid_request"},
		"unknown scheme":      {`{"url":"https://a.example.com/","scheme":"rot13"}`, 400, "invalid_request"},
		"body-timestamp":      {`{"url":"https://a.example.com/","scheme":"body-timestamp","secret":"any text"}`, 201, ""},
		"secret unfit":        {`{"url":"https://a.example.com/","secret":"any text"}`, 400, "invalid_request"},
		"policy attempts":     {`{"url":"https://a.example.com/","policy":{"attempts":51}}`, 400, "invalid_request"},
		"policy timeout":      {`{"url":"https://a.example.com/","policy":{"timeout":"61s"}}`, 400, "invalid_request"},
		"policy unknown":      {`{"url":"https://a.example.com/","policy":{"retries":5}}`, 400, "invalid_json"},
		"description long":    {`{"url":"https://a.example.com/","description":"` + strings.Repeat("d", 1001) + `"}`, 400, "invalid_request"},
		"complete_within":     {`{"url":"https://a.example.com/","complete_within":"1m"}`, 201, ""},
		"completes at once":   {`{"url":"https://a.example.com/","complete_within":"999ms"}`, 400, "invalid_request"},
		"completes late":      {`{"url":"https://a.example.com/","complete_within":"721h"}`, 400, "invalid_request"},
		"completes never":     {`{"url":"https://a.example.com/","complete_within":"soon"}`, 400, "invalid_request"},
		"original":            {`{"url":"https://a.example.com/","content":"original"}`, 201, ""},
		"other content":       {`{"url":"https://a.example.com/","content":"raw"}`, 400, "invalid_request"},
		"senders' types":      {`{"url":"https://a.example.com/","types":["orders/create","order:paid","std.orders/create"]}`, 201, ""},
		"all types":           {`{"url":"https://a.example.com/","types":["*"]}`, 400, "invalid_request"},
		"type with pattern":   {`{"url":"https://a.example.com/","types":["orders/*"]}`, 400, "invalid_request"},
		"type with comma":     {`{"url":"https://a.example.com/","types":["a,b"]}`, 400, "invalid_request"},
		"type with space":     {`{"url":"https://a.example.com/","types":["a b"]}`, 400, "invalid_request"},
		"empty type":          {`{"url":"https://a.example.com/","types":[""]}`, 400, "invalid_request"},
		"type not of ASCII":   {`{"url":"https://a.example.com/","types":["é"]}`, 400, "invalid_request"},
		"media-v2":            {`{"url":"https://a.example.com/","scheme":"media-v2","content":"native"}`, 201, ""},
		"media-v2 original":   {`{"url":"https://a.example.com/","scheme":"media-v2","content":"original"}`, 400, "invalid_request"},
		"media-v2 reports":    {`{"url":"https://a.example.com/","scheme":"media-v2","complete_within":"1m"}`, 400, "invalid_request"},
		"tasks original":      {`{"url":"https://a.example.com/","scheme":"body-timestamp","content":"original"}`, 400, "invalid_request"},
		"tasks reports":       {`{"url":"https://a.example.com/","scheme":"body-timestamp","complete_within":"1m"}`, 400, "invalid_request"},
		"a feed's reports":    {`{"kind":"feed","complete_within":"1m"}`, 400, "invalid_request"},
		"a feed's content":    {`{"kind":"feed","content":"original"}`, 201, ""},
		"a sender's scheme":   {`{"url":"https://a.example.com/","scheme":"stripe","secret":"any text"}`, 400, "invalid_request"},
		"owner with escape":   {`{"url":"https://a.example.com/","owner":"\u001b[2J"}`, 400, "invalid_request"},
		"policy retries 2xx":  {`{"url":"https://a.example.com/","policy":{"retry":[204]}}`, 400, "invalid_request"},
		"policy of two minds": {`{"url":"https://a.example.com/","policy":{"retry":[422],"gone":[422]}}`, 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.call("acme", "POST", "/v1/endpoints", c.body).want(c.status, c.reason)
			if c.status == 400 && c.reason != "invalid_json" && len(a.json["errors"].([]any)) != 1 {
				t.Errorf("want one fault: %s", a.body)
			}
		})
	}
	a := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/","secret":"whsec_canary secret"}`).want(400, "invalid_request")
	if strings.Contains(string(a.body), "canary") {
		t.Errorf("an error repeats the secret: %s", a.body)
	}
	if fault := a.json["errors"].([]any)[0].(map[string]any); fault["pointer"] != "#/secret" {
		t.Errorf("%v", fault)
	}
}

func TestCallbackEndpointsFollowOperations(t *testing.T) {
	g := newRig(t)
	g.submit("k", `{"upstream":"open","model":"m","input":{},"callback_url":"https://a.example.com/cb"}`)
	list := g.call("acme", "GET", "/v1/endpoints?kind=callback", "").want(200, "").items()
	if len(list) != 1 || list[0]["kind"] != "callback" || list[0]["secret"] != nil {
		t.Fatalf("%v", list)
	}
	path := "/v1/endpoints/" + list[0]["id"].(string)
	g.call("acme", "DELETE", path, "", "If-Match", `"1"`).want(409, "callback_endpoint")
	g.call("acme", "PATCH", path, `{"owner":"x"}`, "If-Match", `"1"`).want(409, "callback_endpoint")
	g.call("acme", "POST", path+"/rotate-secret", "").want(409, "callback_endpoint")
	g.call("acme", "POST", path+"/pause", "").want(200, "")
}

func TestEventTypesCoverTheVocabulary(t *testing.T) {
	g := newRig(t)
	items := g.call("reader", "GET", "/v1/event-types", "").want(200, "").items()
	// 7-rules §3 names these, the artifacts' types apart, which come later.
	want := "running unconfirmed succeeded failed canceled expired settled review.opened review.closed released corrected progress"
	for _, word := range strings.Fields(want) {
		found := false
		for _, item := range items {
			example, _ := item["example"].(map[string]any)
			found = found || item["type"] == "operation."+word && example["type"] == item["type"] && example["data"] != nil
		}
		if !found {
			t.Errorf("operation.%s is missing", word)
		}
	}
}

func TestDeliveries(t *testing.T) {
	g := newRig(t)
	endpoint, operation, row := g.deliverTo()
	id := row.ID.Text(pawl.PrefixDelivery)
	items := g.call("reader", "GET", "/v1/deliveries?state=pending&endpoint="+endpoint+"&operation="+operation, "").want(200, "").items()
	if len(items) != 1 || items[0]["id"] != id || items[0]["endpoint_id"] != endpoint || items[0]["attempts"] != 0.0 ||
		items[0]["next_attempt_at"] == nil || !strings.HasPrefix(items[0]["event_id"].(string), "evt_") {
		t.Fatalf("%v", items)
	}
	if items := g.call("reader", "GET", "/v1/deliveries?state=dead", "").want(200, "").items(); len(items) != 0 {
		t.Errorf("%v", items)
	}
	g.call("reader", "GET", "/v1/deliveries?state=nope", "").want(400, "invalid_query")
	g.call("reader", "GET", "/v1/deliveries?endpoint="+operation, "").want(400, "invalid_query")

	g.attempt(row, 400)
	got := g.call("reader", "GET", "/v1/deliveries/"+id, "").want(200, "")
	if got.text("state") != "dead" || got.json["attempts"] != 1.0 || got.json["next_attempt_at"] != nil || got.json["last_status"] != 400.0 || got.json["sequence"] != 1.0 {
		t.Errorf("%s", got.body)
	}
	attempts := g.call("reader", "GET", "/v1/deliveries/"+id+"/attempts", "").want(200, "").items()
	if len(attempts) != 1 || attempts[0]["status"] != 400.0 || attempts[0]["number"] != 1.0 || !strings.HasPrefix(attempts[0]["id"].(string), "att_") {
		t.Errorf("%v", attempts)
	}
	reviews := g.call("reader", "GET", "/v1/reviews?open=true&reason=dead_letter", "").want(200, "").items()
	if len(reviews) != 1 || reviews[0]["delivery_id"] != id {
		t.Errorf("%v", reviews)
	}
	g.call("reader", "POST", "/v1/deliveries/"+id+"/retry", "").want(403, "insufficient_scope")
	if a := g.call("acme", "POST", "/v1/deliveries/"+id+"/retry", "").want(202, ""); a.text("state") != "pending" {
		t.Errorf("%s", a.body)
	}
	g.call("acme", "POST", "/v1/endpoints/"+endpoint+"/pause", "").want(200, "")
	g.call("acme", "POST", "/v1/deliveries/"+id+"/retry", "").want(409, "endpoint_disabled")
}

// Every change of an endpoint honours If-Match; a tenant that does not exist
// gets none.
func TestEndpointChangesUnderOldTags(t *testing.T) {
	g := newRig(t)
	id := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in"}`).want(201, "").text("id")
	for _, action := range []string{"rotate-secret", "pause", "enable"} {
		g.call("acme", "POST", "/v1/endpoints/"+id+"/"+action, "{}", "If-Match", `"7"`).want(412, "version")
	}
	g.call("admin", "POST", "/v1/endpoints?tenant=nobody", `{"url":"https://hooks.example.com/in"}`).want(404, "not_found")
}
