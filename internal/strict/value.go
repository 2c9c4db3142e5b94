package strict

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is a place in a checked JSON text: its bytes as received. The zero
// Value stands for a place that the text does not have.
type Value struct {
	Raw []byte // without surrounding white space; not to be changed
}

// Present reports whether the text has this place. A null is present.
func (v Value) Present() bool { return len(v.Raw) > 0 }

// Kind gives the JSON kind: n t f " 0 { [ by first character, all numbers as
// 0, and jsontext.KindInvalid for an absent value.
func (v Value) Kind() jsontext.Kind { return jsontext.Value(v.Raw).Kind() }

// Null reports whether the value is present and null.
func (v Value) Null() bool { return v.Kind() == 'n' }

// Text gives the content of a string; false for everything else.
func (v Value) Text() (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, v.Raw)
	return string(text), err == nil
}

// Bool gives a boolean; false, false for everything else.
func (v Value) Bool() (value, ok bool) {
	k := v.Kind()
	return k == 't', k == 't' || k == 'f'
}

// Int gives a number whose value is an integer within int64, however it is
// written: 3, 3.0 and 30e-1 are 3. No float is involved, so 2^53+1 stays what
// it is. False for strings, fractions and larger numbers.
func (v Value) Int() (int64, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	return parseDecimal(v.Raw).int64()
}

// Decimal gives the text of a decimal number as the sender wrote it (MO-04),
// from a JSON number or from a string that holds one by the same grammar
// (2-contracts §2, cost).
func (v Value) Decimal() (string, bool) {
	if v.Kind() == '0' {
		return string(v.Raw), true
	}
	text, ok := v.Text()
	return text, ok && isNumber(text)
}

// String describes the value without showing it, so that a value in a log line
// or an error gives nothing away.
func (v Value) String() string {
	if !v.Present() {
		return "absent"
	}
	return fmt.Sprintf("%s of %d bytes", kindWord(v.Kind()), len(v.Raw))
}

// GoString is String, for %#v.
func (v Value) GoString() string { return v.String() }
