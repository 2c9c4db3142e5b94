package apitest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// document is a small one with a call of each kind.
const document = `{
  "openapi": "3.1.0",
  "paths": {
    "/v1/things": {
      "get": {
        "operationId": "listThings",
        "parameters": [
          {"name": "state", "in": "query", "schema": {"type": "string"}},
          {"name": "metadata", "in": "query", "schema": {"type": "object", "patternProperties": {"^metadata\\..+$": {"type": "string"}}}}
        ],
        "responses": {
          "200": {"headers": {"Link": {"$ref": "#/components/headers/Link-Optional"}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
          "404": {"$ref": "#/components/responses/NotFound"}
        }
      },
      "post": {
        "operationId": "makeThing",
        "parameters": [{"name": "Idempotency-Key", "in": "header", "required": true, "schema": {"type": "string"}}],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ThingRequest"}}}},
        "responses": {
          "201": {"headers": {"Location": {"$ref": "#/components/headers/Location"}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
          "204": {}
        }
      }
    },
    "/v1/things/{id}": {"get": {"operationId": "getThing", "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}},
    "/v1/things/best": {"get": {"operationId": "bestThing", "responses": {"204": {}}}}
  },
  "webhooks": {"thing.made": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}},
  "components": {
    "headers": {"Location": {"required": true}, "Link-Optional": {}},
    "responses": {"NotFound": {"content": {"application/problem+json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"reason": {"enum": ["not_found"]}}}]}}}}},
    "schemas": {
      "Thing": {"type": "object", "properties": {"id": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}, "required": ["id"]},
      "ThingRequest": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false},
      "Problem": {"type": "object", "properties": {"reason": {"type": "string"}, "title": {"type": "string"}}, "required": ["reason"]}
    }
  }
}`

const (
	jsonBody = "application/json"
	problem  = "application/problem+json"
)

