package config

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// redacted is what every printed form of a secret says.
const redacted = "[redacted]"

// Secret is a credential that does not print: every fmt verb, JSON, YAML and
// slog give "[redacted]" (PR-09). The zero Secret means "not set". Compare
// with Equal; == compares identity.
type Secret struct {
	// A pointer, because fmt prints unexported fields of foreign structs without
	// asking the type: it shows an address there, not the text.
	text *string
}

var (
	errSecretEmpty   = errors.New("the secret is empty; give it a value or remove the key")
	errSecretSpace   = errors.New("the secret has whitespace around it, which would make every signature wrong; remove the spaces or line breaks at its start and end")
	errSecretControl = errors.New("the secret holds a control character; check how it was copied")
)

// NewSecret keeps text as a secret. Whitespace around it is refused rather
// than trimmed, whatever way it came in (O-037): found at set-up it costs a
// minute, found later it looks like an attack.
func NewSecret(text string) (Secret, error) {
	if text == "" {
		return Secret{}, errSecretEmpty
	}
	if strings.TrimSpace(text) != text {
		return Secret{}, errSecretSpace
	}
	for _, r := range text {
		// Line breaks inside are legal: a PEM key has them.
		if (r < ' ' && r != '\n' && r != '\r') || r == 0x7f {
			return Secret{}, errSecretControl
		}
	}
	return Secret{&text}, nil
}

// Reveal is the text itself, "" if not set. What it returns must go to a
// signature or a header and nowhere else.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is not set.
func (s Secret) IsZero() bool { return s.text == nil }

// Equal compares two secrets in time that does not depend on where they differ.
func (s Secret) Equal(t Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(t.Reveal())) == 1
}

// String is "[redacted]", or "" if not set.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// Format writes the form of String for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText gives JSON, YAML and text encoders the form of String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue gives slog the form of String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
