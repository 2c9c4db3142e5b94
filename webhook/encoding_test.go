package webhook

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzEncodings: a signature has one spelling, and every signature has one.
func FuzzEncodings(f *testing.F) {
	for _, seed := range []string{"", "AA==", "AB==", "AAAA", "AA", "A A=", "AAAA\n", "00ff", "00FF", "0", "_-AA", "=="} {
		f.Add(seed, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, text string, signature []byte) {
		for name, e := range map[string]encoding{"base64": base64Strict, "hex": hexLower} {
			if b, ok := e.decode(text); ok && e.encode(b) != text {
				t.Fatalf("%s: %q is read, and written as %q", name, text, e.encode(b))
			}
			if b, ok := e.decode(e.encode(signature)); !ok || !bytes.Equal(b, signature) {
				t.Fatalf("%s: %x came back as %x, %v", name, signature, b, ok)
			}
			if _, ok := e.decode(text); ok && strings.ContainsAny(text, " \r\n\t") {
				t.Fatalf("%s: %q with white space is read", name, text)
			}
		}
	})
}
