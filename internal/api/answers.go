package api

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl/internal/ledger"
)

// reasons are the problem types that a route refuses with, by status. Tests
// hold every answer against them.
type reasons map[int][]string

// answerHeader is a header of a route's successes.
type answerHeader struct {
	name string
	// status is that of the answers that have it; zero for all successes.
	status int
	// optional says that it may be missing.
	optional bool
}

// headerDocs are the headers of answers that mean something to a client. An
// answer has none of them that its route does not describe.
var headerDocs = map[string]string{
	"Accept":                 "What is accepted as content type.",
	"ETag":                   "The version, for If-Match of a change.",
	"Idempotency-Replayed":   "true where this answers a request that was carried out before.",
	"Link":                   `The next page as rel="next", or documentation as rel="describedby".`,
	"Location":               "The path of what was made, or of what a repeat stands for.",
	"Pawl-Request-Id":        "Names the request to support.",
	"Pawl-Endpoint-Sequence": "The last sequence in the endpoint's stream now: what is above the last one of this answer is still to come.",
	"Preference-Applied":     "wait=N where the answer waited, for N seconds at most.",
	"Retry-After":            "Seconds after which it makes sense to ask again.",
	"WWW-Authenticate":       "How to authenticate.",
}

// refusals are the reasons of a route with those that follow from what it
// takes.
func (rt route) refusals(in reflect.Type) reasons {
	all := reasons{
		http.StatusBadRequest:      {"invalid_query"},
		http.StatusUnauthorized:    {"unauthenticated"},
		http.StatusTooManyRequests: {"rate_limited"},

		http.StatusRequestHeaderFieldsTooLarge: {"headers_too_large"},
		http.StatusInternalServerError:         {"internal"},
		http.StatusServiceUnavailable:          {"unavailable"},
	}
	add := func(applies bool, status int, words ...string) {
		if applies {
			all[status] = append(all[status], words...)
		}
	}
	body := rt.method == http.MethodPost || rt.method == http.MethodPatch
	add(rt.scope != 0, http.StatusForbidden, "insufficient_scope")
	add(rt.scope != ledger.ScopeAdmin, http.StatusForbidden, "tenant_forbidden")
	add(strings.Contains(rt.path, "{id}"), http.StatusNotFound, "not_found")
	add(rt.paged, http.StatusBadRequest, "invalid_page_token")
	add(body, http.StatusBadRequest, "invalid_json")
	add(body && in != reflect.TypeFor[none]() || rt.explained(), http.StatusBadRequest, "invalid_request")
	add(body, http.StatusRequestTimeout, "body_timeout")
	add(body, http.StatusRequestEntityTooLarge, "content_too_large")
	add(body, http.StatusUnsupportedMediaType, "unsupported_media_type")
	add(rt.keyed != 0, http.StatusBadRequest, "idempotency_key_invalid")
	add(rt.keyed == required, http.StatusBadRequest, "idempotency_key_missing")
	add(rt.keyed != 0, http.StatusConflict, "idempotency_key_in_use")
	add(rt.keyed != 0, http.StatusUnprocessableEntity, "idempotency_mismatch")
	add(rt.match, http.StatusPreconditionFailed, "version")
	add(rt.match, http.StatusPreconditionRequired, "if_match_missing")
	add(rt.intake, http.StatusServiceUnavailable, "disk_full")
	for status, words := range rt.refuses {
		add(true, status, words...)
	}
	for status, words := range all {
		slices.Sort(words)
		all[status] = slices.Compact(words)
	}
	return all
}

// answers describe everything that a route may answer.
func (a *api) answers(rt route, in, out reflect.Type) map[string]*huma.Response {
	answers := make(map[string]*huma.Response)
	for _, status := range append([]int{rt.status}, rt.also...) {
		answer := &huma.Response{Description: http.StatusText(status), Headers: a.headersOf(rt, status)}
		if out != reflect.TypeFor[none]() && status != http.StatusNoContent && status != http.StatusNotModified {
			shown := out
			if t, ok := rt.shows[status]; ok {
				shown = t
			}
			answer.Content = map[string]*huma.MediaType{"application/json": {Schema: a.doc.Components.Schemas.Schema(shown, true, rt.name+"Answer")}}
		}
		answers[strconv.Itoa(status)] = answer
	}
	for status, words := range rt.refusals(in) {
		answers[strconv.Itoa(status)] = a.refusal(status, words)
	}
	return answers
}

func (a *api) headersOf(rt route, status int) map[string]*huma.Param {
	headers := map[string]*huma.Param{"Pawl-Request-Id": a.header("Pawl-Request-Id", true)}
	if rt.paged {
		headers["Link"] = a.header("Link", false)
	}
	if rt.keyed != 0 {
		headers["Idempotency-Replayed"] = a.header("Idempotency-Replayed", false)
	}
	for _, h := range rt.headers {
		if h.status == 0 || h.status == status {
			headers[h.name] = a.header(h.name, !h.optional)
		}
	}
	return headers
}

// header refers to the description of a header.
func (a *api) header(name string, always bool) *huma.Param {
	component := name
	if !always {
		component += "-Optional"
	}
	headers := a.doc.Components.Headers
	if headers[component] == nil {
		headers[component] = &huma.Header{Description: headerDocs[name], Required: always, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return &huma.Header{Ref: "#/components/headers/" + component}
}

// refusalHeaders are the headers of refusals that do not only say something
// for people.
var refusalHeaders = map[int]string{
	http.StatusUnauthorized:         "WWW-Authenticate",
	http.StatusUnsupportedMediaType: "Accept",
	http.StatusTooManyRequests:      "Retry-After",
	http.StatusServiceUnavailable:   "Retry-After",
}

// refusal describes the answers of a status that refuse for one of these
// reasons. What refuses for one reason only is described once.
func (a *api) refusal(status int, words []string) *huma.Response {
	a.tells(status, words)
	enum := make([]any, len(words))
	lines := make([]string, len(words))
	for i, word := range words {
		enum[i], lines[i] = word, word+": "+titles[word]
	}
	headers := map[string]*huma.Param{"Pawl-Request-Id": a.header("Pawl-Request-Id", true)}
	if name := refusalHeaders[status]; name != "" {
		headers[name] = a.header(name, true)
	}
	if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "idempotency_key_") }) {
		headers["Link"] = a.header("Link", false)
	}
	answer := &huma.Response{
		Description: strings.Join(lines, "; "), Headers: headers,
		Content: map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{AllOf: []*huma.Schema{
			a.doc.Components.Schemas.Schema(reflect.TypeFor[problem](), true, "Problem"),
			{Properties: map[string]*huma.Schema{
				"reason": {Type: huma.TypeString, Enum: enum},
				"status": {Type: huma.TypeInteger, Enum: []any{status}},
			}},
		}}}},
	}
	if len(words) > 1 {
		return answer
	}
	name := camel(words[0]) + strconv.Itoa(status)
	a.doc.Components.Responses[name] = answer
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// camel writes a reason as the name of a component.
func camel(word string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(word, "_") {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return name.String()
}

// withReasons are reasons with more of one status.
func withReasons(of reasons, status int, words ...string) reasons {
	all := maps.Clone(of)
	all[status] = slices.Concat(of[status], words)
	return all
}
