package strict_test

import (
	stdjson "encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/internal/strict"
)

func canonical(t *testing.T, in string) string {
	t.Helper()
	out, err := strict.Canonical([]byte(in))
	if err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	return string(out)
}

func TestCanonicalNumbers(t *testing.T) {
	for want, spellings := range map[string][]string{
		"1":                              {"1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000000000000000000000000000000", "1e-0", "1e00"},
		"0":                              {"0", "-0", "0.0", "-0.0e5", "0e99999999999999999999999"},
		"9007199254740992":               {"9007199254740992", "9007199254740992.0", "9.007199254740992e15"},
		"9007199254740993":               {"9007199254740993", "9007199254740993.00"},
		"-0.15":                          {"-0.15", "-15e-2", "-0.150"},
		"0.000001":                       {"0.000001", "1e-6"},
		"1e-7":                           {"0.0000001", "1e-7"},
		"1.5e-7":                         {"0.00000015", "15e-8"},
		"100000000000000000000":          {"1e20", "100000000000000000000"},
		"1e+21":                          {"1e21", "1000000000000000000000", "1000e18"},
		"1e+999999999":                   {"1e999999999", "10e999999998"},
		"1e-999999999":                   {"1e-999999999"},
		"12345678901234567890.123456789": {"12345678901234567890.123456789"},
	} {
		for _, in := range spellings {
			if got := canonical(t, in); got != want {
				t.Errorf("%s: got %s, want %s", in, got, want)
			}
			if got := canonical(t, ` {"n": [`+in+` ] } `); got != `{"n":[`+want+`]}` {
				t.Errorf("inside: %s: got %s", in, got)
			}
		}
	}
}

func TestCanonicalNamesOrderStrings(t *testing.T) {
	for in, want := range map[string]string{
		// RFC 8785 §3.2.3, the order of UTF-16 code units.
		`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`: "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		// RFC 8785 §3.2.2.2, strings.
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:                 `"€$\u000f\nA'B\"\\\\\"/"`,
		`{"b":{"z":1,"a":[1.0,"1.0",{"y":null,"x":true}]},"a":"-1e5, 2"}`: `{"a":"-1e5, 2","b":{"a":[1,"1.0",{"x":true,"y":null}],"z":1}}`,
		`"\\"`: `"\\"`,
		`[]`:   `[]`,
	} {
		if got := canonical(t, in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, in := range []string{`{"a":1,"a":1}`, `{"a":1} ` + "x", `01`, `1e`, ``, "\"\xff\"", `"\udead"`, `[1e1000000000000000000]`, `1e` + strings.Repeat("9", 100000)} {
		if out, err := strict.Canonical([]byte(in)); err == nil {
			t.Errorf("%.40s: %.40s", in, out)
		}
	}
}

func TestCanonicalHugeExponentIsCheap(t *testing.T) {
	in := []byte(`[1e999999999,-1e-999999999,0.1e999999999]`)
	if n := testing.AllocsPerRun(20, func() { _, _ = strict.Canonical(in) }); n > 100 {
		t.Errorf("%v allocations", n)
	}
}

func TestCanonicalLeavesTheTextAlone(t *testing.T) {
	in := []byte(`{"b":1.0,"a":2}`)
	if _, err := strict.Canonical(in); err != nil || string(in) != `{"b":1.0,"a":2}` {
		t.Errorf("%v: %s", err, in)
	}
}

// Equal as rationals and equal as canonical text are the same thing.
func TestCanonicalNumberEquality(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(r *rapid.T) {
		a, b := number.Draw(r, "a"), number.Draw(r, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		ca, cb := canonical(t, a), canonical(t, b)
		if (x.Cmp(y) == 0) != (ca == cb) {
			t.Errorf("%s and %s: canonical %s and %s", a, b, ca, cb)
		}
		z, _ := new(big.Rat).SetString(ca)
		if x.Cmp(z) != 0 {
			t.Errorf("%s became %s", a, ca)
		}
	})
}

// For numbers that a double holds exactly as written, an independent
// implementation of RFC 8785 agrees.
func TestCanonicalAgreesWithJCS(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		doc := map[string]any{}
		for range rapid.IntRange(0, 6).Draw(r, "members") {
			number := strconv.FormatFloat(float64(rapid.IntRange(-1<<53, 1<<53).Draw(r, "n"))/float64(int(1)<<rapid.IntRange(0, 8).Draw(r, "shift")), 'g', -1, 64)
			doc[rapid.String().Draw(r, "name")] = []any{rapid.String().Draw(r, "text"), stdjson.Number(number), rapid.Bool().Draw(r, "bool"), nil}
		}
		in, err := stdjson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := canonical(t, string(in)); got != string(want) {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	})
}
