package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// The request and the signatures that RFC 9421 prints in appendix B.
var appendixB = message{
	target{"https://example.com/foo?param=Value&Pet=dog", "example.com", "/foo", "?param=Value&Pet=dog"}, "POST",
	http.Header{"Date": {"Tue, 20 Apr 2021 02:07:55 GMT"}, "Content-Type": {"application/json"}, "Content-Length": {"18"}},
}

func TestMessageAppendixB(t *testing.T) {
	secret, _ := base64.StdEncoding.DecodeString("uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==")
	seed, _ := base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU")
	for name, c := range map[string]struct {
		input, base, signature string
		algorithm              algorithm
		key                    []byte
	}{
		"B.2.5": {
			`("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
			"\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@authority\": example.com\n\"content-type\": application/json\n",
			"pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=", hmacSHA256, secret,
		},
		"B.2.6": {
			`("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			"\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@method\": POST\n\"@path\": /foo\n\"@authority\": example.com\n\"content-type\": application/json\n\"content-length\": 18\n",
			"wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==", pureEd25519, ed25519.NewKeyFromSeed(seed),
		},
	} {
		members, ok := parseDictionary("sig=" + c.input)
		if !ok {
			t.Fatalf("%s: cannot be read", name)
		}
		base, ok := appendixB.base(members[0].sfItem)
		if want := c.base + `"@signature-params": ` + c.input; !ok || string(base) != want {
			t.Errorf("%s: base\n%s\nwant\n%s", name, base, want)
		}
		got := c.algorithm.sign(c.key, [][]byte{base})
		if base64.StdEncoding.EncodeToString(got) != c.signature || !c.algorithm.match(c.key, [][]byte{base}, [][]byte{got}) {
			t.Errorf("%s: %s", name, base64.StdEncoding.EncodeToString(got))
		}
	}
}

func TestParseDictionary(t *testing.T) {
	for text, want := range map[string][]sfMember{
		"a":                      {{"a", sfItem{value: true}}},
		"a=?0, *b=?1":            {{"a", sfItem{value: false}}, {"*b", sfItem{value: true}}},
		"a=1;p,\tb=-2 ":          {{"a", sfItem{int64(1), []sfParam{{"p", true}}}}, {"b", sfItem{value: int64(-2)}}},
		`a="x\"\\";q=*t/k`:       {{"a", sfItem{`x"\`, []sfParam{{"q", sfToken("*t/k")}}}}},
		"a=:aGk=:":               {{"a", sfItem{value: []byte("hi")}}},
		`a=( "x";k="v"  t );c=5`: {{"a", sfItem{[]sfItem{{"x", []sfParam{{"k", "v"}}}, {sfToken("t"), nil}}, []sfParam{{"c", int64(5)}}}}},
		"a=()":                   {{"a", sfItem{value: []sfItem{}}}},
		"a=999999999999999":      {{"a", sfItem{value: int64(999999999999999)}}},
	} {
		if got, ok := parseDictionary(text); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", ",", "a,", "a=", "A=1", "1a=1", "a=01", "a=-0", "a=1.5", "a=1000000000000000", "a=--1", "a=1, a=2", "a=(", `a=("x""y")`, "a=(1", `a="x`, `a="\x"`, "a=\"\x7f\"",
		"a=:aGk:", "a=:aGl=:", "a=:aGk=", "a=?2", "a=?", "a=@1", "a=1;", "a=1;P", "a=1;p=", "a=1;p;p", "a=1 b=2", "a =1", "a= 1", "a=1;p =2", "\ta=1", `a=%"x"`,
		strings.Repeat("a,", 3), "a=(" + strings.Repeat("1 ", 33) + ")", "é=1",
	} {
		if got, ok := parseDictionary(text); ok {
			t.Errorf("%q is read as %#v", text, got)
		}
	}
}

// FuzzParseDictionary: what is read is written in one way, which is read as the
// same again (RFC 9651 §4.1), and is no shorter than the keys and values in it.
func FuzzParseDictionary(f *testing.F) {
	for _, seed := range []string{
		`sig1=("@method" "@target-uri";req "content-digest");created=1618884473;keyid="a\"b";alg="hmac-sha256";tag=web`, "a, b;c=?0, d=:aGk=:", `x=( 1  "y" )`, "a=-1;b=*t", "a=1.5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, ok := parseDictionary(text)
		if !ok {
			return
		}
		parts := make([]string, len(members))
		for i, m := range members {
			parts[i] = m.key + "=" + m.text()
		}
		written := strings.Join(parts, ", ")
		again, ok := parseDictionary(written)
		if !ok || !reflect.DeepEqual(members, again) {
			t.Fatalf("%q is written as %q, which is read as %#v", text, written, again)
		}
		if strings.ContainsFunc(written, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q is written with other characters: %q", text, written)
		}
	})
}

// FuzzParseTarget: the address as it is signed is read as the same again, and its
// parts are those of it (RFC 9421 §2.2).
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"https://example.com/foo?param=Value&Pet=dog", "HTTP://H:80", "https://h?", "https://u:p@h:443/a%2Fb#x", "http://[::1]:8080/é", "/in", "ftp://h/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseTarget(text)
		if !ok {
			return
		}
		if again, ok := parseTarget(got.uri); !ok || again != got {
			t.Fatalf("%q is %+v, which is read as %+v", text, got, again)
		}
		scheme, rest, _ := strings.Cut(got.uri, "://")
		whole := got.authority + got.path
		if scheme != "http" && scheme != "https" || rest != whole && rest != whole+got.query || got.path[0] != '/' || got.query[0] != '?' {
			t.Fatalf("%q is %+v", text, got)
		}
	})
}
