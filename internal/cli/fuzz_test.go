package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

// FuzzParseMoment: what is sent is a moment that the API reads, the one that was
// given, and never none.
func FuzzParseMoment(f *testing.F) {
	for _, seed := range []string{"2h", "1.5s", "-1h", "0s", "2026-01-31T18:00:00Z", "1970-01-01T00:00:00Z", "2026-01-31T8:00:00Z", "2026-01-31T18:00:00,5+01:00", "2562047h", "never"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseMoment("--deadline", text, now)
		if err != nil || text == "" {
			if got != "" {
				t.Fatalf("%q: %q beside %v", text, got, err)
			}
			return
		}
		at, err := strict.ParseTime(got)
		if err != nil {
			t.Fatalf("%q is sent as %q: %v", text, got, err)
		}
		want, bad := time.Parse(time.RFC3339, strings.ToUpper(text))
		if d, err := time.ParseDuration(text); err == nil {
			want, bad = now.Add(d), nil
			if d <= 0 {
				t.Fatalf("%q is no time to come", text)
			}
		}
		if leap := strings.Contains(text, ":60"); !leap && (bad != nil || want.Truncate(time.Microsecond).Compare(at) != 0) {
			t.Fatalf("%q is sent as %q, want %v", text, got, want)
		}
	})
}

// FuzzParseCost: what is sent is the amount and currency that were given.
func FuzzParseCost(f *testing.F) {
	for _, seed := range []string{"0.12:USD", "1", "1:usd", ":USD", "1:USD:EUR", "-1:USD", "0.0000000001:USD", "1e3:USD"} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?):([A-Z]{3})$`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseCost("--expected-cost", text)
		m := form.FindStringSubmatch(text)
		if err != nil {
			if m != nil {
				if _, bad := pawl.ParseAmount(m[1]); bad == nil {
					t.Fatalf("%q is refused", text)
				}
			}
			return
		}
		if m == nil || got.Currency != m[2] {
			t.Fatalf("%q is sent as %+v", text, got)
		}
		given, err1 := pawl.ParseAmount(m[1])
		sent, err2 := pawl.ParseAmount(got.Amount)
		if err1 != nil || err2 != nil || given != sent {
			t.Fatalf("%q is sent as %+v", text, got)
		}
	})
}

// FuzzParseHeaders: a header is read back as it is written down.
func FuzzParseHeaders(f *testing.F) {
	for _, seed := range []string{"webhook-id: msg_1", "a:", ":a", "a", " a : b:c ", "a: \t b", "é: x", "a\n: b"} {
		f.Add(seed, "webhook-timestamp: 1")
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		h, err := parseHeaders([]string{one, other})
		if err != nil {
			if strings.Contains(one, ":") && strings.Contains(other, ":") && strings.TrimSpace(one[:strings.Index(one, ":")]) != "" &&
				strings.TrimSpace(other[:strings.Index(other, ":")]) != "" {
				t.Fatalf("%q and %q are refused", one, other)
			}
			return
		}
		var lines []string
		values := 0
		for name, all := range h {
			for _, value := range all {
				lines = append(lines, name+": "+value)
				values++
				if name == "" || strings.Trim(value, " \t") != value {
					t.Fatalf("%q and %q give %q", one, other, h)
				}
			}
		}
		again, err := parseHeaders(lines)
		if err != nil || values != 2 || len(again) != len(h) {
			t.Fatalf("%q and %q give %q, and again %q, %v", one, other, h, again, err)
		}
	})
}

// FuzzRecall: a remembered key is the one that the file holds, or there is an
// error that says what to do.
func FuzzRecall(f *testing.F) {
	for _, seed := range []string{`{"key":"cli-1","started":"2026-11-30T11:00:00Z"}`, `{"key":""}`, `{`, ``, `{"key":"k","started":"2020-01-01T00:00:00Z"}`, `[]`, "\x00"} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(f.TempDir(), "state")
	m := memory{dir: filepath.Dir(path), now: func() time.Time { return now }}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := m.read(path)
		if err != nil {
			if got.Key != "" || !strings.Contains(err.Error(), "--new") {
				t.Fatalf("%q: %+v %v", text, got, err)
			}
			return
		}
		var kept struct {
			Key     string
			Started time.Time
		}
		if err := json.Unmarshal(text, &kept); err != nil || kept.Key != got.Key || got.Key == "" || !got.Again || now.Sub(kept.Started) > keyLife {
			t.Fatalf("%q: %+v, want %+v, %v", text, got, kept, err)
		}
	})
}

// FuzzVector: a vector is judged by the scheme of its provider alone.
func FuzzVector(f *testing.F) {
	f.Add(`{"provider":"standard-webhooks","secret":"` + exampleSecret + `","headers":{"webhook-id":"a","webhook-timestamp":"1","webhook-signature":"v1,AA=="},"body_base64":"e30=","now_unix":1}`)
	f.Add(`{"provider":"nobody"}`)
	f.Add(`{"provider":"media-v2","secret":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		var v vector
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		_, known := webhook.Lookup(v.Provider)
		// Nobody can have signed what the fuzzer made, but for a secret in it.
		if got := v.judge(); got != "unknown" && got != "invalid" && v.Secret == "" || (got == "unknown") == known {
			t.Fatalf("%q is %s", text, got)
		}
	})
}
