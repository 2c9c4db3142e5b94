package strict

import (
	"testing"
	"time"
)

// A provider's time keeps its zone and its digits; one without a zone is
// refused, since nobody knows which it means (O-130).
func TestO130TimesKeepTheirZone(t *testing.T) {
	got, err := ParseTime("2026-08-20T00:00:00+08:00")
	if want := time.Date(2026, 8, 19, 16, 0, 0, 0, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("read as %v, %v; want %v", got, err, want)
	}
	if got, err := ParseTime("2026-08-20T00:00:00"); err == nil {
		t.Errorf("a time without a zone was read as %v", got)
	}
	// Nine digits are read and kept to the microsecond; nothing is ordered by a
	// provider's time.
	got, err = ParseTime("2026-08-20T00:00:00.123456789Z")
	if want := time.Date(2026, 8, 20, 0, 0, 0, 123456000, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("read as %v, %v; want %v", got, err, want)
	}
}
