package strict_test

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlhq/pawl/internal/strict"
)

var documents = []string{
	rfc6901, callback, `[1.0,1e0,-0,1e-7,1E400,123456789012345678901234567890]`, `{"a":"\u000f","A":"\ud83d\ude00"}`, `1e999999999`,
	`{"model":"a","count":1,"inner":{"tags":{}}}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[[[`, `null`, "\xff", `{"model":"\ud800"}`, `{"count":1.0}`,
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), "\ufeff{}", `{"a":1}x`, ` { } `,
}

// loneSurrogate may be half a character, which package json lets pass and no
// text in UTF-8 can hold.
var loneSurrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// wellFormed is what package json and a count say of a text: JSON in UTF-8, at
// most 64 levels, no name twice in one object.
func wellFormed(doc []byte) bool {
	if !utf8.Valid(doc) || !stdjson.Valid(doc) {
		return false
	}
	d := stdjson.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	type object struct {
		names map[string]bool
		value bool // a value is next, not a name
	}
	var open []object
	for {
		token, err := d.Token()
		if err == io.EOF {
			return true
		}
		if token == stdjson.Delim('}') || token == stdjson.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if top := len(open) - 1; top >= 0 && open[top].names != nil {
			if open[top].value = !open[top].value; open[top].value {
				name := token.(string)
				if open[top].names[name] {
					return false
				}
				open[top].names[name] = true
				continue
			}
		}
		switch token {
		case stdjson.Delim('{'):
			open = append(open, object{names: map[string]bool{}})
		case stdjson.Delim('['):
			open = append(open, object{})
		}
		if len(open) > 64 {
			return false
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := strict.Check(doc)
		if want := wellFormed(doc); (err == nil) != want && !(want && loneSurrogate.Match(doc)) {
			t.Fatalf("%q: %v, want well-formed %v", doc, err, want)
		}
	})
}

// FuzzDecode: what is taken, package json reads as the same value.
func FuzzDecode(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want submit
		if strict.Decode(data, &got) != nil {
			return
		}
		if err := strict.Check(data); err != nil {
			t.Fatalf("%q is decoded, and Check says %v", data, err)
		}
		d := stdjson.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %+v, package json reads %+v, %v", data, got, want, err)
		}
	})
}

// FuzzCanonical: the canonical form is one of the same value, and its own.
func FuzzCanonical(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		once, err := strict.Canonical(doc)
		if err != nil {
			if strict.Check(doc) == nil && !strings.Contains(err.Error(), "exponent") {
				t.Fatalf("%v of a well-formed text %q", err, doc)
			}
			return
		}
		if err := strict.Check(doc); err != nil {
			t.Fatalf("Canonical takes what Check refuses: %v", err)
		}
		twice, err := strict.Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%v: %s became %s", err, once, twice)
		}
		if a, b := tree(t, doc), tree(t, once); !same(a, b) {
			t.Fatalf("%q became %q, which is another value", doc, once)
		}
	})
}

func tree(t *testing.T, doc []byte) (v any) {
	d := stdjson.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// same compares values, numbers as rationals.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for name := range a {
			if ok = ok && same(a[name], b[name]); !ok {
				return false
			}
		}
		return ok && len(a) == len(b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case stdjson.Number:
		b, ok := b.(stdjson.Number)
		x, y := rational(a.String()), rational(b.String())
		return ok && (x == nil || y == nil || x.Cmp(y) == 0)
	}
	return a == b
}

// rational is nil for numbers that would need too much room.
func rational(number string) *big.Rat {
	if i := strings.IndexAny(number, "eE"); i >= 0 && len(number)-i > 5 {
		return nil
	}
	r, _ := new(big.Rat).SetString(number)
	return r
}

