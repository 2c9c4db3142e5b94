package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/internal/redact"
)

// encodings are the ways in which others repeat a value. Those of Base64 are over
// whatever stands around it.
var encodings = map[string]func(value, before, after string) string{
	"plain":          func(v, _, _ string) string { return v },
	"upper case":     func(v, _, _ string) string { return upper(v) },
	"query":          func(v, _, _ string) string { return url.QueryEscape(v) },
	"path":           func(v, _, _ string) string { return url.PathEscape(v) },
	"query twice":    func(v, _, _ string) string { return url.QueryEscape(url.QueryEscape(v)) },
	"percent":        func(v, _, _ string) string { return each("%%%02x", v) },
	"percent twice":  func(v, _, _ string) string { return each("%%25%02X", v) },
	"HTML":           func(v, _, _ string) string { return html.EscapeString(v) },
	"HTML numbers":   func(v, _, _ string) string { return each("&#%d;", v) },
	"HTML hex":       func(v, _, _ string) string { return each("&#x%x;", v) },
	"JSON":           func(v, _, _ string) string { return quoted(v) },
	"JSON in JSON":   func(v, _, _ string) string { return quoted(strings.ReplaceAll(quoted(v), "/", `\/`)) },
	"literal":        func(v, _, _ string) string { q := strconv.QuoteToASCII(v); return q[1 : len(q)-1] },
	"bytes":          func(v, _, _ string) string { return each(`\x%02x`, v) },
	"hex":            func(v, b, a string) string { return hex.EncodeToString([]byte(b + v + a)) },
	"upper hex":      func(v, b, a string) string { return strings.ToUpper(hex.EncodeToString([]byte(b + v + a))) },
	"Base64":         func(v, b, a string) string { return base64.StdEncoding.EncodeToString([]byte(b + v + a)) },
	"Base64 raw":     func(v, b, a string) string { return base64.RawStdEncoding.EncodeToString([]byte(b + v + a)) },
	"Base64 URL":     func(v, b, a string) string { return base64.URLEncoding.EncodeToString([]byte(b + v + a)) },
	"Base64 raw URL": func(v, b, a string) string { return base64.RawURLEncoding.EncodeToString([]byte(b + v + a)) },
	"Base64 in query": func(v, b, a string) string {
		return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(b + v + a)))
	},
	"Base64 in HTML": func(v, b, a string) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(b+v+a)), "+", "&#43;")
	},
	"Base64 in PHP": func(v, b, a string) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(b+v+a)), "/", `\/`)
	},
}

func upper(text string) string {
	raw := []byte(text)
	for i, c := range raw {
		if 'a' <= c && c <= 'z' {
			raw[i] = c - 'a' + 'A'
		}
	}
	return string(raw)
}

func each(format, value string) string {
	var b strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&b, format, value[i])
	}
	return b.String()
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw[1 : len(raw)-1])
}

// secrets of the forms that there are.
var secretForms = []string{
	`pawl_sk_[0-9a-z]{32,40}`, `sk-[A-Za-z0-9_\-]{12,30}`, `[A-Za-z0-9]{6,40}`, `[0-9a-f]{32}`, `[A-Za-z0-9+/]{8,43}=`,
	`[!-$'-\[\]-~]{6,24}`, `[a-z]{4,8}%[0-9a-f]{2}[a-z]{4}`, `[a-z]{4}[\\&"<]{1,3}[a-z]{6}`, `[a-z]{4}é東[a-z]{6}`,
}

// Any value in any encoding, anywhere in a text, is gone; the words around it are
// there as before.
func TestNothingOfAValueIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.OneOf(patterns(secretForms)...).Draw(t, "secret")
		f := redact.Values("", "x", rapid.StringMatching(`[A-Z]{12}`).Draw(t, "other"), secret)
		// What user:key has before the key moves its Base64.
		user := rapid.StringMatching(`[a-z]{0,5}:?`).Draw(t, "user")
		more := rapid.StringMatching(`[a-z]{0,4}`).Draw(t, "more")
		before, after := rapid.SampledFrom(frames).Draw(t, "before"), rapid.SampledFrom(frames[:len(frames)-2]).Draw(t, "after")
		for _, name := range slices.Sorted(maps.Keys(encodings)) {
			hidden := encodings[name](secret, user, more)
			got := f.Remove(before+hidden+after, redact.Mark)
			if want := before + redact.Mark + after; got != want {
				t.Fatalf("%s: %q gives %q, want %q", name, before+hidden+after, got, want)
			}
		}
	})
}

