package pawl

import (
	"errors"
	"math"
	"strings"
)

// Amount is money in units of 10^-9 of a currency. Arithmetic on it is exact;
// it never passes through a float.
type Amount int64

// AmountScale is how many units make one whole of the currency.
const AmountScale = 1_000_000_000

// The errors of reading an amount.
var (
	ErrAmount      = errors.New("not a decimal amount such as \"0.15\"")
	ErrAmountRange = errors.New("amount is outside ±9223372036.854775807")
	ErrAmountFine  = errors.New("amount has more than nine decimal places")
)

// ParseAmount reads a plain decimal ("12", "-0.5", "0.120000000") and refuses
// more than nine places: what callers write is exact or an error (7-rules
// R28).
func ParseAmount(text string) (Amount, error) {
	a, exact, err := parseAmount(text)
	if err == nil && !exact {
		return 0, ErrAmountFine
	}
	return a, err
}

// RoundAmount reads a decimal as providers report it, exponents included, and
// rounds half away from zero to nine places (7-rules R28). The original text
// is the caller's to keep.
func RoundAmount(text string) (Amount, error) {
	plain, err := expand(text)
	if err != nil {
		return 0, err
	}
	a, _, err := parseAmount(plain)
	return a, err
}

func parseAmount(text string) (_ Amount, exact bool, _ error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, frac, dotted := strings.Cut(digits, ".")
	if whole == "" || dotted && frac == "" || !allDigits(whole) || !allDigits(frac) {
		return 0, false, ErrAmount
	}
	exact = true
	up := false
	if len(frac) > 9 {
		exact = strings.Trim(frac[9:], "0") == ""
		up = frac[9] >= '5'
		frac = frac[:9]
	}
	var v uint64
	for _, c := range whole + frac + strings.Repeat("0", 9-len(frac)) {
		if v > math.MaxInt64/10 {
			return 0, false, ErrAmountRange
		}
		v = v*10 + uint64(c-'0')
	}
	if up {
		v++
	}
	if v > math.MaxInt64 {
		return 0, false, ErrAmountRange
	}
	if negative {
		return -Amount(v), exact, nil
	}
	return Amount(v), exact, nil
}

// expand writes a number with an exponent as a plain decimal. No exponent
// makes it longer than what could still be an amount, so hostile input cannot
// ask for a long string.
func expand(text string) (string, error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, nil
	}
	digits, negative := strings.CutPrefix(text[:at], "-")
	whole, frac, dotted := strings.Cut(digits, ".")
	if whole == "" || dotted && frac == "" || !allDigits(whole) || !allDigits(frac) {
		return "", ErrAmount
	}
	shift, err := exponent(text[at+1:])
	if err != nil {
		return "", err
	}
	switch {
	case strings.Trim(whole+frac, "0") == "":
		return "0", nil
	case shift > len(frac)+20:
		return "", ErrAmountRange
	case shift >= 0:
		frac += strings.Repeat("0", max(0, shift-len(frac)))
		whole, frac = whole+frac[:shift], frac[shift:]
	default:
		// Below 10^-10 the number rounds to nothing, however far below.
		shift = min(-shift, len(whole)+11)
		whole = strings.Repeat("0", max(0, shift-len(whole)+1)) + whole
		cut := len(whole) - shift
		whole, frac = whole[:cut], whole[cut:]+frac
	}
	if frac != "" {
		whole += "." + frac
	}
	if negative {
		whole = "-" + whole
	}
	return whole, nil
}

// exponent reads what follows the "e": an optional sign and digits. Beyond a
// million it stays there.
func exponent(text string) (int, error) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	if digits == "" || !allDigits(digits) {
		return 0, ErrAmount
	}
	n := 0
	for _, c := range digits {
		n = min(n*10+int(c-'0'), 1_000_000)
	}
	if negative {
		n = -n
	}
	return n, nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// String is the decimal form with nine fixed places.
func (a Amount) String() string {
	var buf [24]byte
	u := uint64(a)
	if a < 0 {
		u = -u
	}
	i := len(buf)
	for n := 0; n < 10 || u > 0; n++ {
		if n == 9 {
			i--
			buf[i] = '.'
		}
		i--
		buf[i] = byte('0' + u%10)
		u /= 10
	}
	if a < 0 {
		i--
		buf[i] = '-'
	}
	return string(buf[i:])
}

// Add sums two amounts and reports whether the result is in range.
func (a Amount) Add(b Amount) (Amount, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

// Money is an amount with its ISO 4217 (or other three-letter) currency code.
type Money struct {
	Amount   Amount
	Currency string
}

// ValidCurrency reports whether code is three upper-case letters.
func ValidCurrency(code string) bool {
	if len(code) != 3 {
		return false
	}
	for i := range len(code) {
		if code[i] < 'A' || code[i] > 'Z' {
			return false
		}
	}
	return true
}
