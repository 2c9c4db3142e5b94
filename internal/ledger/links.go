package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawlhq/pawl"
)

// MaxLinks is how many links of one result are captured. Further ones are taken
// out of the result as well, and a person is asked.
const MaxLinks = 64

// maxHost bounds what is kept of a link's host. No name is longer (RFC 1035
// §2.3.4), and an index holds it: PostgreSQL refuses rows of a long one.
const maxHost = 255

// linkLife is how long a link is tried of which nobody knows when it ends.
const linkLife = 24 * time.Hour

// ResultLink is a link that was in a result, without the link: that is kept as
// a payload under the same id.
type ResultLink struct {
	ID        pawl.ID
	Host      string
	Digest    Digest
	ExpiresAt pawl.Time
}

// resultLinks are all links of one result; Beyond counts those above [MaxLinks].
type resultLinks struct {
	Links  []ResultLink
	Beyond int
}

// takeLinks takes the links out of a result: an artifact's id stands for each,
// and the link is kept apart, so that no view of the result can show it
// (1-product G4).
func (d *Draft) takeLinks(up Upstream, o Observation) (text string, taken resultLinks) {
	type standIn struct {
		text     string
		artifact bool
	}
	seen := make(map[string]standIn)
	text = replaceLinks(o.Result, func(link string) (string, bool) {
		if s, ok := seen[link]; ok {
			return s.text, s.artifact
		}
		if len(taken.Links) == MaxLinks {
			taken.Beyond++
			// As a value it becomes null. Names must differ: of two that are the same
			// a reader keeps one member, and loses the other's value.
			seen[link] = standIn{text: fmt.Sprintf("link %d, not captured", MaxLinks+taken.Beyond)}
			return seen[link].text, false
		}
		l := newLink(up, o, link, d.Now)
		l.ID = d.NewID()
		d.keep(l.ID, LinkPayload, link)
		taken.Links = append(taken.Links, l)
		seen[link] = standIn{l.ID.Text(pawl.PrefixArtifact), true}
		return seen[link].text, true
	})
	return text, taken
}

// linksOf are the links of a result in their order, each once.
func linksOf(result string) (links []string) {
	replaceLinks(result, func(link string) (string, bool) {
		if !slices.Contains(links, link) && len(links) < MaxLinks {
			links = append(links, link)
		}
		return "", false
	})
	return links
}

// newLink is what is known of a link: the earliest end that its query, the
// provider's answer or its description names.
func newLink(up Upstream, o Observation, link string, now pawl.Time) ResultLink {
	l := ResultLink{Digest: sha256.Sum256([]byte(link))}
	ends := []pawl.Time{o.LinksExpire}
	if up.LinkLifetime > 0 {
		ends = append(ends, now.Add(up.LinkLifetime))
	}
	if u, err := url.Parse(link); err == nil {
		l.Host = strings.ToLower(u.Host[:min(len(u.Host), maxHost)])
		ends = append(ends, signedUntil(u)...)
	}
	for _, end := range ends {
		if end.IsSet() && (l.ExpiresAt == 0 || end < l.ExpiresAt) {
			l.ExpiresAt = end
		}
	}
	return l
}

// signedUntil are the ends that the query of a signed link names: those of
// Amazon S3 and Google Cloud Storage (a date and seconds), of older S3 and
// CloudFront links (Expires) and of Azure's (se). What cannot be read is left
// out: the link is then tried for as long as any other.
func signedUntil(u *url.URL) (ends []pawl.Time) {
	q := u.Query()
	for _, vendor := range [...]string{"X-Amz-", "X-Goog-"} {
		from, err := time.Parse("20060102T150405Z", q.Get(vendor+"Date"))
		if seconds, ok := seconds(q.Get(vendor + "Expires")); err == nil && ok {
			ends = append(ends, pawl.TimeOf(from.Add(time.Duration(seconds)*time.Second)))
		}
	}
	if at, ok := seconds(q.Get("Expires")); ok {
		ends = append(ends, pawl.TimeOf(time.Unix(at, 0)))
	}
	if at, err := time.Parse(time.RFC3339, q.Get("se")); err == nil {
		ends = append(ends, pawl.TimeOf(at))
	}
	return ends
}

// seconds reads a number of at most eleven digits: later times are nonsense.
func seconds(text string) (int64, bool) {
	if text == "" || len(text) > 11 {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// replaceLinks gives a JSON text with every string that is a link replaced by
// the string that instead gives, or by null where it reports false. All else
// stays as it is, byte for byte. Names of members are strings too; one cannot
// become null and becomes the string that is given all the same.
func replaceLinks(text string, instead func(link string) (string, bool)) string {
	var out strings.Builder
	rest := text
	for {
		from := strings.IndexByte(rest, '"')
		if from < 0 {
			break
		}
		end := stringEnd(rest[from:])
		if end < 0 {
			break
		}
		raw, after := rest[from:from+end], rest[from+end:]
		link, ok := linkIn(raw)
		if !ok {
			out.WriteString(rest[:from+end])
			rest = after
			continue
		}
		out.WriteString(rest[:from])
		id, known := instead(link)
		name := strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), ":")
		if known || name {
			out.WriteString(`"` + id + `"`)
		} else {
			out.WriteString("null")
		}
		rest = after
	}
	if out.Len() == 0 {
		return text
	}
	out.WriteString(rest)
	return out.String()
}

// stringEnd is the length of the JSON string that text begins with, -1 if it
// does not end.
func stringEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// linkIn gives the link that a JSON string is. A text that merely mentions one
// is none: a link has no blanks inside.
func linkIn(raw string) (string, bool) {
	if len(raw) < len(`"http://x"`) {
		return "", false
	}
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		return "", false
	}
	text = strings.TrimSpace(text)
	for _, scheme := range [...]string{"https://", "http://"} {
		if len(text) > len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
			return text, !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) })
		}
	}
	return "", false
}

// sortArtifacts puts artifacts in the order of the result.
func sortArtifacts(all []Artifact) {
	slices.SortFunc(all, func(a, b Artifact) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), a.ID.Compare(b.ID))
	})
}
