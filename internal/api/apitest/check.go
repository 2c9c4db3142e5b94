package apitest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Exchange is one request with its answer.
type Exchange struct {
	Method        string
	URL           *url.URL
	RequestHeader http.Header
	RequestBody   []byte
	Status        int
	Header        http.Header
	Body          []byte
}

// Faults says where an exchange differs from the document: an operation,
// status, reason, media type, header or member that it does not have, a header
// or member that is missing, and, of a request that succeeded, what the document
// would not have let through.
func (d *Document) Faults(x Exchange) []string {
	c := &check{Document: d, Exchange: x}
	operation, pointer, methods := d.operation(x.Method, x.URL.EscapedPath())
	switch {
	case methods == nil:
		c.unmatched(http.StatusNotFound, "not_found")
	case operation == nil:
		c.unmatched(http.StatusMethodNotAllowed, "method_not_allowed")
		c.say(x.Header.Get("Allow") != "", "405 without Allow")
	default:
		c.answer(operation, pointer)
		if x.Status < 400 {
			c.request(operation, pointer)
		}
	}
	for i, fault := range c.faults {
		c.faults[i] = fmt.Sprintf("%s %s, answered %d: %s", x.Method, x.URL.Path, x.Status, fault)
	}
	return c.faults
}

type check struct {
	*Document
	Exchange
	faults []string
}

func (c *check) say(ok bool, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// unmatched is a request that no route takes.
func (c *check) unmatched(status int, reason string) {
	if !strings.HasPrefix(c.URL.Path, "/v1/") {
		return
	}
	c.say(c.Status == status, "the document has no such operation, want %d", status)
	c.say(isProblem(c.Header), "content type %q, want a problem", c.Header.Get("Content-Type"))
	if c.Method == http.MethodHead {
		return
	}
	c.say(reasonOf(c.Body) == reason, "reason %q, want %q", reasonOf(c.Body), reason)
	err := c.validate("#/components/schemas/Problem", c.Body)
	c.say(err == nil, "%v", err)
}

func (c *check) answer(operation map[string]any, pointer string) {
	status := strconv.Itoa(c.Status)
	described := object(operation, "responses")[status]
	if described == nil {
		c.say(false, "the document has no such status (reason %q): the route must list it", reasonOf(c.Body))
		return
	}
	c.see(operation)
	where := pointerOf(described, pointer+"/responses/"+status)
	answer := c.resolve(described)
	c.headers(object(answer, "headers"))
	content := object(answer, "content")
	if len(content) == 0 {
		c.say(len(c.Body) == 0, "a body that is not described: %.200s", c.Body)
		return
	}
	kind := mediaKey(content, c.Header.Get("Content-Type"))
	if kind == "" {
		c.say(false, "the content type %q is not described", c.Header.Get("Content-Type"))
		return
	}
	if c.Method == http.MethodHead {
		return
	}
	if reasons := c.reasons(described); reasons != nil && !slices.Contains(reasons, reasonOf(c.Body)) {
		c.say(false, "the reason %q is not among those that the route lists for this status: %v", reasonOf(c.Body), reasons)
		return
	}
	if err := c.validate(where+"/content/"+escape(kind)+"/schema", c.Body); err != nil {
		c.say(false, "the body is not as described (reason %q): %v\n%.2000s", reasonOf(c.Body), err, c.Body)
	}
}

func (c *check) see(operation map[string]any) {
	id, _ := operation["operationId"].(string)
	a := Answer{Operation: id, Status: c.Status}
	if isProblem(c.Header) {
		a.Reason = reasonOf(c.Body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[a] = true
}

// mediaKey is the name under which a content type is described.
func mediaKey(content map[string]any, sent string) string {
	for name := range content {
		want, wantParams, err := mime.ParseMediaType(name)
		got, gotParams, err2 := mime.ParseMediaType(sent)
		same := err == nil && err2 == nil && want == got
		for k, v := range wantParams {
			same = same && gotParams[k] == v
		}
		if same {
			return name
		}
	}
	return ""
}

// headers wants all headers that are always there, and none of the API's own
// that is not described here.
func (c *check) headers(described map[string]any) {
	for name, h := range described {
		always, _ := c.resolve(h)["required"].(bool)
		c.say(!always || c.Header.Get(name) != "", "without the header %s", name)
	}
	for component := range object(c.root, "components", "headers") {
		name := strings.TrimSuffix(component, "-Optional")
		c.say(c.Header.Get(name) == "" || described[name] != nil, "the header %s is not described for it", name)
	}
}

// request is one that was carried out.
func (c *check) request(operation map[string]any, pointer string) {
	params, _ := operation["parameters"].([]any)
	for name := range c.URL.Query() {
		c.say(takes(params, name), "the parameter %q is not described", name)
	}
	for _, p := range params {
		param, _ := p.(map[string]any)
		name, _ := param["name"].(string)
		needed, _ := param["required"].(bool)
		c.say(param["in"] != "header" || !needed || c.RequestHeader.Get(name) != "", "a request without the header %s", name)
	}
	body := bytes.TrimSpace(c.RequestBody)
	content := object(operation, "requestBody", "content")
	if len(content) == 0 {
		c.say(len(body) == 0 || string(body) == "{}", "a request with a body that is not described: %.200s", body)
		return
	}
	if len(body) == 0 {
		body = []byte("{}") // What an empty body stands for.
	}
	if err := c.validate(pointer+"/requestBody/content/application~1json/schema", body); err != nil {
		c.say(false, "the request is not as described: %v\n%.2000s", err, body)
	}
}

// takes reports whether a query may have a parameter of that name.
func takes(params []any, name string) bool {
	for _, p := range params {
		param, _ := p.(map[string]any)
		if param["in"] != "query" {
			continue
		}
		if param["name"] == name {
			return true
		}
		for pattern := range object(param, "schema", "patternProperties") {
			if regexp.MustCompile(pattern).MatchString(name) {
				return true
			}
		}
	}
	return false
}

// WebhookFaults says where the body of an outbound event differs from what the
// document has under webhooks for its type.
func (d *Document) WebhookFaults(eventType string, body []byte) []string {
	if object(d.root, "webhooks", eventType) == nil {
		return []string{"the document has no webhook " + eventType}
	}
	pointer := "#/webhooks/" + escape(eventType) + "/post/requestBody/content/application~1json/schema"
	if err := d.validate(pointer, body); err != nil {
		return []string{fmt.Sprintf("%s is not as described: %v\n%.2000s", eventType, err, body)}
	}
	return nil
}
