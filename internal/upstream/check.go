package upstream

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

var (
	nameShape   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	headerShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,62}$`)
	pathShape   = regexp.MustCompile(`^(/([A-Za-z0-9_.:-]|\{task\})+)+$`)
)

// check reports everything that is wrong with a description at once.
func (s Spec) check() error {
	c := checker{}
	c.that(nameShape.MatchString(s.Name), "name", "must be lower-case letters, digits and hyphens")
	c.that(s.Version > 0, "version", "must be 1 or more")
	if s.BaseURL != "" {
		_, err := parseBase(s.BaseURL)
		c.that(err == nil, "base_url", "must be an absolute http or https URL without user, query or fragment")
	}
	c.header("auth.header", s.Auth.Header)
	c.that(strings.Count(s.Auth.Format, "{key}") == 1 && !hasControl(s.Auth.Format),
		"auth.format", "must hold {key} once")
	for _, h := range s.Headers {
		c.header("headers", h.Name)
		c.that(!hasControl(h.Value), "headers", "a value holds a control character")
	}
	c.pointers("envelope", s.Envelope.Code)
	c.pointers("errors", s.Errors.Code, s.Errors.Message)
	c.that(len(s.States) > 0, "states", "must name at least one word")
	for word, code := range s.Failures {
		known := code == pawl.FailUpstream || pawl.FailureCodeOf(string(code)) == code
		c.that(word != "" && known, "failures", "must map words to codes such as content_rejected")
	}
	c.create(s.Create)
	c.call("read", s.Read, FromTask)
	c.call("cancel", s.Cancel, FromTask)
	c.call("lookup", s.Lookup, FromClientRef)
	if s.Read != nil {
		c.that(s.Read.Fields.State != "", "read.fields.state", "is missing")
	}
	if s.Lookup != nil {
		c.that(s.Lookup.Fields.Task != "", "lookup.fields.task", "is missing")
	}
	c.callback(s.Callback)
	c.list(s)
	c.that(s.Links.Lifetime >= 0, "links.lifetime", "must not be negative")
	c.that(s.Callback == nil || s.Callback.Trust != TrustHint || s.Read != nil, "callback.trust", "a hint needs a read")
	return errors.Join(c.problems...)
}

// checker collects problems.
type checker struct{ problems []error }

func (c *checker) that(ok bool, key, what string) {
	if !ok {
		c.problems = append(c.problems, fmt.Errorf("%s: %s", key, what))
	}
}

func (c *checker) header(key, name string) {
	c.that(headerShape.MatchString(name), key, "must be the name of a header")
}

func (c *checker) pointers(key string, pointers ...string) {
	for _, p := range pointers {
		c.that(p == "" || strict.CheckPointer(p) == nil, key, "must be a JSON Pointer such as /data/taskId")
	}
}

func (c *checker) fields(key string, f Fields) {
	c.pointers(key, f.pointers()...)
	if name, ok := f.requestHeader(); ok {
		c.header(key+".request_id", name)
	}
}

// call checks a call that nothing but the source identifies the task in.
func (c *checker) call(key string, call *Call, source Source) {
	if call == nil {
		return
	}
	c.request(key, *call, source)
	c.fields(key+".fields", call.Fields)
	asked := slices.Contains(slices.Collect(maps.Values(call.Query)), source) ||
		source == FromTask && strings.Contains(call.Path, "{task}")
	c.that(asked, key, fmt.Sprintf("neither path nor query carries the %s", source))
}

func (c *checker) request(key string, call Call, sources ...Source) {
	c.that(slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, call.Method),
		key+".method", "must be GET, POST, PUT or DELETE")
	c.that(pathShape.MatchString(call.Path) && !dotted(call.Path), key+".path", "must be a plain path such as /status/{task}")
	if !slices.Contains(sources, FromTask) {
		c.that(!strings.Contains(call.Path, "{task}"), key+".path", "cannot hold {task}")
	}
	for name, source := range call.Query {
		c.that(name != "" && slices.Contains(sources, source), key+".query",
			fmt.Sprintf("a parameter must be named and come from one of %v", sources))
	}
}

func dotted(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." })
}

func (c *checker) create(create Create) {
	c.request("create", create.Call, FromModel, FromCallbackURL, FromClientRef)
	c.that(create.Method != http.MethodGet, "create.method", "cannot be GET")
	c.fields("create.fields", create.Fields)
	c.that(create.Fields.Task != "", "create.fields.task", "is missing")
	if i := create.Idempotency; i != nil {
		c.header("create.idempotency.header", i.Header)
		c.that(i.Window > 0, "create.idempotency.window", "must be longer than 0s")
	}
	seen := map[string]bool{}
	for _, m := range create.Body {
		c.that(m.Name == "" || !seen[m.Name], "create.body", "names a member twice")
		seen[m.Name] = true
		c.member(m)
	}
}

func (c *checker) member(m Member) {
	switch m.From {
	case FromModel, FromCallbackURL, FromClientRef:
		c.that(m.Name != "", "create.body", "a member has no name")
	case FromInput:
	case FromValue:
		c.that(m.Name != "" && jsontext.Value(m.Value).IsValid(), "create.body", "value must be named, valid JSON text")
	default:
		c.that(false, "create.body", "from must be model, input, callback_url, client_ref or value")
	}
	c.that(m.From == FromInput || m.Pointer == "", "create.body", "pointer needs from: input")
	c.that(m.From == FromValue || m.Value == "", "create.body", "value needs from: value")
	c.pointers("create.body.pointer", m.Pointer)
}

func (c *checker) callback(cb *CallbackSpec) {
	if cb == nil {
		return
	}
	hint := cb.Trust == TrustHint
	c.that(hint || cb.Trust == "" || cb.Trust == TrustSigned, "callback.trust", "must be signed or hint")
	_, known := webhook.Lookup(cb.Scheme)
	c.that(known || hint && cb.Scheme == "", "callback.scheme", fmt.Sprintf("must be one of %v", webhook.Names()))
	// It signs the address that was called, which may be another one in front of
	// every proxy; a description says nothing about it.
	c.that(cb.Scheme != "rfc9421", "callback.scheme", "must not be rfc9421, which is for endpoints")
	key := len(cb.Event.From) > 0
	c.that(cb.Event.Digest != key || hint && !key, "callback.event", "needs either from or digest: true")
	c.that(cb.Event.Digest || len(cb.Event.Volatile) == 0, "callback.event.volatile", "needs digest: true")
	for _, from := range cb.Event.From {
		if from != signedID {
			c.that(from != "", "callback.event.from", "holds an empty pointer")
			c.pointers("callback.event.from", from)
		}
	}
	for _, p := range cb.Event.Volatile {
		c.that(p != "", "callback.event.volatile", "holds an empty pointer")
		c.pointers("callback.event.volatile", p)
	}
	c.pointers("callback.type", cb.Type)
	c.that((cb.Type != "") == (len(cb.Types) > 0), "callback.types", "type and types go together")
	for word, kind := range cb.Types {
		c.that(word != "" && (kind == EventState || kind == EventProgress), "callback.types", "must map types to state or progress")
	}
	c.fields("callback.fields", cb.Fields)
	c.that(hint || cb.Fields.Task != "" && cb.Fields.State != "", "callback.fields", "task and state must be given")
}
