package strict_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/strict"
)

// The document and the answers of RFC 6901 §5.
const rfc6901 = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`

func TestExtractRFC6901(t *testing.T) {
	pointers := []string{"", "/foo", "/foo/0", "/", "/a~1b", "/c%d", "/e^f", "/g|h", `/i\j`, `/k"l`, "/ ", "/m~0n"}
	want := []string{rfc6901, `["bar","baz"]`, `"bar"`, "0", "1", "2", "3", "4", "5", "6", "7", "8"}
	got, err := strict.Extract([]byte(rfc6901), pointers...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pointers {
		if string(got[i].Raw) != want[i] {
			t.Errorf("%q: got %s, want %s", pointers[i], got[i].Raw, want[i])
		}
		if one, ok := strict.Lookup([]byte(rfc6901), pointers[i]); !ok || string(one.Raw) != want[i] {
			t.Errorf("Lookup %q: got %s", pointers[i], one.Raw)
		}
	}
}

func TestExtractPlaces(t *testing.T) {
	const doc = ` { "a" : { "b" : [ 10 , { "c" : null } , [ 12 , 13 ] ] , "b2" : 2 } , "\u0061~/" : true , "0" : "zero" } `
	for pointer, want := range map[string]string{
		"/a/b/0":                    "10",
		"/a/b/1/c":                  "null",
		"/a/b/2/1":                  "13",
		"/a/b2":                     "2",
		"/a~0~1":                    "true",
		"/0":                        `"zero"`,
		"/a/b/2":                    "[ 12 , 13 ]",
		"/a/b/00":                   "",
		"/a/b/+1":                   "",
		"/a/b/-":                    "",
		"/a/b/3":                    "",
		"/a/b/1/c/d":                "",
		"/a/":                       "",
		"/a/b/99999999999999999999": "",
	} {
		got, err := strict.Extract([]byte(doc), "/a", pointer, pointer)
		if err != nil {
			t.Fatal(err)
		}
		if string(got[1].Raw) != want || string(got[2].Raw) != want || !got[0].Present() || got[1].Present() != (want != "") {
			t.Errorf("%s: got %s, want %s", pointer, got[1].Raw, want)
		}
	}
}

