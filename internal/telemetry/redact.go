package telemetry

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/pawlhq/pawl/internal/redact"
)

// Redacted stands in place of what was removed.
const Redacted = redact.Mark

// rule replaces what re finds by with; re is tried only on text that holds one
// of the hints, since most text holds none.
type rule struct {
	hints []string
	re    *regexp.Regexp
	with  func(match string) string
}

// secretWord is part of a name whose value is secret wherever it stands.
const secretWord = `(?:authorization|secret|token|signature|password|passwd|cookie|credentials?|api[_-]?key|key)`

// payloadWord names what belongs to a tenant: never in a log (I4).
const payloadWord = `(?:prompt|input|result|output|body|metadata)`

// The rules, in order: links first, so that what they hold is gone before the
// rest looks. A link's scheme may be hidden behind an invisible character.
var rules = []rule{
	{[]string{"://", `:\/\/`, "2F%", "2f%"},
		regexp.MustCompile(`(?i)[a-z0-9+.\-]*(?:://|:\\/\\/|%(?:25)*3a%(?:25)*2f%(?:25)*2f)[^\s"<>]*`), bareURL},
	{[]string{"data:"}, regexp.MustCompile(`(?i)\bdata:[a-z0-9.+/\-]*[;,][^\s"'<>]*`), constant("data:" + Redacted)},
	{[]string{"/hooks/"}, regexp.MustCompile(`/hooks/[^\s"<>?]*`), hookPath},
	{[]string{"?"}, regexp.MustCompile(`\?[A-Za-z0-9_.~%\[\]\-]+=[^\s"<>]*`), constant("?" + Redacted)},
	{[]string{":", "="}, regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)["']?\s*[:=].*`), named},
	{[]string{" "}, regexp.MustCompile(`(?i)\b(?:bearer|basic|digest)\s+[A-Za-z0-9._~+/=\-]{4,}`), firstWord},
	{[]string{"_", "-", "eyJ", "AKIA"},
		regexp.MustCompile(`\b(?:pawl_sk_|whsec_|whsk_|whpk_|sk_|rk_|r8_|sk-|xox[a-z]-|gh[a-z]_|AKIA)[A-Za-z0-9_+/=\-]{4,}|\beyJ[A-Za-z0-9_.\-]{8,}`), constant(Redacted)},
	{[]string{"v1"}, regexp.MustCompile(`\bv1a?[,=][A-Za-z0-9+/=_\-]{4,}`), constant(Redacted)},
	{[]string{"="}, regexp.MustCompile(`(?i)\bsha(?:1|256|512)=[A-Za-z0-9+/=_\-]{4,}`), constant(Redacted)},
	// JSON: a quoted name, then a string, a nested value or a plain one.
	{[]string{`":`, `" :`, `\":`}, regexp.MustCompile(`(?is)\\?"([\w.\-]*` + secretWord + `s?|` + payloadWord + `)\\?"\s*:\s*(?:\\?"(?:[^"\\]|\\.)*\\?"?|[\[{].*|[^\s,}\]]+)`), named},
	// Forms, %+v of structs, settings: the value follows directly.
	{[]string{":", "="}, regexp.MustCompile(`(?i)\b([\w.\-]*` + secretWord + `s?)[:=](?:"[^"]*"?|'[^']*'?|\[[^\]]*\]?|[^\s,;&}\])"']+)`), named},
	{[]string{":", "="}, regexp.MustCompile(`(?is)\b(\w*` + payloadWord + `)[:=](?:"[^"]*"?|[^\s].*)`), named},
	// Prose: "invalid key: abc123…"; only what looks like a credential.
	{[]string{": "}, regexp.MustCompile(`(?i)\b([\w\-]*` + secretWord + `s?): ["']?[A-Za-z0-9._~+/=\-]{12,}`), namedIfDigit},
}

// Redact removes from text what must never be logged, shown or stored in an
// excerpt: credentials and signatures by their shape, values by their name,
// and everything of a URL beyond scheme and host. Control characters are
// written out, so that no input can forge a line (PR-03).
func Redact(text string) string {
	text = redact.Relative(redact.Shapes(text, Redacted), "//"+Redacted)
	for _, r := range rules {
		for _, hint := range r.hints {
			if strings.Contains(text, hint) {
				text = r.re.ReplaceAllStringFunc(text, r.with)
				break
			}
		}
	}
	return oneLine(text)
}

func constant(with string) func(string) string { return func(string) string { return with } }

// bareURL reduces a URL to scheme and host, and one that cannot be read for
// certain to nothing.
func bareURL(match string) string {
	plain := strings.ReplaceAll(match, `\/`, "/")
	if !strings.Contains(plain, "://") {
		plain, _ = url.QueryUnescape(plain)
	}
	scheme, rest, found := strings.Cut(plain, "://")
	if !found {
		return Redacted
	}
	// The brackets of an IPv6 address are no end.
	host := 0
	if strings.HasPrefix(rest, "[") {
		host = strings.IndexByte(rest, ']') + 1
	}
	end := len(rest)
	if i := strings.IndexAny(rest[host:], `/?#\&,;'()[]{}`); i >= 0 {
		end = host + i
	}
	authority, beyond := rest[:end], rest[end:]
	// An @ further on means that a password holds one of the delimiters.
	if strings.Contains(beyond, "@") {
		return scheme + "://" + Redacted
	}
	authority = authority[strings.LastIndex(authority, "@")+1:]
	if strings.Trim(beyond, `/.,:;'()[]{}`) != "" {
		return scheme + "://" + authority + "/…"
	}
	return scheme + "://" + authority + strings.TrimLeft(beyond, "/")
}

// hookPath keeps the source of a callback address and drops its token.
func hookPath(match string) string {
	source, token, found := strings.Cut(strings.TrimPrefix(match, "/hooks/"), "/")
	if !found || token == "" || token == "{token}" {
		return match
	}
	return "/hooks/" + source + "/" + Redacted
}

func firstWord(match string) string {
	word, _, _ := strings.Cut(match, " ")
	return word + " " + Redacted
}

// named keeps the name and its quotes.
func named(match string) string {
	at := strings.IndexAny(match, ":=")
	return match[:at+1] + Redacted
}

func namedIfDigit(match string) string {
	at := strings.IndexByte(match, ':')
	if !strings.ContainsAny(match[at:], "0123456789") {
		return match
	}
	return match[:at+2] + Redacted
}

// oneLine writes out control characters, line separators, direction marks and
// broken UTF-8.
func oneLine(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !unprintable(r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
