package api

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

var updateReference = flag.Bool("update-reference", false, "write docs/api-reference.md anew")

const referencePage = "../../docs/api-reference.md"

// described is what the reference shows of the OpenAPI document.
type described struct {
	Paths      map[string]map[string]describedCall
	Components struct {
		Schemas   map[string]describedSchema
		Responses map[string]describedAnswer
	}
}

type describedCall struct {
	Summary, Description string
	Tags                 []string
	Parameters           []describedParameter
	RequestBody          struct {
		Content map[string]struct{ Schema describedSchema }
	}
	Responses map[string]describedAnswer
}

type describedParameter struct {
	Name, In, Description string
	Required              bool
}

// label is the parameter's name as it is shown.
func (p describedParameter) label() string {
	if p.Required {
		return "`" + p.Name + "`, required"
	}
	return "`" + p.Name + "`"
}

type describedAnswer struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]struct{ Schema describedSchema }
}

type describedSchema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Enum        []any
	Required    []string
	Properties  map[string]describedSchema
	Items       *describedSchema
	OneOf       []describedSchema
	AllOf       []describedSchema
}

// The reference says what the document says: where it has grown old, run
//
//	go test ./internal/api -run TestReference -args -update-reference
func TestReference(t *testing.T) {
	var doc described
	if err := json.Unmarshal(newRig(t).description, &doc); err != nil {
		t.Fatal(err)
	}
	page := doc.page()
	for route, calls := range doc.Paths {
		for method := range calls {
			if heading := "### `" + strings.ToUpper(method) + " " + route + "`\n"; !strings.Contains(page, heading) {
				t.Errorf("the reference has no %s", heading)
			}
		}
	}
	if *updateReference {
		if err := os.WriteFile(referencePage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != page {
		t.Error("docs/api-reference.md is not what the API describes; write it anew with -args -update-reference")
	}
}

const referenceIntro = `# API reference

Every call, as ` + "`GET /v1/openapi.json`" + ` describes it; this page is made from that, and a test fails where it is not. What all calls
have in common (keys, errors, pages, repeats) is in [the API](api.md), why a call is refused under [reasons](#reasons), the members of
what comes back under [objects](#objects). Each answer has a ` + "`Pawl-Request-Id`" + `.
`

// page is the whole reference.
func (d described) page() string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	byTag, reasons := d.calls()
	everywhere := d.everywhere()
	fmt.Fprintf(&b, "\nEvery call may also be refused with %s.\n", words(everywhere))
	b.WriteString("\nMany calls take these, and name them as \"also\":\n\n| parameter | in | meaning |\n| --- | --- | --- |\n")
	shared := d.shared()
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, shared[name].In, shared[name].Description)
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(tag[:1])+tag[1:])
		for _, at := range byTag[tag] {
			d.call(&b, at, everywhere, shared)
		}
	}
	b.WriteString("\n## Reasons\n\nThe member `reason` of a problem; its page is `/v1/problems/REASON`.\n\n| reason | meaning |\n| --- | --- |\n")
	for _, word := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", word, reasons[word])
	}
	b.WriteString("\n## Objects\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if len(s.Properties) == 0 || strings.HasSuffix(name, "Request") || d.pageOf(s) != "" {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", s.Description)
		}
		d.members(&b, s, "always")
	}
	return b.String()
}

// at is a call and where it stands.
type at struct {
	method, path string
	describedCall
}

// calls are all calls by their tag, in the order of their paths, and all reasons
// with their meaning.
func (d described) calls() (byTag map[string][]at, reasons map[string]string) {
	byTag, reasons = make(map[string][]at), make(map[string]string)
	for _, route := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			call, ok := d.Paths[route][method]
			if !ok {
				continue
			}
			byTag[call.Tags[0]] = append(byTag[call.Tags[0]], at{strings.ToUpper(method), route, call})
			for status, answer := range call.Responses {
				maps.Copy(reasons, d.refusals(status, answer))
			}
		}
	}
	return byTag, reasons
}

// refusals are the reasons of an answer with their meaning; none if it is no
// refusal.
func (d described) refusals(status string, answer describedAnswer) map[string]string {
	if status < "400" {
		return nil
	}
	if answer.Ref != "" {
		answer = d.Components.Responses[path.Base(answer.Ref)]
	}
	reasons := make(map[string]string)
	for part := range strings.SplitSeq(answer.Description, "; ") {
		if word, meaning, ok := strings.Cut(part, ": "); ok {
			reasons[word] = meaning
		}
	}
	return reasons
}

