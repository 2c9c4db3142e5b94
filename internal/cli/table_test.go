package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestTable(t *testing.T) {
	rows := []map[string]any{}
	err := decode([]byte(`[
		{"id":"op_1","cost":{"amount":"0.120000000","currency":"USD","settled":false},"at":"2026-05-28T20:26:40.123456Z","types":["a","b"]},
		{"id":"op_\u001b[31m2","cost":{"amount":"12.345678900","currency":"EUR","settled":true},"n":9007199254740993}
	]`), &rows)
	if err != nil {
		t.Fatal(err)
	}
	want := `ID             COST                     AT                    TYPES  N
op_1           0.12 USD (not settled)   2026-05-28 20:26:40Z  a,b    -
op_\x1b[31m2   12.3456789 EUR           -                     -      9007199254740993
`
	got := table(rows, "id", "cost", "at", "types", "n")
	if squeeze(got) != squeeze(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// Aligned: each column starts at one place in all lines.
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if at := strings.Index(lines[0], "COST"); strings.Index(lines[1], "0.12") != at || strings.Index(lines[2], "12.34") != at {
		t.Errorf("not aligned:\n%s", got)
	}
}

func squeeze(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

func TestDetails(t *testing.T) {
	got, err := details([]byte(`{"id":"op_1","empty":"","none":null,"state":"failed","error":{"code":"timeout"},"a\u0007b":true}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "id op_1\nstate failed\nerror {\"code\":\"timeout\"}\na\\ab true\n"
	if squeeze(got) != want {
		t.Errorf("got %q, want %q", squeeze(got), want)
	}
	got, err = details([]byte(`{"id":"rev_1","owner":null,"choices":[{"decision":"retry","note":null,"safe":true},{"decision":"discard","effect":"a\u0007 b"}],"decision":"x"}`))
	want = "id rev_1\ndecision x\n\nchoices\nDECISION SAFE EFFECT\nretry true -\ndiscard - a\\a b\n"
	if err != nil || squeeze(got) != want {
		t.Errorf("got %q, want %q (%v)", squeeze(got), want, err)
	}
	for _, text := range []string{`[1]`, `{"a":1} {}`, `{"a":1`} {
		if _, err := details([]byte(text)); err == nil {
			t.Errorf("%s is shown as an object", text)
		}
	}
}

func TestListOfObjectsInOneCell(t *testing.T) {
	var v any
	if err := decode([]byte(`[{"work":"submit","reason":"they are down","until":null},{"work":"read"}]`), &v); err != nil {
		t.Fatal(err)
	}
	if got, want := cell(v), "reason=they are down work=submit; work=read"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"Grüße, 世界 ✓":       "Grüße, 世界 ✓",
		"a\x1b]0;x\x07b":    `a\x1b]0;x\ab`,
		"a\u202eb":          `a\u202eb`,
		"a\u009bb":          `a\u009bb`,
		"tab\tline\n":       `tab\tline\n`,
		"bad \xff\xfe end":  `bad \xff\xfe end`,
		"zero\u200bwidth":   `zero\u200bwidth`,
		"no-break\u00a0gap": `no-break\u00a0gap`,
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := plain(s); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("plain(%q) = %q", s, got)
		}
	})
}

func FuzzDetails(f *testing.F) {
	f.Add([]byte(`{"a":{"amount":"1","currency":"USD"},"b":[{"c":1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := details(text); err == nil && strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("details(%q) = %q", text, got)
		}
		if _, err := details(text); err == nil && !json.Valid(text) {
			t.Errorf("details(%q) is taken for JSON", text)
		}
	})
}
