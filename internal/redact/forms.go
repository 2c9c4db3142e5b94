package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The lengths in bytes from which on a value is looked for at all, and encoded:
// shorter ones would hit words that mean something else.
const (
	minValue   = 4
	minEncoded = 6
)

// keyed are the beginnings of secrets that are Base64 of the key itself.
var keyed = []string{"whsec_", "whsk_", "whpk_"}

// Values is a finder of values, empty and very short ones (under four bytes)
// left out. Of one that is Base64 behind whsec_ the bytes are known, too.
func Values(values ...string) *Finder {
	f := new(Finder)
	for _, value := range values {
		for _, prefix := range append(keyed, "pawl_sk_") {
			rest, found := strings.CutPrefix(value, prefix)
			if !found || len(rest) < minEncoded {
				continue
			}
			f.add(rest)
			// The schemes do not ask for padding.
			if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "=")); err == nil && prefix != "pawl_sk_" {
				f.add(string(raw))
			}
		}
		f.add(value)
	}
	f.index()
	return f
}

// add adds all forms of a value.
func (f *Finder) add(value string) {
	if len(value) < minValue {
		return
	}
	f.needle(value, escaped)
	// Of escapes that the value has itself there are two readings, and some are not
	// of one character.
	if strings.ContainsFunc(value, func(r rune) bool { return r > '~' || strings.ContainsRune(`%\&<>"'`, r) }) {
		ascii := strconv.QuoteToASCII(value)
		for _, text := range []string{
			value, html.EscapeString(value), url.QueryEscape(value), url.PathEscape(value), url.QueryEscape(url.QueryEscape(value)),
			inJSON(value), inJSON(inJSON(value)), ascii[1 : len(ascii)-1],
		} {
			f.needle(text, exact)
		}
	}
	if len(value) < minEncoded {
		return
	}
	f.needle(hex.EncodeToString([]byte(value)), inHex)
	for before := range 3 {
		f.needle(inside(value, before), inBase64)
	}
}

func inJSON(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw[1 : len(raw)-1])
}

// inside is that part of a value's Base64 that does not depend on what is around
// it, where a number of bytes (modulo 3) stands before it.
func inside(value string, before int) string {
	text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), value...))
	return text[(before*8+5)/6 : (before+len(value))*8/6]
}

func (f *Finder) needle(text string, as form) {
	f.needles = append(f.needles, needle{folded(text), as})
}

// index prepares the search. Long needles come first: at takes the longest.
func (f *Finder) index() {
	slices.SortFunc(f.needles, func(a, b needle) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.form, b.form))
	})
	f.needles = slices.Compact(f.needles)
	for _, n := range f.needles {
		p := int(n.text[0])<<8 | int(n.text[1])
		f.pairs[p/64] |= 1 << (p % 64)
		f.shortest = len(n.text)
	}
}

// fold takes letter case for one, the two alphabets of Base64, and a space for the
// plus that it may have been: a credential in another case is hardly less of one.
var fold = func() (table [256]byte) {
	for c := range table {
		table[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	table['-'], table['_'], table[' '] = '+', '/', '+'
	return table
}()

func folded(text string) string {
	raw := []byte(text)
	for i, c := range raw {
		raw[i] = fold[c]
	}
	return string(raw)
}

// The classes of characters.
var (
	hexDigit    = class("0123456789abcdefABCDEF")
	base64Digit = class("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/-_")
	// part are those of a credential, encoded or not.
	part = class("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/-_=%.~")
	// escapes are those that an escape begins with.
	escapes = class(`%\&`)
)

func class(members string) (table [256]bool) {
	for _, c := range []byte(members) {
		table[c] = true
	}
	return table
}

// unit gives the character that is meant at i, and how many bytes stand for it:
// itself, or one that is percent-encoded (more than once, too), or escaped as in
// string literals, JSON or HTML.
func unit(text string, i int) (c byte, width int) {
	j := i + 1
	switch text[i] {
	case '%':
		for j+4 <= len(text) && text[j] == '2' && text[j+1] == '5' && hexDigit[text[j+2]] && hexDigit[text[j+3]] {
			j += 2
		}
		if c, ok := hexByte(text, j); ok {
			return c, j + 2 - i
		}
	case '\\':
		for j < len(text) && text[j] == '\\' {
			j++
		}
		if c, end := literal(text, j); end > 0 {
			return c, end - i
		}
	case '&':
		if c, end := entity(text, j); end > 0 {
			return c, end - i
		}
	}
	return text[i], 1
}

// literal reads what stands behind a backslash; end is 0 for what is no escape of
// a single character.
func literal(text string, j int) (c byte, end int) {
	if j >= len(text) {
		return 0, 0
	}
	switch text[j] {
	case '/', '"', '\'':
		return text[j], j + 1
	case 'x':
		if c, ok := hexByte(text, j+1); ok {
			return c, j + 3
		}
	case 'u':
		if high, ok := hexByte(text, j+1); ok && high == 0 {
			if c, ok := hexByte(text, j+3); ok && c < 0x80 {
				return c, j + 5
			}
		}
	}
	return 0, 0
}

// entity reads a numeric character reference of HTML behind its &.
func entity(text string, j int) (c byte, end int) {
	const longest = 8
	semicolon := strings.IndexByte(text[j:min(len(text), j+longest)], ';')
	if semicolon < 2 || text[j] != '#' {
		return 0, 0
	}
	digits, base := text[j+1:j+semicolon], 10
	if digits[0] == 'x' || digits[0] == 'X' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 8)
	if err != nil {
		return 0, 0
	}
	return byte(n), j + semicolon + 1
}

func hexByte(text string, i int) (byte, bool) {
	if i+2 > len(text) || !hexDigit[text[i]] || !hexDigit[text[i+1]] {
		return 0, false
	}
	return nibble(text[i])<<4 | nibble(text[i+1]), true
}

func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