// frames stand beside a value without being part of it; the last ones before it
// only.
var frames = []string{"", " ", `"`, `": "`, "'", "(", ")", " the key ", "<td>", "</td>", ", and more:", "\n", "é", "{\"error\":\"", "key: ", "Basic "}

func patterns(all []string) (of []*rapid.Generator[string]) {
	for _, p := range all {
		of = append(of, rapid.StringMatching(p))
	}
	return of
}

// The bytes behind a whsec_ are as secret as its text.
func TestKeyBehindPrefix(t *testing.T) {
	raw := []byte("\x00\x01binary \xfe\xff key of 24 bts")
	for _, prefix := range []string{"whsec_", "whsk_"} {
		f := redact.Values(prefix + base64.StdEncoding.EncodeToString(raw))
		for name, encode := range encodings {
			if strings.Contains(name, "JSON") || strings.Contains(name, "case") || name == "literal" {
				continue // Those change what is no text.
			}
			for _, user := range []string{"", "u", "u:"} {
				text := "say " + encode(string(raw), user, "") + "."
				if got := f.Remove(text, redact.Mark); got != "say "+redact.Mark+"." {
					t.Errorf("%s: %q gives %q", name, text, got)
				}
			}
		}
		if got := f.Remove(base64.RawURLEncoding.EncodeToString(raw), ""); got != "" {
			t.Errorf("the body of %s is left: %q", prefix, got)
		}
	}
}

