package listing

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/strict"
)

// Entry is one entry of a list. What it does not tell is empty.
type Entry struct {
	Task, Event string
	// Word is the provider's own for the state.
	Word string
	At   pawl.Time
}

// Page is what one page of a list tells.
type Page struct {
	// Entries are those that are new to the walk and not older than was wanted.
	Entries []Entry
	// Repeated counts those that the page, or the one before, has told already,
	// Unreadable those without a usable id, Older those older than was wanted.
	Repeated, Unreadable, Older int
	// Next is where the list goes on; nil at its end.
	Next *Cursor
}

// maxID and maxCursor bound what is taken of a list, in bytes.
const (
	maxID     = 255
	maxCursor = 2048
)

// reader reads the pages of one list.
type reader struct{ l config.Listing }

// read takes a whole answer apart. The reason is empty, or says in a stable word
// why the walk cannot go on.
func (r reader) read(body []byte, c Cursor, since pawl.Time) (Page, string) {
	found, err := strict.Extract(body, r.l.Items, r.l.Paging.Next, r.l.Paging.More)
	if err != nil {
		return Page{}, ReasonMalformed
	}
	raw, reason := elements(found[0])
	if reason != "" {
		return Page{}, reason
	}
	var p Page
	seen := c.seen()
	var told []byte
	last := entry{}
	for _, element := range raw {
		e, ok := r.entry(element)
		if !ok {
			p.Unreadable++
			continue
		}
		last = e
		mark := e.mark()
		told = append(told, mark[:]...)
		switch {
		case seen[mark]:
			p.Repeated++
			continue
		case since.IsSet() && e.At.IsSet() && e.At < since:
			p.Older++
			continue
		}
		seen[mark] = true
		p.Entries = append(p.Entries, e.Entry)
	}
	if r.ends(found, len(raw), p, last, since) {
		return p, ""
	}
	at, reason := r.next(found[1], c, last, len(raw))
	if at == "" || reason != "" {
		return p, reason
	}
	if at == c.At || !r.forward(c.At, at) {
		return p, r.still(len(raw))
	}
	next, ok := c.follow(at, len(raw), told)
	if !ok {
		return p, ReasonLoop
	}
	p.Next = &next
	return p, ""
}

// still judges a page that leads to itself: a full one has more entries behind it
// that nobody can come to.
func (r reader) still(n int) string {
	switch {
	case r.l.Paging.Overlap == 0:
		return ReasonLoop
	case n >= r.l.Paging.Size:
		return ReasonStuck
	}
	return ""
}

// forward reports whether a page that overlaps the one before begins later at all.
func (r reader) forward(from, to string) bool {
	if r.l.Paging.Overlap == 0 || from == "" {
		return true
	}
	if r.l.Paging.Unix {
		a, _ := strconv.ParseInt(from, 10, 64) // Written by time.
		b, _ := strconv.ParseInt(to, 10, 64)
		return a < b
	}
	return from < to // Of one length, to the second, in UTC.
}

// ends reports whether nothing that is wanted follows the page.
func (r reader) ends(found []strict.Value, n int, p Page, last entry, since pawl.Time) bool {
	how := r.l.Paging
	more, told := found[2].Bool()
	switch {
	case how.Param == "" || n == 0 && how.Next == "":
		return true
	case how.More != "" && (!told || !more):
		return true
	case how.NewestFirst && since.IsSet() && last.At.IsSet() && last.At < since:
		return true
	}
	// Without a word for it a page that is not full is the last.
	return how.Next == "" && how.More == "" && how.Size > 0 && n < how.Size
}

// next is the parameter of the next page, empty at the end of the list.
func (r reader) next(token strict.Value, c Cursor, last entry, n int) (at, reason string) {
	how := r.l.Paging
	switch {
	case how.Offset:
		return strconv.Itoa(c.Offset + n), ""
	case how.Next != "":
		at = linked(word(token), how.Param)
	case how.Overlap > 0:
		begin, ok := moment(last.last)
		if !ok {
			return "", ReasonNoCursor
		}
		return r.time(begin.Std().Add(-how.Overlap)), ""
	default:
		if at = word(last.last); at == "" {
			return "", ReasonNoCursor
		}
	}
	if len(at) > maxCursor {
		return "", ReasonNoCursor
	}
	return at, ""
}

// time writes a time for the query.
func (r reader) time(t time.Time) string {
	if r.l.Paging.Unix {
		return strconv.FormatInt(t.Unix(), 10)
	}
	return t.UTC().Format(time.RFC3339)
}

// linked is the parameter of a link, or else the text itself. The link is never
// followed: what comes in must not say where we go.
func linked(text, param string) string {
	if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "/") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil || !u.Query().Has(param) {
		return text
	}
	return u.Query().Get(param)
}

// entry is an [Entry] with the value that a cursor may be made of.
type entry struct {
	Entry
	last strict.Value
}

// entry reads one entry; false if nothing identifies it.
func (r reader) entry(raw []byte) (entry, bool) {
	f := r.l.Fields
	v, err := strict.Extract(raw, f.Task, f.Event, f.State, f.Time, r.l.Paging.Last)
	if err != nil {
		return entry{}, false
	}
	// An empty pointer names the whole entry.
	pick := func(i int, pointer string) strict.Value {
		if pointer == "" {
			return strict.Value{}
		}
		return v[i]
	}
	e := entry{last: pick(4, r.l.Paging.Last)}
	e.Task, e.Event, e.Word = id(pick(0, f.Task)), id(pick(1, f.Event)), id(pick(2, f.State))
	e.At, _ = moment(pick(3, f.Time))
	return e, (f.Task == "" || e.Task != "") && (f.Event == "" || e.Event != "")
}

// elements splits an array that was checked before.
func elements(v strict.Value) ([][]byte, string) {
	if v.Kind() != '[' {
		return nil, ReasonNoItems
	}
	d := jsontext.NewDecoder(bytes.NewReader(v.Raw))
	if _, err := d.ReadToken(); err != nil {
		return nil, ReasonMalformed
	}
	var all [][]byte
	for d.PeekKind() != ']' {
		if len(all) == maxSize {
			return nil, ReasonTooMany
		}
		raw, err := d.ReadValue()
		if err != nil {
			return nil, ReasonMalformed
		}
		all = append(all, bytes.Clone(raw))
	}
	return all, ""
}

// word is a string, or a number as it is written; "" for all else.
func word(v strict.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	if v.Kind() == '0' {
		return string(v.Raw)
	}
	return ""
}

// id is a word that may stand for something.
func id(v strict.Value) string {
	text := word(v)
	odd := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	if len(text) > maxID || !utf8.ValidString(text) || strings.ContainsFunc(text, odd) {
		return ""
	}
	return text
}

// moment reads RFC 3339 or Unix seconds; what cannot be read is as good as
// absent.
func moment(v strict.Value) (pawl.Time, bool) {
	if seconds, ok := v.Int(); ok && seconds > 0 && seconds < 1<<36 {
		return pawl.TimeOf(time.Unix(seconds, 0)), true
	}
	text, ok := v.Text()
	if !ok {
		return 0, false
	}
	at, err := strict.ParseTime(text)
	return pawl.TimeOf(at), err == nil
}
