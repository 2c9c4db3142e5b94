package strict

import (
	"errors"
	"time"
)

var errTime = errors.New("time: want RFC 3339 such as 2026-01-02T15:04:05.000000Z")

// maxTimeText bounds the length of a time; the longest useful one has nine
// digits of a second and an offset.
const maxTimeText = 64

// ParseTime reads a date-time by the grammar of RFC 3339 §5.6 (TM-02), in UTC
// and cut, not rounded, to microseconds. Lower-case t and z and any offset up
// to ±23:59 are read; a comma before the fraction, a blank for the T, hour 24,
// one-digit fields, and suffixes of RFC 9557 are refused. Second 60 is read
// only where a leap second can be, in 23:59 UTC on the last day of a month, and
// becomes the first second of the next day, as Unix time counts it. Years are 1
// to 9999 after conversion to UTC.
func ParseTime(text string) (time.Time, error) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > maxTimeText {
		return time.Time{}, errTime
	}
	var f [6]int
	for i, at := range [6]int{0, 5, 8, 11, 14, 17} {
		n, width := 0, 2
		if i == 0 {
			width = 4
		}
		for _, b := range []byte(text[at : at+width]) {
			if !isDigit(b) {
				return time.Time{}, errTime
			}
			n = n*10 + int(b-'0')
		}
		f[i] = n
	}
	year, month, day, hour, minute, second := f[0], time.Month(f[1]), f[2], f[3], f[4], f[5]
	if text[4] != '-' || text[7] != '-' || text[10]|0x20 != 't' || text[13] != ':' || text[16] != ':' {
		return time.Time{}, errTime
	}
	micros, rest, ok := parseFraction(text[19:])
	offset, zoneOK := parseOffset(rest)
	if !ok || !zoneOK || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, errTime
	}
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if date.Month() != month || date.Day() != day {
		return time.Time{}, errTime
	}
	t := time.Date(year, month, day, hour, minute, second, micros*1000, time.UTC).Add(-offset)
	leap := second == 60
	if t.Year() < 1 || t.Year() > 9999 || (leap && !beginsMonth(t)) {
		return time.Time{}, errTime
	}
	return t, nil
}

// beginsMonth reports whether t is in the first second of a month.
func beginsMonth(t time.Time) bool {
	hour, minute, second := t.Clock()
	return t.Day() == 1 && hour == 0 && minute == 0 && second == 0
}

// parseFraction reads ".digits" if there is one: microseconds and what follows.
func parseFraction(text string) (micros int, rest string, ok bool) {
	if text == "" || text[0] != '.' {
		return 0, text, true
	}
	i := 1
	for scale := 100_000; i < len(text) && isDigit(text[i]); i++ {
		micros += int(text[i]-'0') * scale
		scale /= 10
	}
	return micros, text[i:], i > 1
}

// parseOffset reads "Z", "z" or "±hh:mm".
func parseOffset(text string) (time.Duration, bool) {
	if text == "Z" || text == "z" {
		return 0, true
	}
	if len(text) != len("+00:00") || (text[0] != '+' && text[0] != '-') || text[3] != ':' {
		return 0, false
	}
	for _, i := range [4]int{1, 2, 4, 5} {
		if !isDigit(text[i]) {
			return 0, false
		}
	}
	hours := time.Duration(text[1]-'0')*10 + time.Duration(text[2]-'0')
	minutes := time.Duration(text[4]-'0')*10 + time.Duration(text[5]-'0')
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	offset := hours*time.Hour + minutes*time.Minute
	if text[0] == '-' {
		offset = -offset
	}
	return offset, true
}
