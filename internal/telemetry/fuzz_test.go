package telemetry_test

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// FuzzRedact: nothing of a leak survives among other words, however often text
// is redacted, and the result is one printable line.
func FuzzRedact(f *testing.F) {
	for i := range leaks {
		f.Add(uint(i), "before", "after")
	}
	// Quotes and brackets that are not closed change what belongs together.
	words := func(r rune) rune {
		if strings.ContainsRune(`"'[]{}()<>\`+"`", r) {
			return ' '
		}
		return r
	}
	f.Fuzz(func(t *testing.T, leak uint, before, after string) {
		if strings.Contains(before+after, "S3KRIT") {
			return
		}
		text := strings.Map(words, before) + " " + leaks[leak%uint(len(leaks))] + " " + strings.Map(words, after)
		once := telemetry.Redact(text)
		for _, got := range []string{once, telemetry.Redact(once)} {
			if strings.Contains(got, "S3KRIT") {
				t.Fatalf("%q gives %q", text, got)
			}
			checkPrintable(t, got, len(got))
		}
	})
}
