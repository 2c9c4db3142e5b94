package strict

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical gives the one form of a JSON text that all its equal spellings
// share, for the idempotency fingerprint (1-product A2): names, order and
// strings by RFC 8785, numbers as exact decimals, so that 1, 1.0 and 1e0 are
// one form, and 2^53 and 2^53+1 are two. It refuses what Check refuses, and
// numbers whose exponent has more than 18 digits. The error is an *Error.
func Canonical(doc []byte) ([]byte, error) {
	if err := bounded(doc); err != nil {
		return nil, err
	}
	text := jsontext.Value(bytes.Clone(doc))
	err := text.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return nil, refusal(err)
	}
	return exactNumbers(text)
}

// exactNumbers rewrites the numbers of a text that is canonical but for them.
func exactNumbers(text []byte) ([]byte, error) {
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); {
		end := i + 1
		switch {
		case text[i] == '"':
			end = endOfString(text, i) + 1
		case text[i] == '-' || isDigit(text[i]):
			end = endOfNumber(text, i)
			d := parseDecimal(text[i:end])
			if d.huge {
				return nil, &Error{Reason: "number with an exponent beyond 18 digits", Offset: int64(i)}
			}
			out = d.appendTo(out)
			i = end
			continue
		}
		out = append(out, text[i:end]...)
		i = end
	}
	return out, nil
}

func endOfNumber(text []byte, start int) int {
	for i := start; i < len(text); i++ {
		switch text[i] {
		case ',', ']', '}':
			return i
		}
	}
	return len(text)
}