func TestInnocentTextStays(t *testing.T) {
	f := redact.Values("sk-Test0123456789", "whsec_dGhlIHdlYmhvb2sga2V5IG9mIHRlc3Rz", "abc", "")
	for _, text := range []string{
		"", "a", "no credit", "the key is wrong", "must begin with whsec_ or sk-Test", "100%", "50% off & more; \\ back", "%", "&#", "\\u00", "&#x;", "&#;",
		"dGhlIHdlYmhvb2s", "sk-Test012345678", "op_01h455vb4pex5vsknk084sn02q", "abc", "東京 café",
		"d68f3c2a1b0e4d5f68f3c2a1b0e4d5f", strings.Repeat("a", 5000),
	} {
		if got := f.Remove(text, "X"); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	var none *redact.Finder
	if got := none.Remove("text", "X"); got != "text" {
		t.Errorf("no finder gives %q", got)
	}
	if got := fmt.Sprintf("%v %+v %#v %s", f, f, f, f); strings.Contains(got, "est0123") {
		t.Errorf("a finder prints %q", got)
	}
}

func TestSeveralInOneText(t *testing.T) {
	f := redact.Values("firstSecret", "firstSecretLonger", "second-secret")
	for text, want := range map[string]string{
		"firstSecretfirstSecret":                    "XX",
		"firstSecretLonger, second-secret":          "X, X",
		"firstSecret second%2Dsecret SECOND-SECRET": "X X X",
		"firstSecre second-secre":                   "firstSecre second-secre",
	} {
		if got := f.Remove(text, "X"); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestShapes(t *testing.T) {
	const token = "01h455vb4pex5vsknk084sn02q" + "0123456789abcdef0123456789abcdef"
	for text, want := range map[string]string{
		"callback " + token + " refused": "callback 01h455vb4pex5vsknk084sn02qX refused",
		"/hooks/up/" + token:             "/hooks/up/01h455vb4pex5vsknk084sn02qX",
		token + token:                    token + token,
		strings.Repeat("0123abcd", 8):    strings.Repeat("0123abcd", 8),
		"op_01h455vb4pex5vsknk084sn02q":  "op_01h455vb4pex5vsknk084sn02q",
		"keys begin with pawl_sk_":       "keys begin with pawl_sk_",
		"pawl%5Fsk%5Fabcdefgh!":          "X!",
		"(" + base64.StdEncoding.EncodeToString([]byte("user:pawl_sk_0123456789")) + ")": "(X)",
		"(" + base64.StdEncoding.EncodeToString([]byte("uses:whsec_0123456789")) + ")":   "(X)",
		"a " + hex.EncodeToString([]byte("whsec_abcdef")) + ".":                          "a X.",
		base64.StdEncoding.EncodeToString([]byte("whsec_")):                              base64.StdEncoding.EncodeToString([]byte("whsec_")),
	} {
		if got := redact.Shapes(text, "X"); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestLinks(t *testing.T) {
	for text, want := range map[string]string{
		"see //cdn.example/x?sig=1 now":        "see X now",
		"(//cdn.example/x) \"//h\"":            `(X "X"`,
		"//cdn.example/?sig=1":                 "X",
		`"\/\/cdn.example\/x?sig=1"`:           `"X"`,
		"next=%2F%2Fcdn.example%2Fx%3Fsig%3D1": "next=X",
		"%252f%252fcdn.example":                "X",
		"at cdn.example/x.mp4?sig=abc, soon":   "at X soon",
		"x%3Ftoken%3Dabc":                      "X",
		"https://h.example/x":                  "https://h.example/x",
		"a // b":                               "a // b",
		"path//to/it":                          "path//to/it",
		"why? because x=1":                     "why? because x=1",
		"50% of 3/4":                           "50% of 3/4",
	} {
		if got := redact.Links(text, "X"); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

// FuzzRemove: whatever stands around a value, no encoding of it is left, text that
// holds none is unchanged, and what was good UTF-8 remains so.
func FuzzRemove(f *testing.F) {
	f.Add("sk-0123456789", "before ", " after")
	f.Add("a%41b&amp;c", "%", "%2")
	f.Add(`back\\slash`, `\`, `\u00`)
	f.Add("whsec_c2VjcmV0c2VjcmV0", "d", "=")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < 6 || strings.Contains(strings.ToLower(redact.Mark), strings.ToLower(secret[:2])) {
			return
		}
		find := redact.Values(secret)
		for name, encode := range encodings {
			text := before + " " + encode(secret, "", "") + " " + after
			if got := find.Remove(text, redact.Mark); strings.Contains(got, encode(secret, "", "")) {
				t.Fatalf("%s: %q gives %q", name, text, got)
			} else if utf8.ValidString(text) && utf8.ValidString(secret) && !utf8.ValidString(got) {
				t.Fatalf("%s: %q gives broken %q", name, text, got)
			}
		}
	})
}

func TestNoAllocationWithoutAMatch(t *testing.T) {
	f, text := benchmark()
	if n := testing.AllocsPerRun(20, func() { redact.Shapes(f.Remove(text, "X"), "X") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// benchmark is a page of 16 KiB, escapes and all, and an upstream's credentials.
func benchmark() (*redact.Finder, string) {
	f := redact.Values("sk-Test0123456789abcdefghij", "whsec_dGhlIHdlYmhvb2sga2V5IG9mIHRlc3Rz", "whsec_YW5vdGhlciB3ZWJob29rIGtleSBvZg")
	line := `<td>Error 500: \"cannot reach the model\" at step 3 &amp; 4 (job 0191f2c4-77aa-7c1e) https%3A%2F%2Fh.example%2F` + "\n"
	return f, strings.Repeat(line, 16<<10/len(line))
}

func BenchmarkRemove(b *testing.B) {
	f, text := benchmark()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		f.Remove(text, "X")
	}
}

func BenchmarkValues(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		redact.Values("sk-Test0123456789abcdefghij", "whsec_dGhlIHdlYmhvb2sga2V5IG9mIHRlc3Rz")
	}
}
