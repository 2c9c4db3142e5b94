package ledger

import (
	"encoding/json"
	"math/big"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/pawlhq/pawl"
)

// FuzzLinks: without its links a document is the same, by package json, and no
// link is left in it.
func FuzzLinks(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://h/a?b=c"}`, `["http://h",1.0,"x https://h",{"https://h":"https:\/\/h"}]`, `"\u0068ttps://h/\"q"`, `" https://h "`, `"HTTPS://H"`,
		`"https://"`, `"http://a b"`, `{"a":"\\","b":"https://h"}`, `1`, `"`, `"\`, `{"https://a" : 1}`, `"https://[::1"`, "\"https://h\u00a0x\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got := replaceLinks(doc, func(string) (string, bool) { return "art_x", true })
		var before, after any
		if json.Unmarshal([]byte(doc), &before) != nil {
			return
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Fatalf("%s became %s: %v", doc, got, err)
		}
		want, links := replaced(before)
		// Two names that are links become one name, of which JSON keeps the last.
		if links == 0 && got != doc || links > 0 && !reflect.DeepEqual(want, after) && !strings.Contains(doc, ":") {
			t.Errorf("%s became %s, want %v", doc, got, want)
		}
		if again := replaceLinks(got, func(link string) (string, bool) { t.Errorf("%s is left in %s", link, got); return "", false }); again != got {
			t.Errorf("%s became %s", got, again)
		}
	})
}

// replaced is a decoded document without its links, and how many there were.
func replaced(v any) (any, int) {
	switch v := v.(type) {
	case string:
		text := strings.ToLower(strings.TrimSpace(v))
		for _, scheme := range []string{"https://", "http://"} {
			if rest, ok := strings.CutPrefix(text, scheme); ok && rest != "" && strings.IndexFunc(rest, unicode.IsSpace) < 0 {
				return "art_x", 1
			}
		}
	case []any:
		out, n := make([]any, len(v)), 0
		for i := range v {
			var found int
			out[i], found = replaced(v[i])
			n += found
		}
		return out, n
	case map[string]any:
		out, n := make(map[string]any), 0
		for name, member := range v {
			changed, found := replaced(name)
			value, more := replaced(member)
			out[changed.(string)] = value
			n += found + more
		}
		return out, n
	}
	return v, 0
}

// FuzzSignedUntil: the ends that a link's query names, by integers of package
// big.
func FuzzSignedUntil(f *testing.F) {
	for _, seed := range []string{"1800000000", "0", "-1", "99999999999", "100000000000", "1e3", "", "+5", "007", " 5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ends := signedUntil(&url.URL{RawQuery: url.Values{"Expires": {text}}.Encode()})
		n, ok := new(big.Int).SetString(text, 10)
		ok = ok && len(text) <= 11 && !strings.ContainsRune(text, '_') && n.Sign() >= 0
		if ok != (len(ends) == 1) {
			t.Fatalf("%q: %v", text, ends)
		}
		if ok && ends[0] != pawl.TimeOf(time.Unix(n.Int64(), 0)) {
			t.Errorf("%q: %v", text, ends[0])
		}
	})
}