// Each way in which an exchange may differ from the document is a fault, and
// what agrees with it is none.
func TestFaults(t *testing.T) {
	d, err := Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		status int
		kind   string
		body   string
		header string // "Name: value"
	}
	for name, c := range map[string]struct {
		request string // "METHOD target"
		headers string
		sent    string
		answer
		fault string // "" for none
	}{
		"as described":             {"GET /v1/things?state=x&metadata.a=b", "", "", answer{200, jsonBody, `{"id":"1","at":"2026-01-02T03:04:05Z"}`, "Link: x"}, ""},
		"HEAD":                     {"HEAD /v1/things", "", "", answer{200, jsonBody, "", ""}, ""},
		"made":                     {"POST /v1/things", "Idempotency-Key: k", `{"name":"x"}`, answer{201, jsonBody, `{"id":"1"}`, "Location: /v1/things/1"}, ""},
		"nothing to say":           {"POST /v1/things", "Idempotency-Key: k", `{"name":"x"}`, answer{204, "", "", ""}, ""},
		"a refusal":                {"GET /v1/things", "", "", answer{404, problem, `{"reason":"not_found","title":"x"}`, ""}, ""},
		"a parameter in the path":  {"GET /v1/things/7", "", "", answer{200, jsonBody, `{"id":"7"}`, ""}, ""},
		"a word before parameters": {"GET /v1/things/best", "", "", answer{204, "", "", ""}, ""},
		"no such path":             {"GET /v1/nothing", "", "", answer{404, problem, `{"reason":"not_found"}`, ""}, ""},
		"no such method":           {"PUT /v1/things", "", "", answer{405, problem, `{"reason":"method_not_allowed"}`, "Allow: GET"}, ""},
		"not the API":              {"GET /readyz", "", "", answer{200, "text/plain", "ready", ""}, ""},

		"another status":           {"GET /v1/things", "", "", answer{418, jsonBody, `{}`, ""}, "no such status"},
		"another reason":           {"GET /v1/things", "", "", answer{404, problem, `{"reason":"gone"}`, ""}, "not among those"},
		"another content type":     {"GET /v1/things", "", "", answer{200, "text/html", `{"id":"1"}`, ""}, "content type"},
		"a member too many":        {"GET /v1/things", "", "", answer{200, jsonBody, `{"id":"1","new":1}`, ""}, "not as described"},
		"a member too few":         {"GET /v1/things", "", "", answer{200, jsonBody, `{}`, ""}, "not as described"},
		"null":                     {"GET /v1/things", "", "", answer{200, jsonBody, `{"id":null}`, ""}, "not as described"},
		"no time":                  {"GET /v1/things", "", "", answer{200, jsonBody, `{"id":"1","at":"yesterday"}`, ""}, "not as described"},
		"no JSON":                  {"GET /v1/things", "", "", answer{200, jsonBody, `{`, ""}, "no JSON"},
		"a body of nothing":        {"GET /v1/things/best", "", "", answer{204, "", "{}", ""}, "a body that is not described"},
		"a header too few":         {"POST /v1/things", "Idempotency-Key: k", `{"name":"x"}`, answer{201, jsonBody, `{"id":"1"}`, ""}, "without the header Location"},
		"a header too many":        {"GET /v1/things", "", "", answer{200, jsonBody, `{"id":"1"}`, "Location: x"}, "the header Location is not described"},
		"a parameter too many":     {"GET /v1/things?sort=x", "", "", answer{200, jsonBody, `{"id":"1"}`, ""}, `"sort"`},
		"a request too loose":      {"POST /v1/things", "Idempotency-Key: k", `{"name":"x","y":1}`, answer{204, "", "", ""}, "the request is not as described"},
		"an empty request":         {"POST /v1/things", "Idempotency-Key: k", "", answer{204, "", "", ""}, "the request is not as described"},
		"a request without a key":  {"POST /v1/things", "", `{"name":"x"}`, answer{204, "", "", ""}, "without the header Idempotency-Key"},
		"a body nobody asked for":  {"GET /v1/things", "", `{"x":1}`, answer{200, jsonBody, `{"id":"1"}`, ""}, "a body that is not described"},
		"an undescribed path":      {"GET /v1/nothing", "", "", answer{200, jsonBody, `{}`, ""}, "no such operation"},
		"an undescribed method":    {"PUT /v1/things", "", "", answer{200, jsonBody, `{}`, ""}, "no such operation"},
		"405 without Allow":        {"PUT /v1/things", "", "", answer{405, problem, `{"reason":"method_not_allowed"}`, ""}, "without Allow"},
		"an empty segment is none": {"GET /v1/things/", "", "", answer{200, jsonBody, `{"id":"1"}`, ""}, "no such operation"},
	} {
		t.Run(name, func(t *testing.T) {
			method, target, _ := strings.Cut(c.request, " ")
			at, err := url.Parse("http://x" + target)
			if err != nil {
				t.Fatal(err)
			}
			x := Exchange{method, at, headers(c.headers), []byte(c.sent), c.status, headers(c.header), []byte(c.body)}
			if c.kind != "" {
				x.Header.Set("Content-Type", c.kind)
			}
			faults := d.Faults(x)
			switch {
			case c.fault == "" && len(faults) > 0:
				t.Errorf("faults: %v", faults)
			case c.fault != "" && !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.fault) }):
				t.Errorf("faults %v, want one with %q", faults, c.fault)
			}
		})
	}
	for _, a := range d.Described() {
		if !d.Seen(a) {
			t.Errorf("%+v was not seen", a)
		}
	}
	if d.Seen(Answer{"listThings", 404, "lost"}) || len(d.Described()) != 6 {
		t.Errorf("%d answers are described", len(d.Described()))
	}
	if len(d.WebhookFaults("thing.made", []byte(`{"id":"1"}`))) != 0 || len(d.WebhookFaults("thing.made", []byte(`{}`))) == 0 || len(d.WebhookFaults("thing.lost", []byte(`{"id":"1"}`))) == 0 {
		t.Error("webhooks are judged wrongly")
	}
}

func headers(line string) http.Header {
	h := http.Header{}
	if name, value, ok := strings.Cut(line, ": "); ok {
		h.Set(name, value)
	}
	return h
}

// The transport reads what goes through it, and hands it on as it was.
func TestTransport(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		w.Header().Set("Content-Type", jsonBody)
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	d, err := Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	client := &http.Client{Transport: &Transport{
		Base: &http.Transport{DisableKeepAlives: true}, Document: func(r *http.Request) *Document {
			if r.URL.Path == "/unchecked" {
				return nil
			}
			return d
		}, Report: func(f string) { faults = append(faults, f) },
	}}
	for _, path := range []string{"/unchecked", "/v1/things"} {
		res, err := client.Post(srv.URL+path, jsonBody, strings.NewReader(`{"name":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 64)
		n, _ := res.Body.Read(got)
		_ = res.Body.Close()
		if string(got[:n]) != `{"name":"x"}` {
			t.Errorf("%s: %q came back", path, got[:n])
		}
	}
	if len(faults) != 2 || !strings.Contains(faults[0], "no such status") {
		t.Errorf("faults %v", faults)
	}
}
