package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// documentType is the media type of the document.
const documentType = "application/vnd.oai.openapi+json;version=3.1"

// newDescription begins the OpenAPI 3.1 document.
func newDescription(version string) *huma.OpenAPI {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Pawl", Version: version, License: &huma.License{Name: "MIT", Identifier: "MIT"},
			Description: "The catch that keeps asynchronous jobs from slipping. Times are RFC 3339 in UTC with six digits of a second; money is a decimal string; errors are application/problem+json. New members, states and reasons may appear in answers; requests are strict.",
		},
		Servers: []*huma.Server{{URL: "/", Description: "Where this document comes from."}},
		Components: &huma.Components{
			Schemas: newSchemas(), Responses: map[string]*huma.Response{}, Headers: map[string]*huma.Header{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"apiKey": {Type: "http", Scheme: "bearer", Description: "An API key, pawl_sk_…"},
			},
		},
		Security: []map[string][]string{{"apiKey": {}}},
	}
	doc.Webhooks = webhooksOf(doc)
	return doc
}

// describe adds a route to the document.
func (a *api) describe(rt route, in, out reflect.Type) {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.name, Summary: rt.summary, Tags: []string{rt.tag},
		Parameters: parameters(rt), Responses: a.answers(rt, in, out),
	}
	if rt.scope != 0 {
		op.Description = "Needs the scope " + scopeWord(rt.scope) + "."
	}
	if in != reflect.TypeFor[none]() {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: a.doc.Components.Schemas.Schema(in, true, rt.name+"Request")},
		}}
		if in == reflect.TypeFor[submitRequest]() {
			op.Callbacks = callbacksOf(a.doc)
		}
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
		params = append(params, queryParam(p))
	}
	if rt.keyed != 0 {
		params = append(params, &huma.Param{Name: "Idempotency-Key", In: "header", Required: rt.keyed == required, Schema: text,
			Description: "1 to 255 visible ASCII characters, bare or quoted. The same key with the same request gives the same result, at least for the configured window (24 h). See " + docsIdempotency})
	}
	if rt.explained() {
		params = append(params, &huma.Param{Name: reasonHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Why it is done, for the audit: at most 1000 bytes of UTF-8 without control characters."})
	}
	if rt.waits {
		params = append(params, &huma.Param{Name: "Prefer", In: "header", Schema: text,
			Description: "wait=N (RFC 7240): answer with the operation's end, or after N seconds, at most 60, as it is then."})
	}
	if rt.match {
		params = append(params, &huma.Param{Name: "If-Match", In: "header", Required: true, Schema: text, Description: "The ETag of the last GET."})
	}
	return params
}

// queryParam describes a parameter; an open one is an object of which each
// member is a parameter of its own.
func queryParam(p param) *huma.Param {
	prefix, open := strings.CutSuffix(p.name, ".*")
	if !open {
		return &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	explode := true
	return &huma.Param{Name: prefix, In: "query", Description: p.doc, Style: "form", Explode: &explode, Schema: &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false,
		Extensions: map[string]any{"patternProperties": map[string]any{`^` + prefix + `\..+$`: map[string]any{"type": "string"}}},
	}}
}

// describeRoute serves the finished document. It is the same for everybody and
// needs no key.
func (a *api) describeRoute() {
	a.doc.AddOperation(&huma.Operation{
		Method: http.MethodGet, Path: "/v1/openapi.json", OperationID: "getDescription", Tags: []string{"description"},
		Summary: "This document; it needs no API key", Security: []map[string][]string{{}},
		Responses: map[string]*huma.Response{
			strconv.Itoa(http.StatusOK): {
				Description: http.StatusText(http.StatusOK), Headers: map[string]*huma.Param{"Pawl-Request-Id": a.header("Pawl-Request-Id", true)},
				Content: map[string]*huma.MediaType{documentType: {Schema: &object}},
			},
			strconv.Itoa(http.StatusRequestHeaderFieldsTooLarge): a.refusal(http.StatusRequestHeaderFieldsTooLarge, []string{"headers_too_large"}),
		},
	})
	for name, schema := range a.doc.Components.Schemas.Map() {
		finish(a.doc.Components.Schemas, name, schema)
	}
	text, err := json.Marshal(a.doc)
	if err != nil {
		panic(err) // The document is made of our own types only.
	}
	a.text = text
	a.mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", documentType)
		_, _ = w.Write(text) // The client is gone: nobody is left to tell.
	})
}

// Description is the OpenAPI document that GET /v1/openapi.json answers with.
func (h Handler) Description() []byte { return h.text }
