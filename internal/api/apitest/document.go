// Package apitest is for tests only: it holds what clients send to the API and
// what the API answers against the document that the API serves, so that the
// document cannot say anything else than what happens (OA-03).
package apitest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI 3.1 document with its schemas. It is safe for
// concurrent use.
type Document struct {
	root  map[string]any
	paths []path

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	seen     map[Answer]bool
}

// Answer is a kind of answer: an operation's, with a status and, where it is a
// problem, its reason.
type Answer struct {
	Operation string
	Status    int
	Reason    string
}

// path is one path of the document in segments.
type path struct {
	template string
	segments []string
}

// location is what the document is called among the schemas.
const location = "https://pawl.example/openapi.json"

// Parse reads a document. Its answers are closed: a member that is not
// described is a fault, although clients are told that members may be added.
func Parse(text []byte) (*Document, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, ok := parsed.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is no object")
	}
	d := &Document{root: root, schemas: map[string]*jsonschema.Schema{}, seen: map[Answer]bool{}}
	for _, schema := range object(root, "components", "schemas") {
		if s, ok := schema.(map[string]any); ok && s["properties"] != nil && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
	}
	for template := range object(root, "paths") {
		d.paths = append(d.paths, path{template, strings.Split(template, "/")})
	}
	d.compiler = jsonschema.NewCompiler()
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(location, root)
}

// Documents keeps parsed documents by their text: most nodes of a test run
// serve the same. The zero value is ready for use.
type Documents struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*Document
}

// Of is the document of a text.
func (c *Documents) Of(text []byte) (*Document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := sha256.Sum256(text)
	if d := c.known[sum]; d != nil {
		return d, nil
	}
	d, err := Parse(text)
	if err == nil {
		if c.known == nil {
			c.known = make(map[[sha256.Size]byte]*Document)
		}
		c.known[sum] = d
	}
	return d, err
}

// All yields every document that was parsed.
func (c *Documents) All() iter.Seq[*Document] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Values(maps.Clone(c.known))
}

// Described are all answers that the document has, one for each reason of a
// refusal.
func (d *Document) Described() []Answer {
	var all []Answer
	for _, p := range d.paths {
		for _, op := range object(d.root, "paths", p.template) {
			operation, _ := op.(map[string]any)
			id, _ := operation["operationId"].(string)
			for word, answer := range object(operation, "responses") {
				status, _ := strconv.Atoi(word)
				reasons := d.reasons(answer)
				if reasons == nil {
					reasons = []string{""}
				}
				for _, reason := range reasons {
					all = append(all, Answer{id, status, reason})
				}
			}
		}
	}
	return all
}

// Seen reports whether an answer was among those that were checked.
func (d *Document) Seen(a Answer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[a]
}

func (d *Document) reasons(answer any) (words []string) {
	content := object(d.resolve(answer), "content", problemType, "schema")
	parts, _ := content["allOf"].([]any)
	for _, part := range parts {
		p, _ := part.(map[string]any)
		enum, _ := object(p, "properties", "reason")["enum"].([]any)
		for _, word := range enum {
			words = append(words, fmt.Sprint(word))
		}
	}
	return words
}

// operation finds what the document says of a request; nil where no path, or no
// method of the path, is described.
func (d *Document) operation(method, escaped string) (known map[string]any, pointer string, methods []string) {
	p, ok := d.path(escaped)
	if !ok {
		return nil, "", nil
	}
	item := object(d.root, "paths", p.template)
	for m := range item {
		methods = append(methods, strings.ToUpper(m))
	}
	slices.Sort(methods)
	word := strings.ToLower(method)
	if word == "head" {
		word = "get"
	}
	known, _ = item[word].(map[string]any)
	return known, "#/paths/" + escape(p.template) + "/" + word, methods
}

// path prefers words to parameters.
func (d *Document) path(escaped string) (best path, ok bool) {
	segments := strings.Split(escaped, "/")
	most := -1
	for _, p := range d.paths {
		if words := fits(p.segments, segments); words > most {
			best, most = p, words
		}
	}
	return best, most >= 0
}

// fits counts the words that agree, -1 where the path is another.
func fits(template, segments []string) int {
	if len(template) != len(segments) {
		return -1
	}
	words := 0
	for i, s := range template {
		switch {
		case strings.HasPrefix(s, "{") && segments[i] != "":
		case s == segments[i]:
			words++
		default:
			return -1
		}
	}
	return words
}

// validate holds a JSON text against the schema at a pointer of the document.
func (d *Document) validate(pointer string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.schemas[pointer]
	if schema == nil {
		if schema, err = d.compiler.Compile(location + pointer); err != nil {
			return err
		}
		d.schemas[pointer] = schema
	}
	return schema.Validate(value)
}

// resolve follows a reference inside the document, if it is one.
func (d *Document) resolve(v any) map[string]any {
	m, _ := v.(map[string]any)
	ref, ok := m["$ref"].(string)
	if !ok {
		return m
	}
	return object(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// pointerOf is where something lies: where its reference leads, if it is one.
func pointerOf(v any, here string) string {
	m, _ := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return ref
	}
	return here
}

// escape writes a name as a token of a JSON Pointer in a URI fragment.
func escape(name string) string {
	name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return strings.NewReplacer("{", "%7B", "}", "%7D", "+", "%2B", ";", "%3B", "=", "%3D").Replace(name)
}

// object follows names into nested objects.
func object(from map[string]any, names ...string) map[string]any {
	for _, name := range names {
		from, _ = from[name].(map[string]any)
	}
	return from
}

// problemType is the media type of refusals.
const problemType = "application/problem+json"

func isProblem(h http.Header) bool { return h.Get("Content-Type") == problemType }

// reasonOf is a problem's reason.
func reasonOf(body []byte) string {
	var p struct{ Reason string }
	_ = json.Unmarshal(body, &p) // What is no problem has no reason.
	return p.Reason
}