// FuzzExtract compares with a walk over a decoded tree.
func FuzzExtract(f *testing.F) {
	f.Add([]byte(rfc6901), "/foo/1")
	f.Add([]byte(`[{"a":[1,2]},{"a":{"~/":0}}]`), "/1/a/~0~1")
	f.Add([]byte(`{"a":1,"a":2}`), "/a")
	f.Add([]byte(`{"Foo":1,"foo":{"bar":2}}`), "/foo/bar")
	f.Add([]byte(`{"a":[{"b":1},{"B":2}]}`), "/a/0/b")
	f.Add([]byte(`{"A/b":1}`), "/a~1b")
	f.Add([]byte(`{"A~1b":1}`), "/a~1b")
	f.Fuzz(func(t *testing.T, doc []byte, pointer string) {
		got, err := strict.Extract(doc, pointer, "")
		if strict.CheckPointer(pointer) != nil {
			if err == nil {
				t.Fatalf("%q is no pointer", pointer)
			}
			return
		}
		sound := strict.Check(doc) == nil
		confusing := sound && strings.Contains(pointer, "/") && resembled(doc, pointer)
		if (err == nil) != (sound && !confusing) {
			t.Fatalf("%q of %q: %v; well-formed %v, with names in two letter cases %v", pointer, doc, err, sound, confusing)
		}
		if err != nil {
			return
		}
		want, ok := lookupTree(doc, pointer)
		if ok != got[0].Present() {
			t.Fatalf("%q in %q: found %v, want %v", pointer, doc, got[0].Present(), ok)
		}
		if ok && !sameJSON(want, got[0].Raw) {
			t.Fatalf("%q in %q: %s, want %s", pointer, doc, got[0].Raw, want)
		}
		if string(got[1].Raw) != string(bytes.Trim(doc, " \t\r\n")) {
			t.Fatalf("the whole: %q", got[1].Raw)
		}
	})
}

// resembled reports whether an object on the pointer's way has a name that
// differs from the wanted one in letter case only.
func resembled(doc []byte, pointer string) bool {
	at := ""
	for ref := range strings.SplitSeq(pointer[1:], "/") {
		raw, ok := lookupTree(doc, at)
		var object map[string]stdjson.RawMessage
		if ok && stdjson.Unmarshal(raw, &object) == nil {
			plain := strings.ReplaceAll(strings.ReplaceAll(ref, "~1", "/"), "~0", "~")
			for name := range object {
				if name != plain && strings.EqualFold(name, plain) {
					return true
				}
			}
		}
		at += "/" + ref
	}
	return false
}

// FuzzCheckPointer holds the grammar of RFC 6901 §3.
func FuzzCheckPointer(f *testing.F) {
	for _, seed := range []string{"", "/", "/a~1b/~0", "a", "/~", "/~2", "/é\x00", "//", "/a~"} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^(?s:/([^~/]|~[01])*)*$`)
	f.Fuzz(func(t *testing.T, text string) {
		// A pattern reads broken UTF-8 as a character, which is none of these.
		if want := grammar.MatchString(text); (strict.CheckPointer(text) == nil) != want {
			t.Fatalf("%q: want a pointer %v", text, want)
		}
	})
}

// FuzzValue: what a value is read as agrees with package json and package big.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		`"a\u00e9\n"`, "9007199254740993", "-9223372036854775808", "9223372036854775808", "12e2", "1.5", `"0.120"`, `"30e-1"`, `" 1"`, "true", "null", "-0.0", "[1]",
		"1e-0", `"\ud83d\ude00"`,
	} {
		f.Add([]byte(seed))
	}
	number := regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, ok := strict.Lookup(doc, "")
		if !ok {
			return
		}
		want := tree(t, doc)
		text, isText := v.Text()
		if s, ok := want.(string); ok != isText || text != s {
			t.Fatalf("%q: text %q %v", doc, text, isText)
		}
		flag, isFlag := v.Bool()
		if b, ok := want.(bool); ok != isFlag || flag != b {
			t.Fatalf("%q: bool %v %v", doc, flag, isFlag)
		}
		if v.Null() != (want == nil) {
			t.Fatalf("%q: null %v", doc, v.Null())
		}
		n, isNumber := want.(stdjson.Number)
		decimal, isDecimal := v.Decimal()
		if s, ok := want.(string); ok && (number.MatchString(s) != isDecimal || isDecimal && decimal != s) || isNumber && (!isDecimal || decimal != n.String()) {
			t.Fatalf("%q: decimal %q %v", doc, decimal, isDecimal)
		}
		whole, isWhole := v.Int()
		if r := rational(n.String()); isNumber && r != nil && (isWhole != (r.IsInt() && r.Num().IsInt64()) || isWhole && r.Num().Int64() != whole) {
			t.Fatalf("%q: int %d %v", doc, whole, isWhole)
		}
		if !isNumber && isWhole {
			t.Fatalf("%q: int %d", doc, whole)
		}
	})
}
