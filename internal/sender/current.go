package sender

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// defaultRead bounds a read of a current record that names no bound.
const defaultRead = 5 * time.Second

// address is the template of a record's address: texts and pointers take turns,
// and a text comes first.
type address struct {
	texts, pointers []string
}

var errAddress = errors.New("must be an absolute http or https URL without user and fragment, in whose path or query {/pointer} stands for a value of the body")

// parseAddress reads a template. Scheme and host are literal: what comes in must
// not say where we go.
func parseAddress(r config.SourceRead) (address, error) {
	var a address
	rest := r.URL
	for {
		text, behind, found := strings.Cut(rest, "{")
		a.texts = append(a.texts, text)
		if !found {
			break
		}
		p, after, closed := strings.Cut(behind, "}")
		if !closed || !pointer(p) {
			return a, errAddress
		}
		a.pointers = append(a.pointers, p)
		rest = after
	}
	first, err := url.Parse(a.texts[0])
	plain := err == nil && (first.Scheme == "http" || first.Scheme == "https") && first.Host != "" && first.User == nil
	if !plain || len(a.pointers) > 0 && first.Path == "" || strings.Contains(strings.Join(a.texts, ""), "#") {
		return a, errAddress
	}
	if _, err := url.Parse(strings.Join(a.texts, "x")); err != nil {
		return a, errAddress
	}
	return a, nil
}

// ErrNoRecord: the event does not name the record that is to be read.
var ErrNoRecord = errors.New("the event does not name the record to be read")

// Reads reports whether the current record is read before an event is handed
// over, and how long that may take.
func (s Sender) Reads() (timeout time.Duration, ok bool) {
	if s.current == nil {
		return 0, false
	}
	if s.settings.Read.Timeout > 0 {
		return s.settings.Read.Timeout, true
	}
	return defaultRead, true
}

// named reports whether a text can name a record: bounded, without control
// characters, and no step up in a path.
func named(id string) bool {
	return id != "" && id != "." && id != ".." && len(id) <= maxID && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}

// Current is the request for the record that a stored event is about. What the
// event names is one segment of the path, or one value of the query, whatever it
// holds. The error is [ErrNoRecord], and says which place lacks it.
func (s Sender) Current(e ledger.Event, body []byte) (*http.Request, error) {
	values, err := s.values(storedHeader(e.Headers), body, append([]string(nil), s.current.pointers...)...)
	if err != nil {
		return nil, ErrNoRecord
	}
	var b strings.Builder
	escape := url.PathEscape
	for i, text := range s.current.texts {
		b.WriteString(text)
		if strings.Contains(text, "?") {
			escape = url.QueryEscape
		}
		if i < len(s.current.pointers) {
			id := word(values[s.current.pointers[i]])
			if !named(id) {
				return nil, fmt.Errorf("%w: at %s it has no text of 1 to %d bytes without control characters (nor . and ..)", ErrNoRecord, s.current.pointers[i], maxID)
			}
			b.WriteString(escape(id))
		}
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return nil, ErrNoRecord
	}
	r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Accept": {jsonType}}}
	read := s.settings.Read
	authorize(r.Header, read.Key, read.Header, read.Format)
	return r, nil
}

// authorize adds a credential to a request of ours; none if there is none.
func authorize(h http.Header, key config.Secret, name, format string) {
	if key.IsZero() {
		return
	}
	if name == "" {
		name = "Authorization"
	}
	if format == "" {
		format = "Bearer {key}"
	}
	h.Set(name, strings.ReplaceAll(format, "{key}", key.Reveal()))
}
