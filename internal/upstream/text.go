package upstream

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlhq/pawl/internal/redact"
)

// The lengths in bytes that a provider's words are kept to.
const (
	maxMessage = 512
	maxWord    = 64
	maxID      = 255
	// maxScanned is how much of a message is looked at before it is cut.
	maxScanned = 8 << 10
)

// link is whatever may be a temporary URL, escaped forms and those whose scheme
// is hidden behind invisible characters included; its query is often a
// credential (1-product G2).
var link = regexp.MustCompile(`(?i)([a-z0-9+.-]*:/|https?(:|%3a)|data:|www\.)\S*`)

// nul is shown in place of a NUL: no text that is kept has one, which not every
// database takes, and what stood there can be seen (O-043).
const nul = "␀"

// message makes a provider's text fit to be shown and kept: bounded, without
// links, control characters and the credentials that the text may repeat.
func (u Upstream) message(text string) string {
	return cut(printable(strings.ReplaceAll(u.bare(text), "\x00", nul)), maxMessage)
}

// word is [Upstream.message] for what should be one word of at most limit bytes,
// such as a code or a state.
func (u Upstream) word(text string, limit int) string { return printable(cut(u.bare(text), limit)) }

// bare is the beginning of a text without links and credentials.
func (u Upstream) bare(text string) string {
	text = link.ReplaceAllString(cut(u.withoutKeys(text), maxScanned), "[link]")
	return redact.Links(text, "[link]")
}

// withoutKeys takes out our credentials and this operation's callback token, of
// which the operation's suffix is no secret, in whatever encoding.
func (u Upstream) withoutKeys(text string) string {
	const mark = "[key]"
	if text == "" {
		return ""
	}
	text = u.secrets.Remove(text, mark)
	if len(u.hidden) > suffixLength {
		text = redact.Values(u.hidden[suffixLength:]).Remove(text, mark)
	}
	return redact.Shapes(text, mark)
}

// printable turns control, format and invalid characters into spaces and
// collapses them.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// cut bounds a text in bytes at a character's edge.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

func hasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

// usableID reports whether a text can be an id: it is kept, compared, shown and
// put into a path, where "." and ".." would lead elsewhere.
func usableID(id string) bool {
	return id != "" && id != "." && id != ".." && len(id) <= maxID && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
}
