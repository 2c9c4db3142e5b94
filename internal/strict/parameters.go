package strict

import "strings"

// parameters reports whether text, which may be empty, is parameters of an Item
// and nothing else (RFC 9651 §4.2.3.2). What they say is nobody's business here:
// none is defined for the headers that we read.
func parameters(text string) bool {
	for text != "" {
		var ok bool
		if text, ok = strings.CutPrefix(text, ";"); !ok {
			return false
		}
		if text, ok = afterKey(strings.TrimLeft(text, " ")); !ok {
			return false
		}
		if value, valued := strings.CutPrefix(text, "="); valued {
			if text, ok = afterBareItem(value); !ok {
				return false
			}
		}
	}
	return true
}

// afterKey cuts off the name of a parameter: key of RFC 9651 §3.1.2.
func afterKey(text string) (string, bool) {
	if text == "" || (text[0] < 'a' || text[0] > 'z') && text[0] != '*' {
		return "", false
	}
	return strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.*"), true
}

// afterBareItem cuts off a value of any of the kinds of RFC 9651 §3.3, but for
// Display Strings, which RFC 8941 did not have.
func afterBareItem(text string) (string, bool) {
	if text == "" {
		return "", false
	}
	switch c := text[0]; {
	case c == '"':
		_, rest, ok := cutString(text)
		return rest, ok
	case c == ':':
		inner, rest, ok := strings.Cut(text[1:], ":")
		return rest, ok && strings.Trim(inner, base64Bytes) == ""
	case c == '?':
		return text[min(2, len(text)):], len(text) > 1 && (text[1] == '0' || text[1] == '1')
	case c == '@':
		rest, decimal, ok := afterNumber(text[1:])
		return rest, ok && !decimal
	case c == '-' || isDigit(c):
		rest, _, ok := afterNumber(text)
		return rest, ok
	case c == '*' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z':
		return strings.TrimLeft(text, tokenBytes), true
	}
	return "", false
}

// base64Bytes are those of a Byte Sequence; the rest of its form is for those who
// use one (RFC 9651 §4.2.7).
const base64Bytes = "+/=0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// tokenBytes are those that a Token goes on with (RFC 9651 §3.3.4).
const tokenBytes = "!#$%&'*+-.^_`|~:/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// afterNumber cuts off an Integer of up to 15 digits or a Decimal of up to 12
// before its point and three behind it (RFC 9651 §3.3.1, §3.3.2).
func afterNumber(text string) (rest string, decimal, ok bool) {
	text = strings.TrimPrefix(text, "-")
	rest = strings.TrimLeft(text, "0123456789")
	whole := len(text) - len(rest)
	fraction, decimal := strings.CutPrefix(rest, ".")
	if !decimal {
		return rest, false, whole >= 1 && whole <= 15
	}
	rest = strings.TrimLeft(fraction, "0123456789")
	places := len(fraction) - len(rest)
	return rest, true, whole >= 1 && whole <= 12 && places >= 1 && places <= 3
}

// cutString reads one String of RFC 9651 §4.2.5, with which text begins, and
// gives what is behind it.
func cutString(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c == '\\':
			i++
			if i == len(text) || (text[i] != '"' && text[i] != '\\') {
				return "", "", false
			}
		case c < 0x20 || c > 0x7e:
			return "", "", false
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}
