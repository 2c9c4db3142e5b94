package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestMain wants, after a whole run, that everything that the document
// describes has happened: what cannot happen does not belong there (OA-03).
func TestMain(m *testing.M) {
	status := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == ""
	if whole && flag.Lookup("test.list").Value.String() == "" {
		for _, fault := range unseen() {
			fmt.Fprintln(os.Stderr, "FAIL: "+fault)
			status = 1
		}
	}
	os.Exit(status)
}

// unseen are the answers of the document that no test of this package got.
func unseen() (faults []string) {
	for d := range documents.All() {
		for _, a := range d.Described() {
			// These need a broken store or a broken client; they are the same
			// everywhere and are tested once.
			passing := a.Status >= 500 || a.Status == http.StatusRequestTimeout
			if !passing && !d.Seen(a) {
				faults = append(faults, fmt.Sprintf("no test sees %s answer %d %s", a.Operation, a.Status, a.Reason))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// schemas31 is the official JSON Schema of OpenAPI 3.1 with its dialect.
func schemas31(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, name := range []string{"schema", "schema-base", "dialect-base", "meta-base"} {
		text, err := os.ReadFile("testdata/oas31/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("https://spec.openapis.org/oas/3.1/schema-base")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The document validates against the official schema (OA-01), which would find
// it out otherwise.
func TestDescriptionIsOpenAPI(t *testing.T) {
	g := newRig(t)
	schema := schemas31(t)
	read := func(text []byte) map[string]any {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return doc.(map[string]any)
	}
	if err := schema.Validate(read(g.description)); err != nil {
		t.Errorf("%v", err)
	}
	for name, spoil := range map[string]func(doc map[string]any){
		"a version of its own":   func(doc map[string]any) { doc["openapi"] = "3.0.3" },
		"no title":               func(doc map[string]any) { delete(doc["info"].(map[string]any), "title") },
		"an unknown member":      func(doc map[string]any) { doc["endpoints"] = map[string]any{} },
		"a schema of no type":    func(doc map[string]any) { component(doc, "schemas", "Problem")["type"] = "strin" },
		"an answer without text": func(doc map[string]any) { delete(component(doc, "responses", "Internal500"), "description") },
	} {
		doc := read(g.description)
		spoil(doc)
		if schema.Validate(doc) == nil {
			t.Errorf("the schema lets pass: %s", name)
		}
	}
	if strings.Contains(string(g.description), `"nullable"`) {
		t.Error("nullable is no word of OpenAPI 3.1 (OA-02)")
	}
}

func component(doc map[string]any, kind, name string) map[string]any {
	return doc["components"].(map[string]any)[kind].(map[string]any)[name].(map[string]any)
}

// Each type of outbound events has an entry under webhooks whose example is as
// its schema says; all refer to what exists.
func TestWebhooksAreDescribed(t *testing.T) {
	g := newRig(t)
	var doc struct {
		Webhooks map[string]struct {
			Post struct {
				Parameters  []struct{ Name, In string }
				RequestBody struct {
					Content map[string]struct {
						Examples map[string]struct{ Value json.RawMessage }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(g.description, &doc); err != nil {
		t.Fatal(err)
	}
	types := []string{publishedWebhook, receivedWebhook}
	for _, item := range g.call("reader", "GET", "/v1/event-types", "").items() {
		types = append(types, item["type"].(string))
	}
	slices.Sort(types)
	if got := slices.Sorted(maps.Keys(doc.Webhooks)); !slices.Equal(got, types) {
		t.Errorf("webhooks %v, want %v", got, types)
	}
	for name, hook := range doc.Webhooks {
		example := hook.Post.RequestBody.Content["application/json"].Examples["example"].Value
		for _, fault := range g.document.WebhookFaults(name, example) {
			t.Error(fault)
		}
		spoilt := bytes.Replace(example, []byte(name), []byte("operation.unheard"), 1)
		if name == publishedWebhook || name == receivedWebhook {
			spoilt = bytes.Replace(example, []byte(`"data"`), []byte(`"date"`), 1)
		}
		if faults := g.document.WebhookFaults(name, spoilt); len(faults) == 0 {
			t.Errorf("%s: an event of another shape passes", name)
		}
		if len(hook.Post.Parameters) != 7 {
			t.Errorf("%s: %d headers", name, len(hook.Post.Parameters))
		}
	}
}

// What follows from the shape of a route is refused by every one that has the
// shape.
func TestEveryRouteRefuses(t *testing.T) {
	g := newRig(t)
	ids := g.oneOfEach()
	g.call("slow", "GET", "/v1/whoami", "").want(200, "")
	big := `{"x":"` + strings.Repeat("x", maxInput+maxBody) + `"}`
	for path, methods := range g.described() {
		for method, op := range methods {
			method, path := strings.ToUpper(method), strings.NewReplacer("{id}", "nonsense", "{name}", "nonsense", "{lease}", "nonsense").Replace(path)
			g.call("slow", method, path, "", "Pad", strings.Repeat("x", 32<<10)).want(431, "headers_too_large")
			if isOpen(op) {
				continue
			}
			headers := []string{"If-Match", `"1"`, "Idempotency-Key", "x"}
			key := "full"
			if strings.Contains(fmt.Sprint(op["description"]), "admin") {
				key = "admin"
			}
			g.call("slow", method, path, "", headers...).want(429, "rate_limited")
			g.call(key, method, path+"?nonsense=1", "", headers...).want(400, "invalid_query")
			if key != "admin" {
				g.call(key, method, path+"?tenant=other", "", headers...).want(403, "tenant_forbidden")
			}
			if takes(op, "page_token") {
				mine := strings.ReplaceAll(path, "nonsense", ids[strings.Split(path, "/")[2]])
				g.call(key, method, mine+"?page_token=x", "").want(400, "invalid_page_token")
			}
			if takes(op, "If-Match") {
				g.call(key, method, path, "{}", "Idempotency-Key", "x").want(428, "if_match_missing")
			}
			if takes(op, "Idempotency-Key") {
				g.call(key, method, path, "{}", "If-Match", `"1"`, "Idempotency-Key", "\"half").want(400, "idempotency_key_invalid")
			}
			if takes(op, reasonHeader) {
				g.call(key, method, path, "", append(headers, reasonHeader, strings.Repeat("x", 1001))...).want(400, "invalid_request")
			}
			if method == "GET" || method == "DELETE" {
				continue
			}
			g.call(key, method, path, "[", headers...).want(400, "invalid_json")
			g.call(key, method, path, "{}", append(headers, "Content-Type", "text/plain")...).want(415, "unsupported_media_type")
			g.call(key, method, path, big, headers...).want(413, "content_too_large")
		}
	}
}

// isOpen reports whether an operation needs no key.
func isOpen(op map[string]any) bool {
	_, open := op["security"]
	return open
}

// takes reports whether an operation has a parameter.
func takes(op map[string]any, name string) bool {
	params, _ := op["parameters"].([]any)
	return slices.ContainsFunc(params, func(p any) bool { return p.(map[string]any)["name"] == name })
}
