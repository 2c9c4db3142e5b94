package pawl

import (
	"errors"
	"time"
)

// Time is a moment in UTC as microseconds since 1970-01-01, the resolution of
// every stored time. The zero Time means "not set".
type Time int64

// Never is a due time that does not come.
const Never Time = 1<<63 - 1

// TimeOf converts a [time.Time], dropping what is finer than a microsecond.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std converts to a [time.Time] in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Add moves a time by a duration. Never stays never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	return t + Time(d.Microseconds())
}

// Sub is the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// IsSet reports whether the time names a moment: neither zero nor [Never].
func (t Time) IsSet() bool { return t != 0 && t != Never }

// String is RFC 3339 in UTC with six fixed digits, so that text order is time
// order; "" where the time is not set.
func (t Time) String() string {
	if !t.IsSet() {
		return ""
	}
	return t.Std().Format("2006-01-02T15:04:05.000000Z")
}

// MarshalText writes the form of [Time.String].
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the form of [Time.String].
func (t *Time) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = 0
		return nil
	}
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", string(text))
	if err != nil {
		return err
	}
	// Package time reads other spellings too, such as a comma for the point.
	if read := TimeOf(at); read.String() == string(text) {
		*t = read
		return nil
	}
	return errors.New("not a time as it is written here, such as 2026-01-02T15:04:05.000000Z")
}
