package outbox

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pawlhq/pawl/internal/ledger"
)

// FuzzWithoutEcho: nothing that belongs to the tenant survives in an answer that
// repeats it, in the forms in which error pages do.
func FuzzWithoutEcho(f *testing.F) {
	for _, seed := range []string{"", " a\"b<c>&\\", "é\u2028", "/x?y=z", "\n", "[sent]"} {
		f.Add("before", seed, "after", uint(0), false)
		f.Add("", seed, "", uint(1), true)
		f.Add("<p>", seed, "</p>", uint(2), false)
		f.Add("q=", seed, "&", uint(4), false)
		f.Add("/", seed, "/", uint(5), false)
		f.Add("{", seed, "}", uint(6), true)
	}
	j := Job{event: ledger.Event{Operation: id(1)}, endpoint: ledger.Endpoint{URL: "https://h.example/hook/S3KRIT?a=b"}}
	f.Fuzz(func(t *testing.T, before, value, after string, form uint, nested bool) {
		if strings.Contains(before+after, "S3KRIT") || !json.Valid([]byte(quotedText(value))) {
			return
		}
		value = "S3KRIT" + value
		var private any = value
		if nested {
			private = map[string]any{"a": []any{1, value}}
		}
		sent, err := json.Marshal(map[string]any{"type": "x", "data": map[string]any{"metadata": private}})
		if err != nil {
			t.Fatal(err)
		}
		// What was sent is what can be repeated: without broken UTF-8.
		var back struct{ Data struct{ Metadata any } }
		if err := json.Unmarshal(sent, &back); err != nil {
			t.Fatal(err)
		}
		if text, ok := back.Data.Metadata.(string); ok {
			value = text
		} else {
			value = back.Data.Metadata.(map[string]any)["a"].([]any)[1].(string)
		}
		shown := [...]string{
			value, quotedText(value), html.EscapeString(value), "https://h.example/hook/S3KRIT?a=b", url.QueryEscape(value), url.PathEscape(value), byPython(value),
		}[form%7]
		got := withoutEcho([]byte(before+shown+after), sent, j)
		if strings.Contains(string(got), "S3KRIT") {
			t.Fatalf("%q with %q gives %q", before+shown+after, sent, got)
		}
	})
}

// Of an event that is about no operation all data is the tenant's, and of one that
// goes out as it came in everything; its id and type may be quoted.
func TestEchoOfOtherEvents(t *testing.T) {
	own := Job{}
	inbound := Job{delivery: ledger.Delivery{Inbound: true}}
	original := Job{delivery: ledger.Delivery{Inbound: true}, endpoint: ledger.Endpoint{Content: ledger.OriginalContent}}
	for _, c := range []struct {
		job                Job
		sent, answer, want string
	}{
		{own, `{"id":"evt_1","type":"order.placed","data":{"note":"a private word"}}`, "evt_1 order.placed: a private word", "evt_1 order.placed: [sent]"},
		{inbound, `{"id":"evt_1","type":"order.placed","data":["a private word"],"current":{"a":"other private"}}`,
			"order.placed: a private word, other private", "order.placed: [sent], [sent]"},
		{original, `{"message_":"a private word"}`, "no: a private word", "no: [sent]"},
		{original, `a private word`, "cannot take a private word", "cannot take [sent]"},
	} {
		if got := string(withoutEcho([]byte(c.answer), []byte(c.sent), c.job)); got != c.want {
			t.Errorf("%q, of %q, gives %q, want %q", c.answer, c.sent, got, c.want)
		}
	}
}

// byPython is json.dumps as it writes by default: everything beyond ASCII as an
// escape.
func byPython(value string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(value)) {
		switch {
		case unit == '"' || unit == '\\':
			out.WriteString(`\` + string(rune(unit)))
		case unit == '\n':
			out.WriteString(`\n`)
		case unit == '\r':
			out.WriteString(`\r`)
		case unit == '\t':
			out.WriteString(`\t`)
		case unit == '\b':
			out.WriteString(`\b`)
		case unit == '\f':
			out.WriteString(`\f`)
		case unit < ' ' || unit > '~':
			fmt.Fprintf(&out, `\u%04x`, unit)
		default:
			out.WriteRune(rune(unit))
		}
	}
	return `"` + out.String() + `"`
}

func quotedText(value string) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
