package api

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// newSchemas makes the registry of schemas, which come from the Go types of
// bodies, with what those of other packages cannot say of themselves.
func newSchemas() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", schemaName)
	r.RegisterTypeAlias(reflect.TypeFor[pawl.Time](), reflect.TypeFor[timeSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[pawl.State](), reflect.TypeFor[stateSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[pawl.FailureCode](), reflect.TypeFor[failureSchema]())
	return r
}

// schemaName is the Go type's name without the mark of JSON shapes.
func schemaName(t reflect.Type, hint string) string {
	return strings.ReplaceAll(huma.DefaultSchemaNamer(t, hint), "JSON", "")
}

// timeSchema stands for [pawl.Time].
type timeSchema struct{}

// Schema describes the one form that times have (TM-01).
func (timeSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Pattern: `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`}
}

// stateSchema stands for [pawl.State].
type stateSchema struct{}

// Schema lists the states (1-product D1).
func (stateSchema) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for state := pawl.Pending; state <= pawl.Expired; state++ {
		s.Enum = append(s.Enum, state.String())
	}
	return s
}

// failureSchema stands for [pawl.FailureCode].
type failureSchema struct{}

// Schema lists the codes (1-product D5).
func (failureSchema) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, code := range [...]pawl.FailureCode{
		pawl.FailInvalidRequest, pawl.FailUnsupported, pawl.FailContentRejected, pawl.FailRateLimited, pawl.FailUnavailable,
		pawl.FailGeneration, pawl.FailTimeout, pawl.FailInvalidAsset, pawl.FailUpstream,
	} {
		s.Enum = append(s.Enum, string(code))
	}
	return s
}

// object is any JSON object.
var object = huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}

// rawMembers are the members that are JSON of somebody else's making, by type
// and name; what is not listed may be any value.
var rawMembers = map[reflect.Type]map[string]*huma.Schema{
	reflect.TypeFor[ledger.OperationJSON](): {
		"input":    &object,
		"metadata": {Type: huma.TypeObject, Nullable: true, AdditionalProperties: true},
	},
}

// finish corrects a component's schema by its Go type: what is a pointer and
// always there may be null, lists are empty and never null, requests are
// strict, and answers may gain members.
func finish(r huma.Registry, name string, schema *huma.Schema) {
	t := r.TypeFromRef("#/components/schemas/" + name)
	if !strings.HasSuffix(name, "Request") {
		schema.AdditionalProperties = nil
	}
	for _, f := range reflect.VisibleFields(t) {
		tag := strings.Split(f.Tag.Get("json"), ",")
		member := schema.Properties[tag[0]]
		if member == nil {
			continue
		}
		member.Nullable = false
		if raw := rawMembers[t][tag[0]]; raw != nil && f.Type == reflect.TypeFor[json.RawMessage]() {
			schema.Properties[tag[0]] = raw
			continue
		}
		if f.Type.Kind() == reflect.Pointer && len(tag) == 1 {
			schema.Properties[tag[0]] = orNull(member)
		}
	}
}

// orNull is the schema of a member that may be null.
func orNull(s *huma.Schema) *huma.Schema {
	if s.Ref != "" {
		return &huma.Schema{AnyOf: []*huma.Schema{{Ref: s.Ref}, {Type: "null"}}, Description: s.Description}
	}
	s.Nullable = true
	if s.Enum != nil {
		s.Enum = append(s.Enum, nil)
	}
	return s
}
