package capture

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/internal/egress"
)

// span is what a partial answer says that it holds: the bytes from From to To,
// both included, of Total; Total is -1 where the server does not know it.
type span struct{ from, to, total int64 }

// contentRange reads "bytes FROM-TO/TOTAL" (RFC 9110 §14.4).
func contentRange(text string) (s span, ok bool) {
	rest, found := strings.CutPrefix(strings.TrimSpace(text), "bytes ")
	part, size, cut := strings.Cut(rest, "/")
	first, last, dash := strings.Cut(part, "-")
	from, err := strconv.ParseUint(first, 10, 63)
	if !found || !cut || !dash || err != nil {
		return span{}, false
	}
	to, err := strconv.ParseUint(last, 10, 63)
	if err != nil || to < from {
		return span{}, false
	}
	if size == "*" {
		return span{int64(from), int64(to), -1}, true
	}
	total, err := strconv.ParseUint(size, 10, 63)
	return span{int64(from), int64(to), int64(total)}, err == nil && total > to
}

// beyondEnd reads "bytes */TOTAL", which comes with 416; -1 where it says none.
func beyondEnd(text string) int64 {
	size, found := strings.CutPrefix(strings.TrimSpace(text), "bytes */")
	total, err := strconv.ParseUint(size, 10, 63)
	if !found || err != nil {
		return -1
	}
	return int64(total)
}

// goOn judges a partial answer: it must begin where the file stops, and prove by
// the same validator that it is of the same entity. Its bytes end at until.
func (f fetcher) goOn(answer *egress.Stream, file *spoolFile) (until int64, failed *failure) {
	s, ok := contentRange(answer.Header.Get("Content-Range"))
	same := file.about.Validator != "" && validator(answer.Header) == file.about.Validator
	if file.about.Length >= 0 && s.total >= 0 {
		same = same && s.total == file.about.Length
	}
	if file.size == 0 || !ok || s.from != file.size || !same {
		// A part that was not asked for, or of another entity, or nobody knows.
		file.discard()
		return 0, again("an answer that is a part of something else")
	}
	if s.total >= 0 && file.about.Length < 0 {
		file.about.Length = s.total
		if err := file.describe(); err != nil {
			return 0, again("the spool file could not be written")
		}
	}
	return s.to + 1, f.fits(file)
}

// beyond judges an answer that no more bytes follow. That is the end of a file
// whose length nobody said; any other one has changed.
func (f fetcher) beyond(answer *egress.Stream, file *spoolFile) *failure {
	total, tag := beyondEnd(answer.Header.Get("Content-Range")), validator(answer.Header)
	if file.size > 0 && file.about.Length < 0 && (total < 0 || total == file.size) && (tag == "" || tag == file.about.Validator) {
		file.about.Length = file.size
		return f.ended(file)
	}
	file.discard()
	return again("status %d: the file has changed", http.StatusRequestedRangeNotSatisfiable)
}
