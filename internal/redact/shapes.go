package redact

import (
	"encoding/hex"
	"regexp"
	"strings"
)

// encodedBeginnings finds credentials of Pawl's own kinds that are encoded: what
// they begin with shows through.
var encodedBeginnings = func() *Finder {
	f := &Finder{beginnings: true}
	for _, text := range []string{"pawl_sk_", "whsec_", "whsk_"} {
		f.needle(text, escaped)
		f.needle(hex.EncodeToString([]byte(text)), inHex)
		for before := range 3 {
			f.needle(inside(text, before), inBase64)
		}
	}
	f.index()
	return f
}()

// Shapes removes what is a credential of Pawl's own by its shape, whoever's it
// is: encoded keys and secrets (as they are, telemetry.Redact knows more of), and
// the secret part of callback tokens, of which the operation's suffix stays.
func Shapes(text, mark string) string {
	return callbackTokens(encodedBeginnings.Remove(text, mark), mark)
}

// A callback token is the suffix of an operation's id and a MAC in hex.
const (
	suffixLength = 26
	macLength    = 32
)

// callbackTokens removes the MAC of each word that is a callback token.
func callbackTokens(text, mark string) string {
	for from := 0; from < len(text); {
		end := from
		for end < len(text) && lowerAlnum(text[end]) {
			end++
		}
		if end-from == suffixLength+macLength && text[from] <= '7' && allHex(text[from+suffixLength:end]) {
			text = text[:from+suffixLength] + mark + text[end:]
			end = from + suffixLength + len(mark)
		}
		from = end + 1
	}
	return text
}

func lowerAlnum(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }

func allHex(text string) bool {
	for i := range len(text) {
		if !hexDigit[text[i]] {
			return false
		}
	}
	return true
}

// A slash, plain or escaped as in JSON or in a URL.
const slash = `(?:\\*/|%(?:25)*2[fF])`

// relative is a link without a scheme, where it begins a word, and withQuery any
// word that has a query.
var (
	relative  = regexp.MustCompile(`(^|[^A-Za-z0-9_.:/%\\-])` + slash + `{2}[^\s/\\%"'<>][^\s"'<>]*`)
	withQuery = regexp.MustCompile(`[^\s"'<>(=]*(?:\?|%(?:25)*3[fF])[A-Za-z0-9_.~%\[\]-]+(?:=|%(?:25)*3[dD])[^\s"'<>]*`)
)

// Links replaces what is a link without a scheme: //host/path where it begins a
// word, and any word with a query, whose values are often credentials.
func Links(text, mark string) string {
	text = Relative(text, mark)
	if strings.ContainsAny(text, "?%") {
		text = withQuery.ReplaceAllLiteralString(text, mark)
	}
	return text
}

// Relative replaces //host/path, in escaped forms too, where it begins a word.
func Relative(text, mark string) string {
	if mayLink(text) {
		text = relative.ReplaceAllString(text, "${1}"+mark)
	}
	return text
}

// mayLink keeps the expressions away from most text.
func mayLink(text string) bool {
	slashes := 0
	for i := range len(text) {
		switch text[i] {
		case '%':
			return true
		case '/':
			if slashes++; slashes > 1 {
				return true
			}
		}
	}
	return false
}