func (d described) reasonsOf(c describedCall) []string {
	var all []string
	for status, answer := range c.Responses {
		for word := range d.refusals(status, answer) {
			all = append(all, word)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// everywhere are the reasons that every call with a key has.
func (d described) everywhere() []string {
	var shared []string
	first := true
	for _, calls := range d.Paths {
		for _, call := range calls {
			if reasons := d.reasonsOf(call); slices.Contains(reasons, "unauthenticated") {
				if first {
					shared, first = reasons, false
				}
				shared = slices.DeleteFunc(shared, func(word string) bool { return !slices.Contains(reasons, word) })
			}
		}
	}
	return shared
}

// shared are the parameters that many calls take in the same meaning.
func (d described) shared() map[string]describedParameter {
	const many = 8
	seen := make(map[describedParameter]int)
	all := make(map[string]describedParameter)
	for _, calls := range d.Paths {
		for _, call := range calls {
			for _, p := range call.Parameters {
				p.Required = false
				if seen[p]++; seen[p] == many && p.In != "path" {
					all[p.Name] = p
				}
			}
		}
	}
	return all
}

func (d described) call(b *strings.Builder, c at, everywhere []string, shared map[string]describedParameter) {
	fmt.Fprintf(b, "\n### `%s %s`\n\n%s.", c.method, c.path, strings.TrimSuffix(c.Summary, "."))
	if c.Description != "" {
		fmt.Fprintf(b, " %s", c.Description)
	}
	b.WriteString("\n")
	d.parameters(b, c.Parameters, shared)
	for _, content := range c.RequestBody.Content {
		b.WriteString("\nBody:\n\n")
		d.members(b, d.resolve(content.Schema), "required")
	}
	b.WriteString("\nAnswers: ")
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(c.Responses)) {
		if status < "400" {
			answers = append(answers, "**"+status+"**"+d.body(c.Responses[status]))
		}
	}
	b.WriteString(strings.Join(answers, ", "))
	own := slices.DeleteFunc(d.reasonsOf(c.describedCall), func(word string) bool { return slices.Contains(everywhere, word) })
	if len(own) > 0 {
		fmt.Fprintf(b, "; refused: %s", words(own))
	}
	b.WriteString(".\n")
}

func (d described) parameters(b *strings.Builder, all []describedParameter, shared map[string]describedParameter) {
	var own []describedParameter
	var also []string
	for _, p := range all {
		switch known, ok := shared[p.Name]; {
		case p.In == "path" && p.Description == "":
		case ok && p.In == known.In && p.Description == known.Description:
			also = append(also, p.label())
		default:
			own = append(own, p)
		}
	}
	if len(own) > 0 {
		b.WriteString("\n| parameter | in | meaning |\n| --- | --- | --- |\n")
		for _, p := range own {
			fmt.Fprintf(b, "| %s | %s | %s |\n", p.label(), p.In, p.Description)
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "\nAlso: %s.\n", strings.Join(also, "; "))
	}
}

func words(list []string) string { return "`" + strings.Join(list, "`, `") + "`" }

// body names what an answer holds.
func (d described) body(a describedAnswer) string {
	var kinds []string
	for _, media := range slices.Sorted(maps.Keys(a.Content)) {
		if media != "application/json" {
			kinds = append(kinds, media)
			continue
		}
		kinds = append(kinds, d.kind(a.Content[media].Schema))
	}
	if len(kinds) == 0 {
		return ""
	}
	return " " + strings.Join(kinds, " or ")
}

func (d described) resolve(s describedSchema) describedSchema {
	if s.Ref != "" {
		return d.Components.Schemas[path.Base(s.Ref)]
	}
	return s
}

// pageOf says what a page of a list holds; "" if it is none.
func (d described) pageOf(s describedSchema) string {
	items, ok := s.Properties["items"]
	if _, more := s.Properties["next_page_token"]; !ok || !more || len(s.Properties) > 2 || items.Items == nil {
		return ""
	}
	return d.kind(*items.Items)
}

// kind is a schema in a few words; objects are links.
func (d described) kind(s describedSchema) string {
	switch {
	case s.Ref != "" && d.pageOf(d.resolve(s)) != "":
		return "a page of " + d.pageOf(d.resolve(s))
	case s.Ref != "" && len(d.resolve(s).Properties) > 0:
		name := path.Base(s.Ref)
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case s.Ref != "":
		return d.kind(d.resolve(s))
	case len(s.OneOf) > 0:
		var kinds []string
		for _, one := range s.OneOf {
			kinds = append(kinds, d.kind(one))
		}
		return strings.Join(kinds, " or ")
	case len(s.AllOf) == 1:
		return d.kind(s.AllOf[0])
	case s.Items != nil:
		return "list of " + d.kind(*s.Items)
	case len(s.Enum) > 0:
		var all []string
		for _, v := range s.Enum {
			all = append(all, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(all, ", ")
	}
	word := ""
	switch kind := s.Type.(type) {
	case string:
		word = kind
	case []any:
		var all []string
		for _, one := range kind {
			all = append(all, fmt.Sprint(one))
		}
		word = strings.Join(all, " or ")
	default:
		return "any JSON"
	}
	if s.Format != "" {
		word += ", " + s.Format
	}
	return word
}

func (d described) members(b *strings.Builder, s describedSchema, demanded string) {
	b.WriteString("| member | type | meaning |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		label := "`" + name + "`"
		if slices.Contains(s.Required, name) {
			label += ", " + demanded
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", label, strings.ReplaceAll(d.kind(p), "|", `\|`), strings.ReplaceAll(p.Description, "|", `\|`))
	}
}
