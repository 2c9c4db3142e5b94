package strict

import (
	"github.com/go-json-experiment/json"
)

// MaxDepth is how many arrays and objects may stand inside each other
// (2-contracts §1, limits).
const MaxDepth = 64

// Decode reads one JSON text (RFC 8259 within the limits of I-JSON, RFC 7493)
// into v, which must be a non-nil pointer. It refuses names that v does not
// have, names that differ from v's only by case, the same name twice, data
// after the text, invalid UTF-8 and more than MaxDepth levels (JS-01). The
// error is an *Error.
func Decode(data []byte, v any) error {
	if err := bounded(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return refusal(err)
	}
	return nil
}

// Check reports as an *Error whatever is wrong with a JSON text by the rules
// of Decode that need no Go type: form, names given twice, depth, UTF-8,
// trailing data.
func Check(data []byte) error {
	_, err := Extract(data)
	return err
}

// bounded looks at encoding and depth before any recursive parser sees the
// text. On text that is not JSON its count may be off behind the first fault
// only, where no parser arrives.
func bounded(doc []byte) error {
	if err := wrongUTF8(doc); err != nil {
		return err
	}
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = endOfString(doc, i)
		case '{', '[':
			depth++
			if depth > MaxDepth {
				return &Error{Reason: "more than 64 levels", Offset: int64(i)}
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// endOfString gives the offset of the quote that closes the string that opens
// at start, or the length of the text.
func endOfString(doc []byte, start int) int {
	for i := start + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(doc)
}
