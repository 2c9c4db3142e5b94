package strict_test

import (
	"errors"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/internal/strict"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const absent = -1
	for in, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 7\t": 7 * time.Second, "007": 7 * time.Second,
		"86400": 24 * time.Hour, "86401": 24 * time.Hour, strings.Repeat("9", 400): 24 * time.Hour,
		"Mon, 30 Nov 2026 12:01:30 GMT":  90 * time.Second,
		"Monday, 30-Nov-26 12:01:30 GMT": 90 * time.Second,
		"Mon Nov 30 12:01:30 2026":       90 * time.Second,
		"Sun, 29 Nov 2026 12:00:00 GMT":  0,
		"Tue, 30 Nov 2027 12:00:00 GMT":  24 * time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT":  24 * time.Hour,
		"":                               absent, " ": absent, "-5": absent, "1.5": absent, "+3": absent, "1000abc": absent, "0x10": absent, "1e3": absent,
		"1 2": absent, "12,13": absent, "٣": absent, "soon": absent, "2026-11-30T12:01:30Z": absent, "Mon, 31 Nov 2026 12:00:00 GMT": absent,
	} {
		got, ok := strict.RetryAfter(in, now)
		if ok != (want != absent) || (ok && got != want) {
			t.Errorf("%q: got %v %v, want %v", in, got, ok, want)
		}
	}
}

// FuzzRetryAfter: seconds are what package big reads, dates what net/http does,
// and there is nothing else.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "-5", "Mon, 30 Nov 2026 12:01:30 GMT", "1.5", "Monday, 30-Nov-26 12:01:30 GMT", "Mon Nov 30 12:01:30 2026", "٣", "00012"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	seconds := regexp.MustCompile(`^[0-9]+$`)
	f.Fuzz(func(t *testing.T, value string) {
		text := strings.Trim(value, " \t")
		date, err := http.ParseTime(text)
		want, wanted := time.Duration(0), true
		switch {
		case seconds.MatchString(text):
			n, _ := new(big.Int).SetString(text, 10)
			if want = strict.MaxRetryAfter; n.Cmp(big.NewInt(86_400)) < 0 {
				want = time.Duration(n.Int64()) * time.Second
			}
		case err == nil:
			want = min(max(date.Sub(now), 0), strict.MaxRetryAfter)
		default:
			wanted = false
		}
		if got, ok := strict.RetryAfter(value, now); got != want || ok != wanted {
			t.Fatalf("%q: %v %v, want %v %v", value, got, ok, want, wanted)
		}
	})
}

func TestIdempotencyKey(t *testing.T) {
	long := strings.Repeat("k", 255)
	for in, want := range map[string]string{
		`8e03978e-40d5-43dd-bc93-6894a57f9324`:   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`"8e03978e-40d5-43dd-bc93-6894a57f9324"`: "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`"a\"b\\c"`:                              `a"b\c`, `a"b\c`: `a"b\c`, " k ": "k", `k;a=1`: "k;a=1", long: long, `"` + long + `"`: long, "!~": "!~",
		// RFC 9651 §3.1.2: parameters may follow an Item, and none is defined for this one.
		`"k";a=1`: "k", `"k";a`: "k", `"k"; a;b="x;\"y";c=tok/en:1;d=:aGk=:;e=?0;f=-1.5;g=@1659578233`: "k", `"k";*=*`: "k", `"a;b=1"`: "a;b=1",
	} {
		if got, err := strict.IdempotencyKey([]string{in}); err != nil || got != want {
			t.Errorf("%s: got %q %v", in, got, err)
		}
	}
	for _, in := range []string{
		"", " ", `""`, `"`, `"a`, `"a"b`, `"a";`, `"a";P=1`, `"a" ;p=1`, `"a";p=`, `"a";p=1,`, `"a";p=1.`, `"a";p=?2`, `"a";p=:!:`, `"a";p=@1.5`, `"a";p="x`, `"a";p=1;`, `"a";p=é`,
		`"a";p=1234567890123456`, `"a", "b"`, `"a b"`, "a b", "a, b", `"a\n"`, `"a\`, `"\`, "é", `"é"`, "a\x00b", "a\x7f",
		long + "k", `"` + long + `k"`, "a\tb",
	} {
		if got, err := strict.IdempotencyKey([]string{in}); !errors.Is(err, strict.ErrKeyInvalid) {
			t.Errorf("%q: got %q %v", in, got, err)
		}
	}
	if _, err := strict.IdempotencyKey(nil); !errors.Is(err, strict.ErrKeyMissing) {
		t.Errorf("none: %v", err)
	}
	h := http.Header{}
	h.Add("Idempotency-Key", "k")
	h.Add("idempotency-key", "k")
	if _, err := strict.IdempotencyKey(h.Values("Idempotency-Key")); !errors.Is(err, strict.ErrKeyRepeated) {
		t.Errorf("two lines: %v", err)
	}
}

func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

func TestIdempotencyKeyFormsAreEqual(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.StringMatching(`[!#-~][!-~]{0,254}`).Draw(r, "key")
		bare, err1 := strict.IdempotencyKey([]string{key})
		inQuotes, err2 := strict.IdempotencyKey([]string{quoted(key)})
		if err1 != nil || err2 != nil || bare != key || inQuotes != key {
			t.Errorf("%q: %q %v, %q %v", key, bare, err1, inQuotes, err2)
		}
	})
}

// FuzzIdempotencyKey: the two forms by the grammars of RFC 9651 §3.3.3 and of
// visible characters, and both give the same keys.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{`"a\"b"`, "bare", `"a";p`, `"a"; p=1;q="\"";r=t*;s=:aGk=:;t=?1;u=-1.25;v=@7`, `"`, "a b", "\t\"k\" ", `"\\"`, `"a\`, `"é"`} {
		f.Add(seed)
	}
	// A String without the blank, with parameters (RFC 9651 §3.1.2, §3.3), and a token of anything visible.
	item := `(?:-?[0-9]{1,12}\.[0-9]{1,3}|@?-?[0-9]{1,15}|"(?:[ !#-\[\]-~]|\\["\\])*"|[A-Za-z*][!#$%&'*+\-.^_` + "`" + `|~:/0-9A-Za-z]*|:[A-Za-z0-9+/=]*:|\?[01])`
	inQuotes := regexp.MustCompile(`^"((?:[!#-\[\]-~]|\\["\\])+)"(?:; *[a-z*][a-z0-9_\-.*]*(?:=` + item + `)?)*$`)
	bare := regexp.MustCompile(`^[!#-~][!-~]*$`)
	unescaped := regexp.MustCompile(`\\(.)`)
	f.Fuzz(func(t *testing.T, value string) {
		text := strings.Trim(value, " \t")
		want := ""
		if m := inQuotes.FindStringSubmatch(text); m != nil {
			want = unescaped.ReplaceAllString(m[1], "$1")
		} else if bare.MatchString(text) {
			want = text
		}
		if len(want) > strict.MaxKeyLength {
			want = ""
		}
		key, err := strict.IdempotencyKey([]string{value})
		if key != want || (err == nil) != (want != "") {
			t.Fatalf("%q: %q %v, want %q", value, key, err, want)
		}
		if err != nil {
			return
		}
		if again, err := strict.IdempotencyKey([]string{quoted(key)}); err != nil || again != key {
			t.Fatalf("%q: %q, then %q %v", value, key, again, err)
		}
	})
}
