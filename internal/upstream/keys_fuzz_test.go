package upstream

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

// FuzzEventKey: two events have one key only if all of its parts are equal.
func FuzzEventKey(f *testing.F) {
	f.Add("a", "b", "a", "b")
	f.Add("a&b", "c", "a", "b&c")
	f.Add("a%26b", "c", "a&b", "c")
	f.Add(strings.Repeat("x", 200), strings.Repeat("y", 200), strings.Repeat("x", 200), strings.Repeat("z", 200))
	f.Add("1", "é", " 1", "")
	k := EventKey{From: []string{"/a", "/b"}}
	keyOf := func(t *testing.T, a, b string) (key string, parts [2]string) {
		body, err := json.Marshal(map[string]string{"a": a, "b": b})
		if err != nil {
			t.Fatal(err)
		}
		d, err := readDocument(body, k.From...)
		if err != nil {
			t.Fatal(err)
		}
		return k.key(d, body, ""), [2]string{d.id("/a"), d.id("/b")}
	}
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, first := keyOf(t, a, b)
		other, second := keyOf(t, c, d)
		if (one == "") != (first[0] == "" || first[1] == "") || len(one) > maxID {
			t.Fatalf("%q gives %q", first, one)
		}
		if one != "" && (one == other) != (first == second) {
			t.Fatalf("%q gives %q, %q gives %q", first, one, second, other)
		}
	})
}

// FuzzVolatile: a key by digest stands for everything but the volatile members,
// wherever they are and whatever they hold.
func FuzzVolatile(f *testing.F) {
	f.Add(`1`, `{"a":[2]}`, `"x"`)
	f.Add(`"2026-01-01"`, `null`, `{"t":1}`)
	f.Add(` 1 `, `1`, `{"at":{"t":1}}`)
	k := EventKey{Digest: true, Volatile: []string{"/at/t", "/t"}}
	f.Fuzz(func(t *testing.T, one, other, rest string) {
		body := func(volatile, rest string) []byte {
			return []byte(`{"r":` + rest + `,"t":` + volatile + `,"at":{"t":` + volatile + `,"u":` + rest + `}}`)
		}
		a, b := body(one, rest), body(other, rest)
		if _, err := readDocument(a); err != nil || !json.Valid([]byte(one)) || !json.Valid([]byte(other)) || !json.Valid([]byte(rest)) {
			return
		}
		if _, err := readDocument(b); err != nil {
			return
		}
		key := k.key(document{}, a, "")
		if strings.TrimSpace(one) == one && strings.TrimSpace(other) == other && key != k.key(document{}, b, "") {
			t.Fatalf("%s and %s have two keys", a, b)
		}
		if c := body(one, `[`+rest+`]`); key == k.key(document{}, c, "") {
			t.Fatalf("%s and %s have one key", a, c)
		}
	})
}

// FuzzCallbackToken: only the token that was made for an operation at a source
// opens it, to the letter.
func FuzzCallbackToken(f *testing.F) {
	c := NewCallbacks("https://pawl.example.com", []byte("key"))
	id := pawl.NewID(1_760_000_000_000_000, 7)
	token := c.Token("up", id)
	for _, seed := range []string{token, strings.ToUpper(token), token + "0", token[1:], "", token[:26], strings.Repeat("0", 58), token[:57] + "g"} {
		f.Add("up", seed)
		f.Add("down", seed)
	}
	f.Fuzz(func(t *testing.T, source, token string) {
		got, ok := c.Operation(source, token)
		if ok && (c.Token(source, got) != token || !strings.HasSuffix(c.URL(source, got), "/"+token)) || !ok && got != (pawl.ID{}) {
			t.Fatalf("%q at %q opens %v", token, source, got)
		}
		// The right token for any operation that the text may name.
		if id, err := pawl.ParseSuffix(token[:min(len(token), 26)]); err == nil {
			if got, ok := c.Operation(source, c.Token(source, id)); !ok || got != id {
				t.Fatalf("the token of %v at %q opens %v", id, source, got)
			}
		}
	})
}

// FuzzParseBase: a call goes to the address that was given, with the call's path
// behind it.
func FuzzParseBase(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com", "http://127.0.0.1:8080/v1/", "https://u:p@h", "https://h?x", "https://h#", "ftp://h", "https://", "https://h/../x",
		"https://h/%2e%2e/x", "https://h//", "HTTPS://H/a b", "https://h/a\x00", "https:h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		base, err := parseBase(address)
		if err != nil {
			return
		}
		given, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		called, err := url.Parse(base + "/tasks")
		if err != nil || called.Scheme != given.Scheme || called.Host != given.Host || called.Path != strings.TrimRight(given.Path, "/")+"/tasks" ||
			called.RawQuery+called.Fragment != "" || called.User != nil {
			t.Fatalf("%q is called at %v, %v", address, called, err)
		}
	})
}

// FuzzMessage: a provider's text is short, printable, and holds no link and not
// the credential.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{"no credit", "see https://h/x?t=1", "HTTPS%3A//h", "www.example.com/a", "data:,x", "sk-test", "sk-sk-testtest", "a\x00b\u202e\xff", strings.Repeat("é", 300)} {
		f.Add(seed)
	}
	u := testUpstream(f, "media-v2", "https://up.example.com")
	f.Fuzz(func(t *testing.T, text string) {
		got := u.message(text)
		checkText(t, "", got)
		if strings.Contains(got, "sk-test") || strings.Contains(got, "://") {
			t.Fatalf("%q gives %q", text, got)
		}
	})
}
