package strict

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decimal is a number by the grammar of RFC 8259 §6, held exactly:
// ±0.digits × 10^point, digits without zeros at either end. Zero has none.
type decimal struct {
	negative bool
	digits   []byte
	point    int64
	huge     bool // the exponent has more than 18 digits: no value is given
}

// isNumber reports whether text is a number by RFC 8259 §6 and nothing more.
func isNumber(text string) bool {
	v := jsontext.Value(text)
	return len(v) > 0 && (v[0] == '-' || isDigit(v[0])) && isDigit(v[len(v)-1]) && v.IsValid()
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// parseDecimal reads a well-formed number. The exponent is only counted, never
// expanded: 1e999999999 costs as much as 1.
func parseDecimal(number []byte) decimal {
	var d decimal
	if number[0] == '-' {
		d.negative, number = true, number[1:]
	}
	var exponent []byte
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		number, exponent = number[:i], number[i+1:]
	}
	whole, fraction, _ := bytes.Cut(number, []byte{'.'})
	d.point = int64(len(whole))
	d.digits = whole
	if len(fraction) > 0 {
		d.digits = append(bytes.Clone(whole), fraction...)
	}
	trimmed := bytes.TrimLeft(d.digits, "0")
	d.point -= int64(len(d.digits) - len(trimmed))
	d.digits = bytes.TrimRight(trimmed, "0")
	if len(d.digits) == 0 {
		return decimal{}
	}
	e, ok := parseExponent(exponent)
	d.point, d.huge = d.point+e, !ok
	return d
}

func parseExponent(text []byte) (int64, bool) {
	if len(text) == 0 {
		return 0, true
	}
	negative := text[0] == '-'
	digits := bytes.TrimLeft(text, "+-0")
	if len(digits) > 18 {
		return 0, false
	}
	if len(digits) == 0 {
		return 0, true
	}
	e, err := strconv.ParseInt(string(digits), 10, 64)
	if negative {
		e = -e
	}
	return e, err == nil
}

// int64 gives the value if it is an integer that fits.
func (d decimal) int64() (int64, bool) {
	if len(d.digits) == 0 {
		return 0, true
	}
	if d.huge || d.point > 19 || d.point < int64(len(d.digits)) {
		return 0, false
	}
	text := strings.Repeat("0", int(d.point)-len(d.digits))
	text = string(d.digits) + text
	if d.negative {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// appendTo writes the one canonical form of the value. The layout is that of
// ECMAScript's Number::toString, which RFC 8785 §3.2.2.3 asks for, over exact
// digits instead of those of the nearest double: where a double is exact both
// agree.
func (d decimal) appendTo(b []byte) []byte {
	n := int64(len(d.digits))
	if n == 0 {
		return append(b, '0')
	}
	if d.negative {
		b = append(b, '-')
	}
	switch {
	case n <= d.point && d.point <= 21:
		return appendZeros(append(b, d.digits...), d.point-n)
	case 0 < d.point && d.point <= 21:
		b = append(b, d.digits[:d.point]...)
		return append(append(b, '.'), d.digits[d.point:]...)
	case -6 < d.point && d.point <= 0:
		b = appendZeros(append(b, "0."...), -d.point)
		return append(b, d.digits...)
	}
	b = append(b, d.digits[0])
	if n > 1 {
		b = append(append(b, '.'), d.digits[1:]...)
	}
	b = append(b, 'e')
	if d.point > 0 {
		b = append(b, '+')
	}
	return strconv.AppendInt(b, d.point-1, 10)
}

func appendZeros(b []byte, n int64) []byte {
	for range n {
		b = append(b, '0')
	}
	return b
}
