package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"
)

// window is how much of a body is looked at: enough that what redaction
// removes does not leave the excerpt empty.
const window = 16 << 10

// textual are the content types whose bodies can be read by a person.
var textual = regexp.MustCompile(`^(?:text/[a-z0-9.+\-]+|application/(?:[a-z0-9.+\-]+\+)?(?:json|xml)|application/(?:x-www-form-urlencoded|javascript))$`)

// Excerpt is the bounded, redacted, printable beginning of a response body, at
// most max bytes long (1-product H5, SF-14). Redaction comes before cutting,
// so that half a secret cannot survive at the edge. Bodies that are no text
// give their size alone. The excerpt is still text from outside: HTML pages
// must escape it.
func Excerpt(body []byte, contentType string, max int) string {
	if len(body) == 0 || max <= 0 {
		return ""
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	unnamed := kind == "" && !utf8.Valid(body)
	if unnamed || kind != "" && !textual.MatchString(kind) || bytes.IndexByte(body, 0) >= 0 {
		return cut(fmt.Sprintf("[%d bytes, not text]", len(body)), max)
	}
	return cut(readable(body), max)
}

// readable redacts JSON by its structure and everything else by its text.
func readable(body []byte) string {
	if len(body) <= window {
		if text, ok := redactJSON(body); ok {
			return text
		}
		return Redact(string(body))
	}
	return Redact(string(body[:window])) + "…"
}

// redactJSON drops the values of denied names, whatever they hold.
func redactJSON(body []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return "", false
	}
	if _, scalar := v.(string); scalar {
		return "", false
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(redactValue(v)) != nil {
		return "", false
	}
	return oneLine(strings.TrimSuffix(out.String(), "\n")), true
}

func redactValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, value := range v {
			if denied(name) {
				clean[Redact(name)] = Redacted
			} else {
				clean[Redact(name)] = redactValue(value)
			}
		}
		return clean
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
		return v
	case string:
		return Redact(v)
	}
	return v
}

// cut shortens to at most max bytes, on a character boundary.
func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	const mark = "…"
	end := max - len(mark)
	if end <= 0 {
		return strings.Repeat(".", max)
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
