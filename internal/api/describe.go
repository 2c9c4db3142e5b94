package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl/internal/ledger"
)

// newDescription begins the OpenAPI 3.1 document. Its schemas come from the Go
// types of bodies.
func newDescription(version string) *huma.OpenAPI {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Pawl", Version: version,
			Description: "The catch that keeps asynchronous jobs from slipping. Times are RFC 3339 in UTC with six digits of a second; money is a decimal string; errors are application/problem+json.",
		},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"apiKey": {Type: "http", Scheme: "bearer", Description: "An API key, pawl_sk_…"},
			},
		},
		Security: []map[string][]string{{"apiKey": {}}},
	}
	doc.Webhooks = webhooksOf(doc)
	return doc
}

// schemaName is the Go type's name without the mark of JSON shapes.
func schemaName(t reflect.Type, hint string) string {
	return strings.ReplaceAll(huma.DefaultSchemaNamer(t, hint), "JSON", "")
}

// describe adds a route to the document.
func (a *api) describe(rt route, in, out reflect.Type) {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.name, Summary: rt.summary, Tags: []string{rt.tag},
		Parameters: parameters(rt), Responses: map[string]*huma.Response{},
	}
	if rt.scope != 0 {
		op.Description = "Needs the scope " + scopeWord(rt.scope) + "."
	}
	schemas := a.doc.Components.Schemas
	if in != reflect.TypeFor[none]() {
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(in, true, rt.name+"Request")},
		}}
	}
	for _, status := range append([]int{rt.status}, rt.also...) {
		answer := &huma.Response{Description: http.StatusText(status)}
		if out != reflect.TypeFor[none]() && status != http.StatusNoContent && status != http.StatusNotModified {
			answer.Content = map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(out, true, rt.name+"Answer")}}
		}
		op.Responses[strconv.Itoa(status)] = answer
	}
	op.Responses["default"] = &huma.Response{
		Description: "Refused (RFC 9457)",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[problem](), true, "Problem")}},
	}
	a.doc.AddOperation(op)
}

func parameters(rt route) []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	var params []*huma.Param
	for _, segment := range strings.Split(rt.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			params = append(params, &huma.Param{Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: text})
		}
	}
	query := append(slices.Clone(rt.query), param{"tenant", "Admin keys only: the tenant that the call is about."})
	if rt.paged {
		query = append(query, param{"page_token", "The next_page_token of the page before."})
		params = append(params, &huma.Param{Name: "page_size", In: "query", Description: "At most 200; 50 if it is left out.", Schema: &huma.Schema{Type: huma.TypeInteger}})
	}
	for _, p := range query {
		params = append(params, &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: text})
	}
	if rt.keyed {
		params = append(params, &huma.Param{Name: "Idempotency-Key", In: "header", Required: true, Schema: text,
			Description: "1 to 255 visible ASCII characters, bare or quoted. The same key with the same request gives the same result, at least for the configured window (24 h). See " + docsIdempotency})
	}
	if rt.match {
		params = append(params, &huma.Param{Name: "If-Match", In: "header", Required: true, Schema: text, Description: "The ETag of the last GET."})
	}
	return params
}

// webhooksOf describes the outbound events, one for each type.
func webhooksOf(doc *huma.OpenAPI) map[string]*huma.PathItem {
	schema := doc.Components.Schemas.Schema(reflect.TypeFor[ledger.EventJSON](), true, "Event")
	items := make(map[string]*huma.PathItem, len(eventTypes))
	for _, t := range eventTypes {
		items[t.name] = &huma.PathItem{Post: &huma.Operation{
			OperationID: t.name, Summary: t.meaning, Tags: []string{"webhooks"},
			RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}},
			Responses:   map[string]*huma.Response{"2XX": {Description: "Taken; anything else is tried again or given up by the endpoint's policy."}},
		}}
	}
	return items
}

// describeRoute serves the finished document. It is the same for everybody and
// needs no key.
func (a *api) describeRoute() {
	for name, schema := range a.doc.Components.Schemas.Map() {
		// Requests are strict; answers may gain members.
		if !strings.HasSuffix(name, "Request") {
			schema.AdditionalProperties = nil
		}
		for _, member := range schema.Properties {
			member.Nullable = false // Lists are empty, never null.
		}
	}
	text, err := json.Marshal(a.doc)
	if err != nil {
		panic(err) // The document is made of our own types only.
	}
	a.mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		_, _ = w.Write(text) // The client is gone: nobody is left to tell.
	})
}
