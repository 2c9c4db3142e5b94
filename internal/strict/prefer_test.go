package strict_test

import (
	"math"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/strict"
)

// The forms are those of RFC 7240 §2 and §4.3; what is malformed is ignored.
func TestPreferWait(t *testing.T) {
	const none = -1
	for _, tc := range []struct {
		lines []string
		want  time.Duration
	}{
		{nil, none}, {[]string{""}, none}, {[]string{"respond-async"}, none},
		{[]string{"wait=10"}, 10 * time.Second}, {[]string{"wait=0"}, 0}, {[]string{"wait=007"}, 7 * time.Second},
		{[]string{"Wait = 10"}, 10 * time.Second}, {[]string{`wait="10"`}, 10 * time.Second},
		{[]string{"respond-async, wait=10"}, 10 * time.Second}, {[]string{"respond-async", "wait=10"}, 10 * time.Second},
		{[]string{"wait=10;foo=bar"}, 10 * time.Second}, {[]string{"wait=10; foo"}, 10 * time.Second},
		{[]string{"handling=lenient, wait=100, respond-async"}, 100 * time.Second},
		{[]string{`foo="a, wait=3; \", wait=4", wait=5`}, 5 * time.Second},
		{[]string{"wait=10, wait=20"}, 10 * time.Second}, {[]string{"wait=10", "wait=20"}, 10 * time.Second},
		{[]string{"foo;wait=3"}, none}, {[]string{"await=3"}, none},
		{[]string{"wait"}, none}, {[]string{"wait="}, none}, {[]string{`wait=""`}, none}, {[]string{"wait=ten"}, none},
		{[]string{"wait=-1"}, none}, {[]string{"wait=+1"}, none}, {[]string{"wait=1.5"}, none}, {[]string{"wait=1 2"}, none},
		{[]string{`wait="10`}, none}, {[]string{"wait=x, wait=10"}, none},
		{[]string{"wait=99999999999999999999"}, math.MaxInt32 * time.Second},
	} {
		got, ok := strict.PreferWait(tc.lines)
		if ok != (tc.want != none) || ok && got != tc.want {
			t.Errorf("%q: got %s %v, want %s", tc.lines, got, ok, tc.want)
		}
	}
}

func FuzzPreferWait(f *testing.F) {
	for _, seed := range []string{"wait=10", `foo="a, wait=3", wait="5"; x`, "respond-async, wait=1", `wait="\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := strict.PreferWait([]string{line})
		if got < 0 || !ok && got != 0 {
			t.Fatalf("%q: %v %v", line, got, ok)
		}
		if again, _ := strict.PreferWait([]string{"respond-async, " + line}); ok && again != got {
			t.Fatalf("%q behind another preference: %v, want %v", line, again, got)
		}
	})
}
