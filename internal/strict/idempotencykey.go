package strict

import (
	"errors"
	"strings"
)

// MaxKeyLength is the number of characters that an idempotency key may have
// (2-contracts §1, limits).
const MaxKeyLength = 255

// Refusals of IdempotencyKey. None repeats the key.
var (
	// ErrKeyMissing: no header line at all.
	ErrKeyMissing = errors.New("idempotency key: missing: send one key of 1 to 255 visible ASCII characters")
	// ErrKeyRepeated: more than one header line (IK-03).
	ErrKeyRepeated = errors.New("idempotency key: more than one header line: send one")
	// ErrKeyInvalid: one line that is no key.
	ErrKeyInvalid = errors.New("idempotency key: want 1 to 255 visible ASCII characters, bare or as one quoted string")
)

// IdempotencyKey reads the lines of an Idempotency-Key header (1-product A2;
// IK-01 to IK-04). The quoted form is a String of RFC 9651 §3.3.3, in which
// only the quote and the backslash are escaped; the bare form is taken as it
// stands. Both give the same key: 1 to MaxKeyLength characters of 0x21 to 0x7e.
// The blank that a String may hold is not allowed, so that both forms have the
// same keys and a list joined by a proxy is seen. Parameters behind the quoted
// form must be well-formed and are ignored (RFC 8941 §2, RFC 9651 §2: a
// specification that defines none ignores them).
func IdempotencyKey(values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", ErrKeyMissing
	case 1:
	default:
		return "", ErrKeyRepeated
	}
	key := strings.Trim(values[0], " \t")
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquoteString(key); !ok {
			return "", ErrKeyInvalid
		}
	}
	if key == "" || len(key) > MaxKeyLength {
		return "", ErrKeyInvalid
	}
	for _, b := range []byte(key) {
		if b < 0x21 || b > 0x7e {
			return "", ErrKeyInvalid
		}
	}
	return key, nil
}

// unquoteString reads text, which begins with a quote, as one String of RFC
// 9651 §4.2.5 with nothing behind it but parameters.
func unquoteString(text string) (string, bool) {
	value, rest, ok := cutString(text)
	return value, ok && parameters(rest)
}