func TestExtractChecksAllOfIt(t *testing.T) {
	for _, doc := range []string{
		`{"id":"x","other":{"a":1,"a":2}}`,
		`{"id":"x","id":"y"}`,
		`{"id":"x"} 1`,
		`{"id":"x"}]`,
		`{"id":"x","n":[1,]}`,
		`{"id":"x","n":"` + "\xc3" + `"}`,
		`{1:2}`, `{"id"}`, `{"id":"x"`, ``, ` `, `[}`, `{]`, `{"id":{"id":1]}`,
		`{"id":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	} {
		if got, err := strict.Extract([]byte(doc), "/id", "/id/id"); err == nil {
			t.Errorf("%s: taken, with %v", doc, got)
		}
	}
	if _, ok := strict.Lookup([]byte(`{"id":"x"} 1`), "/id"); ok {
		t.Error("Lookup takes a document that Check refuses")
	}
}

func TestExtractPointerErrors(t *testing.T) {
	for _, p := range []string{"a", "a/b", "/a~", "/a~2", "/~/"} {
		if _, err := strict.Extract([]byte(`{}`), "/ok", p); err == nil {
			t.Errorf("%q taken", p)
		}
	}
}

func TestExtractLeavesTheTextAlone(t *testing.T) {
	doc := []byte(rfc6901)
	got, err := strict.Extract(doc, "/foo/1", "/i\\j")
	if err != nil || string(doc) != rfc6901 {
		t.Fatalf("%v, text %s", err, doc)
	}
	if &got[0].Raw[0] != &doc[bytes.Index(doc, []byte(`"baz"`))] || cap(got[0].Raw) != 5 {
		t.Error("the value is not the text's own bytes, closed at their end")
	}
}

func TestValueReads(t *testing.T) {
	const doc = `{"s":"a\u00e9\n","i":9007199254740993,"min":-9223372036854775808,"over":9223372036854775808,"f":1.0,"e":12e2,
		"x":1.5,"big":1e999999999,"d":"0.120","bad":"1,5","sp":" 1","t":true,"n":null,"z":-0.0,"small":1.5e-7,"s3":"30e-1"}`
	at := func(p string) strict.Value { v, _ := strict.Lookup([]byte(doc), p); return v }
	if s, ok := at("/s").Text(); s != "aé\n" || !ok {
		t.Errorf("Text: %q %v", s, ok)
	}
	if b, ok := at("/t").Bool(); !b || !ok {
		t.Error("Bool")
	}
	if !at("/n").Null() || at("/absent").Null() || !at("/n").Present() {
		t.Error("Null")
	}
	for p, want := range map[string]int64{"/i": 9007199254740993, "/min": -9223372036854775808, "/f": 1, "/e": 1200, "/z": 0} {
		if n, ok := at(p).Int(); n != want || !ok {
			t.Errorf("Int %s: %d %v, want %d", p, n, ok, want)
		}
	}
	for _, p := range []string{"/over", "/x", "/big", "/d", "/t", "/n", "/absent", "/small"} {
		if n, ok := at(p).Int(); ok {
			t.Errorf("Int %s: %d", p, n)
		}
	}
	for p, want := range map[string]string{"/d": "0.120", "/x": "1.5", "/small": "1.5e-7", "/s3": "30e-1"} {
		if s, ok := at(p).Decimal(); s != want || !ok {
			t.Errorf("Decimal %s: %q %v", p, s, ok)
		}
	}
	for _, p := range []string{"/bad", "/sp", "/s", "/t", "/n", "/absent"} {
		if s, ok := at(p).Decimal(); ok {
			t.Errorf("Decimal %s: %q", p, s)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v", at("/d"), at("/d"), at("/d")); strings.Contains(s, "0.12") {
		t.Errorf("a printed value shows itself: %s", s)
	}
}

func sameJSON(a, b []byte) bool {
	return string(bytes.Trim(a, " \t\r\n")) == string(bytes.Trim(b, " \t\r\n"))
}

// lookupTree is RFC 6901 by the book: decode, then step.
func lookupTree(doc []byte, pointer string) (stdjson.RawMessage, bool) {
	raw := stdjson.RawMessage(doc)
	if pointer == "" {
		return raw, true
	}
	for ref := range strings.SplitSeq(pointer[1:], "/") {
		ref = strings.ReplaceAll(strings.ReplaceAll(ref, "~1", "/"), "~0", "~")
		switch bytes.TrimLeft(raw, " \t\r\n")[0] {
		case '{':
			var m map[string]stdjson.RawMessage
			if stdjson.Unmarshal(raw, &m) != nil || m[ref] == nil {
				return nil, false
			}
			raw = m[ref]
		case '[':
			var l []stdjson.RawMessage
			found := false
			if stdjson.Unmarshal(raw, &l) != nil {
				return nil, false
			}
			for i := range l {
				if fmt.Sprint(i) == ref {
					raw, found = l[i], true
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return raw, true
}

const callback = `{"code":200,"msg":"success","data":{"taskId":"job_0197f3c2a8e07d1b","model":"kling-2","state":"succeeded",` +
	`"cost":"0.120000","settled":true,"result":{"urls":["https://media.example.com/a.mp4","https://media.example.com/b.mp4"],` +
	`"meta":{"width":1920,"height":1080,"note":"a \"quoted\" word"}},"createTime":1767225600000,"completeTime":1767225660000},"request_id":"whd_1"}`

func BenchmarkExtract(b *testing.B) {
	doc := []byte(callback)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strict.Extract(doc, "/data/taskId", "/data/state", "/data/cost", "/data/settled", "/request_id"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	doc := []byte(callback)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strict.Check(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// The bound leaves room for the race detector, under which a sync.Pool forgets.
func TestExtractAllocatesLittle(t *testing.T) {
	doc := []byte(callback)
	allocs := testing.AllocsPerRun(100, func() {
		_, _ = strict.Extract(doc, "/data/taskId", "/data/state", "/request_id")
	})
	if allocs > 16 {
		t.Errorf("%v allocations, want at most 16", allocs)
	}
}

// A member that differs from a wanted one in letter case only has another
// meaning for another reader (JS-01, field case O-042).
func TestO042SameNameInTwoLetterCases(t *testing.T) {
	for _, doc := range []string{
		`{"status":"succeeded","STATUS":"failed","status":"succeeded"}`,
		`{"status":"succeeded","STATUS":"failed"}`,
		`{"STATUS":"failed","status":"succeeded"}`,
		`{"Status":"failed"}`,
		`{"data":{"status":"a"},"ſtatus":"b"}`,
	} {
		if _, err := strict.Extract([]byte(doc), "/status"); err == nil {
			t.Errorf("%s: accepted", doc)
		}
	}
	// Elsewhere in the document nobody asks, so nobody can be confused.
	if _, err := strict.Extract([]byte(`{"status":"a","result":{"Status":"b"},"Other":1,"other":2}`), "/status"); err != nil {
		t.Error(err)
	}
}
