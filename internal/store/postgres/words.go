package postgres

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// escape begins what stands for one byte that PostgreSQL's text cannot hold: it
// is followed by the byte in two hexadecimal digits. Zero bytes and bytes that
// are no UTF-8 are written so, and the escape itself; so every string has one
// form, and other texts are stored as they are (O-043).
const escape = '\x1b'

// toText is a string as it is stored.
func toText(s string) string {
	if !strings.ContainsAny(s, "\x00\x1b") && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == escape || r == utf8.RuneError && size == 1 {
			b.WriteByte(escape)
			b.WriteString(hex.EncodeToString([]byte{s[i]}))
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// fromText is what [toText] was given. Text that it did not write is returned
// as it is.
func fromText(stored []byte) string {
	s := string(stored)
	if strings.IndexByte(s, escape) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == escape && i+2 < len(s) {
			if one, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b, i = append(b, one[0]), i+2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
