package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/redact"
	"github.com/pawlhq/pawl/webhook"
)

// Bounds of what is looked for in an answer: shorter values would hit words of
// the receiver's own.
const (
	minEcho  = 6
	maxEchos = 1000
	// minSignature is shorter than any signature, and longer than event ids.
	minSignature = 40
)

// privateNames are the members of an outbound event, in every dialect, that
// hold what belongs to the tenant.
var privateNames = map[string]bool{
	"metadata": true, "result": true, "message": true, "errorMessage": true, "callback_url": true,
}

// ownNames are those of an event that is about no operation, whose content has no
// names that are known.
var ownNames = map[string]bool{"data": true, "current": true}

// private gives the names that hold what belongs to the tenant in what is sent; all
// does where the event goes out as it came in.
func (j Job) private() (names map[string]bool, all bool) {
	switch {
	case j.delivery.Inbound && j.endpoint.Content == ledger.OriginalContent:
		return nil, true
	case j.delivery.Inbound, j.event.Operation.IsZero():
		return ownNames, false
	}
	return privateNames, false
}

// withoutEcho takes out of an answer what it repeats of our request. Error
// pages show it in any form, so it goes by value: the tenant's payloads, and
// the paths of addresses, which may be credentials (1-product H5).
func withoutEcho(answer, sent []byte, j Job) []byte {
	if len(answer) == 0 {
		return answer
	}
	var found echoes
	found.addAddress(j.endpoint.URL)
	names, all := j.private()
	var event any
	if json.Unmarshal(sent, &event) == nil {
		found.walk(event, names, all)
	} else if all {
		found.add(string(sent))
	}
	// Long ones first: they may hold others.
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, value := range found {
		for _, form := range forms(value) {
			pairs = append(pairs, form, "[sent]")
		}
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(answer)))
}

// echoes are values that are looked for.
type echoes []string

func (e *echoes) add(value string) {
	if len(value) >= minEcho && len(*e) < maxEchos {
		*e = append(*e, value)
	}
}

func (e *echoes) addAddress(address string) {
	if u, err := url.Parse(address); err == nil {
		e.add(u.RequestURI())
		e.add(u.EscapedPath())
		e.add(u.RawQuery)
	}
}

// walk adds the texts under the names, or every text if all of it is private.
func (e *echoes) walk(v any, names map[string]bool, private bool) {
	switch v := v.(type) {
	case string:
		if private {
			e.add(v)
			e.addAddress(v)
		}
	case []any:
		for _, inner := range v {
			e.walk(inner, names, private)
		}
	case map[string]any:
		for name, inner := range v {
			e.walk(inner, names, private || names[name])
		}
	}
}

// forms are a value as pages and the JSON of other languages show it: plain, in
// HTML, percent-encoded, and inside a JSON string as Go, JavaScript, Python and
// PHP write it.
func forms(value string) []string {
	exact, ascii := quoted(value)
	all := []string{value, html.EscapeString(value), url.QueryEscape(value), url.PathEscape(value), exact, ascii, strings.ReplaceAll(ascii, "/", `\/`)}
	if raw, err := json.Marshal(value); err == nil {
		all = append(all, string(raw[1:len(raw)-1]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// quoted is a text as it stands inside a JSON string, with what is beyond ASCII
// as it is and as escapes.
func quoted(text string) (exact, ascii string) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return text, text
	}
	exact = strings.TrimSpace(b.String())
	exact = exact[1 : len(exact)-1]
	var out strings.Builder
	for _, r := range exact {
		if r <= '~' {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return exact, out.String()
}

// withoutCredentials takes out of an answer what it repeats of what signed our
// request: the secrets in force and the signatures, in whatever encoding.
func (o *Outbox) withoutCredentials(j Job, sent http.Header, answer []byte, now time.Time) []byte {
	if len(answer) == 0 {
		return answer
	}
	text := string(answer)
	scheme, ok := webhook.Lookup(cmp.Or(j.endpoint.Scheme, schemeStandard))
	if !ok {
		return answer
	}
	for _, secret := range j.secrets(pawl.TimeOf(now)) {
		if key, err := o.keys.key(scheme, secret); err == nil {
			text = key.text.Remove(text, redact.Mark)
		}
	}
	// Most answers are shorter than a signature.
	if len(text) >= minSignature {
		text = redact.Values(signatures(sent, scheme)...).Remove(text, redact.Mark)
	}
	return []byte(text)
}

// signatures are those in a request's headers.
func signatures(sent http.Header, scheme webhook.Scheme) (all []string) {
	for _, name := range scheme.Headers() {
		for _, word := range strings.FieldsFunc(sent.Get(name), func(r rune) bool { return r == ' ' || r == ',' }) {
			if word = strings.TrimPrefix(word, "sha256="); len(word) >= minSignature {
				all = append(all, word)
			}
		}
	}
	return all
}
