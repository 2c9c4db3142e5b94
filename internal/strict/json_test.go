package strict_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/strict"
)

type submit struct {
	Model string            `json:"model"`
	Count int64             `json:"count"`
	Tags  map[string]string `json:"tags"`
	At    time.Time         `json:"at"`
	Inner *submit           `json:"inner"`
}

func TestDecodeAccepts(t *testing.T) {
	var got submit
	err := strict.Decode([]byte(` {"model":"a\u00e9","count":9223372036854775807,"tags":{"k":"1","K":"2"},"inner":{"model":"b"}} `), &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.Model != "aé" || got.Count != 9223372036854775807 || got.Tags["K"] != "2" || got.Inner.Model != "b" {
		t.Errorf("decoded %+v", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ in, pointer, reason string }{
		"unknown name":      {`{"model":"a","modle":"b"}`, "/modle", "unknown name"},
		"case variant":      {`{"Model":"a"}`, "/Model", "unknown name"},
		"duplicate":         {`{"model":"a","model":"b"}`, "/model", "the same name twice"},
		"escaped duplicate": {`{"model":"a","mod\u0065l":"b"}`, "/model", "the same name twice"},
		"inner duplicate":   {`{"tags":{"a":"1","a":"2"}}`, "/tags/a", "the same name twice"},
		"trailing":          {`{"model":"a"}{}`, "", "not well-formed"},
		"trailing comma":    {`{"model":"a",}`, "", "not well-formed"},
		"comment":           {`{/**/"model":"a"}`, "", "not well-formed"},
		"cut":               {`{"model":"a"`, "", "ends too early"},
		"empty":             {``, "", "ends too early"},
		"invalid UTF-8":     {"{\"model\":\"\xff\"}", "", "invalid UTF-8"},
		"lone surrogate":    {`{"model":"\ud800"}`, "/model", "not well-formed"},
		"byte order mark":   {"\ufeff{}", "", "not well-formed"},
		"wrong kind":        {`{"count":"12"}`, "/count", "number wanted, not string"},
		"time as number":    {`{"at":12}`, "/at", "string wanted, not number"},
		"time misspelled":   {`{"at":"yesterday"}`, "/at", "string not accepted"},
		"overflow":          {`{"count":9223372036854775808}`, "/count", "number not accepted"},
		"leading zero":      {`{"count":01}`, "", "not well-formed"},
	} {
		t.Run(name, func(t *testing.T) {
			var v submit
			err := strict.Decode([]byte(tc.in), &v)
			var refused *strict.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want *strict.Error", err)
			}
			if refused.Pointer != tc.pointer && tc.pointer != "" || !strings.Contains(refused.Reason, tc.reason) {
				t.Errorf("got %q, want %q at %q", err, tc.reason, tc.pointer)
			}
		})
	}
}

func TestErrorsHoldNoValues(t *testing.T) {
	const canary = "c4n4ry"
	for _, in := range []string{
		`{"count":"` + canary + `"}`,
		`{"at":"` + canary + `"}`,
		`{"model":"` + canary + `","model":"` + canary + `"}`,
		`{"model":"` + canary + `"} "` + canary + `"`,
		`{"model":"` + canary + `\x"}`,
		`{"model":` + canary + `}`,
		`{"count":"` + canary + "\xff" + `"}`,
	} {
		var v submit
		for _, err := range []error{strict.Decode([]byte(in), &v), strict.Check([]byte(in))} {
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%s: the error repeats the value: %v", in, err)
			}
		}
	}
}

func TestErrorShortensNames(t *testing.T) {
	name := strings.Repeat("é", 1000)
	var v submit
	err := strict.Decode([]byte(`{"`+name+`":1}`), &v)
	if err == nil || len(err.Error()) > 400 || strings.ContainsRune(err.Error(), '\uFFFD') {
		t.Errorf("got an error of %d bytes: %v", len(err.Error()), err)
	}
}

func TestDepthLimit(t *testing.T) {
	nested := func(n int, open, inside, end string) []byte {
		return []byte(strings.Repeat(open, n) + inside + strings.Repeat(end, n))
	}
	for _, tc := range []struct {
		doc []byte
		ok  bool
	}{
		{nested(64, "[", "1", "]"), true},
		{nested(65, "[", "1", "]"), false},
		{nested(64, `{"a":`, "1", "}"), true},
		{nested(65, `{"a":`, "1", "}"), false},
		{nested(32, `[{"a":`, "1", "}]"), true},
		{[]byte(`"` + strings.Repeat("[", 100) + `\"` + strings.Repeat("{", 100) + `"`), true},
		{nested(1_000_000, "[", "", ""), false},
	} {
		var v any
		if err := strict.Check(tc.doc); (err == nil) != tc.ok {
			t.Errorf("Check(%.20s...): %v", tc.doc, err)
		}
		if err := strict.Decode(tc.doc, &v); (err == nil) != tc.ok {
			t.Errorf("Decode(%.20s...): %v", tc.doc, err)
		}
		if _, err := strict.Canonical(tc.doc); (err == nil) != tc.ok {
			t.Errorf("Canonical(%.20s...): %v", tc.doc, err)
		}
	}
}
