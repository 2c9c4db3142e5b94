package strict_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/internal/strict"
)

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		// RFC 3339 §5.8.
		"1985-04-12T23:20:50.52Z":        "1985-04-12T23:20:50.520000Z",
		"1996-12-19T16:39:57-08:00":      "1996-12-20T00:39:57.000000Z",
		"1990-12-31T23:59:60Z":           "1991-01-01T00:00:00.000000Z",
		"1990-12-31T15:59:60-08:00":      "1991-01-01T00:00:00.000000Z",
		"1937-01-01T12:00:27.87+00:20":   "1937-01-01T11:40:27.870000Z",
		"2026-01-02t03:04:05z":           "2026-01-02T03:04:05.000000Z",
		"2026-01-02T03:04:05-00:00":      "2026-01-02T03:04:05.000000Z",
		"2026-01-02T03:04:05.123456999Z": "2026-01-02T03:04:05.123456Z",
		"2026-01-02T23:59:59+23:59":      "2026-01-02T00:00:59.000000Z",
		"2024-02-29T00:00:00Z":           "2024-02-29T00:00:00.000000Z",
		"2016-12-31T23:59:60.5Z":         "2017-01-01T00:00:00.500000Z",
		"0001-01-01T00:00:00Z":           "0001-01-01T00:00:00.000000Z",
		"9999-12-31T23:59:59.999999Z":    "9999-12-31T23:59:59.999999Z",
	} {
		got, err := strict.ParseTime(in)
		if err != nil || got.UTC().Format(sixDigits) != want {
			t.Errorf("%s: got %s %v, want %s", in, got.UTC().Format(sixDigits), err, want)
		}
	}
}

func TestParseTimeRefuses(t *testing.T) {
	for _, in := range []string{
		"", "2026-01-02", "2026-01-02T03:04Z", "2026-01-02T03:04:05", "2026-01-02T03:04:05,5Z", "2026-01-02T3:04:05Z",
		"2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+23:60", "2026-01-02T24:00:00Z", "2026-01-02T23:60:00Z",
		"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
		"2026-01-02 03:04:05Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05+01", "2026-01-02T03:04:05Z[Europe/Berlin]",
		"2026-01-02T03:04:60Z", "2026-01-02T23:59:60Z", "2026-01-31T23:59:60+01:00", "2026-01-31T23:59:61Z", "0000-01-01T00:00:00Z",
		"0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", " 2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z ", "+026-01-02T03:04:05Z",
		"2026-01-02T03:04:05.5٣Z", "2026-01-02T03:04:05-1:000", "2026-01-02\x5403:04:05\x5a\x00", "2026/01/02T03:04:05Z",
	} {
		if got, err := strict.ParseTime(in); err == nil {
			t.Errorf("%q: taken as %v", in, got)
		}
	}
}

// sixDigits is RFC 3339 in UTC with six digits of a second.
const sixDigits = "2006-01-02T15:04:05.000000Z"

func TestParseTimeReadsWhatPackageTimeWrites(t *testing.T) {
	micros := rapid.Int64Range(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro())
	rapid.Check(t, func(r *rapid.T) {
		a := time.UnixMicro(micros.Draw(r, "a")).UTC()
		if back, err := strict.ParseTime(a.Format(sixDigits)); err != nil || !back.Equal(a) {
			t.Errorf("%v came back as %v: %v", a, back, err)
		}
	})
}

// FuzzParseTime: what the grammar of RFC 3339 §5.6 has and package time reads,
// and leap seconds; the form that we write is read back.
func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{
		"2026-01-02T03:04:05.123456Z", "1990-12-31T15:59:60-08:00", "2026-01-02t03:04:05,5z", "2024-02-29T23:59:59+23:59", "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59-00:01", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05.9999999999z",
	} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:(\d\d)(?:\.\d+)?(?:[Zz]|[+-](\d\d):(\d\d))$`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := strict.ParseTime(text)
		m := grammar.FindStringSubmatch(text)
		if err != nil {
			if m == nil || len(text) > 64 || m[1] == "60" || m[2] > "23" || m[3] > "59" {
				return
			}
			if std, err := time.Parse(time.RFC3339, strings.ToUpper(text)); err == nil && std.UTC().Year() >= 1 && std.UTC().Year() <= 9999 {
				t.Fatalf("%q is refused, package time says %v", text, std)
			}
			return
		}
		if m == nil {
			t.Fatalf("%q is read as %v", text, got)
		}
		if again, err := strict.ParseTime(got.UTC().Format(sixDigits)); err != nil || !again.Equal(got) {
			t.Fatalf("%q: %v, then %v %v", text, got, again, err)
		}
		whole, leap := strings.ToUpper(text), time.Duration(0)
		if m[1] == "60" {
			whole, leap = whole[:17]+"59"+whole[19:], time.Second
		}
		std, err := time.Parse(time.RFC3339, whole)
		if err != nil || !std.Truncate(time.Microsecond).Add(leap).Equal(got) {
			t.Fatalf("%q: %v, package time says %v %v", text, got, std, err)
		}
		if leap > 0 && (got.Day() != 1 || got.Sub(got.Truncate(24*time.Hour)) >= time.Second) {
			t.Fatalf("%q: a leap second in the midst of a month: %v", text, got)
		}
	})
}
