package upstream

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/internal/strict"
)

// document is a checked JSON text with the values at the pointers that a
// description names.
type document struct {
	pointers []string
	values   []strict.Value
}

// readDocument checks the whole text (7-rules §1, line 4). What is no pointer,
// such as an empty one or the name of a header, is dropped.
func readDocument(body []byte, pointers ...string) (document, error) {
	var d document
	for _, p := range pointers {
		if strings.HasPrefix(p, "/") {
			d.pointers = append(d.pointers, p)
		}
	}
	var err error
	d.values, err = strict.Extract(body, d.pointers...)
	return d, err
}

// at gives the value at a pointer; a null is as good as absent.
func (d document) at(pointer string) strict.Value {
	if i := slices.Index(d.pointers, pointer); i >= 0 && i < len(d.values) && !d.values[i].Null() {
		return d.values[i]
	}
	return strict.Value{}
}

// word gives a string, or a number or boolean as it is written; "" for all else.
func (d document) word(pointer string) string {
	v := d.at(pointer)
	if text, ok := v.Text(); ok {
		return text
	}
	if _, ok := v.Bool(); ok || v.Kind() == '0' {
		return string(v.Raw)
	}
	return ""
}

// id gives a usable id, a string or an integer; "" for all else.
func (d document) id(pointer string) string {
	if _, isBool := d.at(pointer).Bool(); isBool {
		return ""
	}
	if id := d.word(pointer); usableID(id) {
		return id
	}
	return ""
}

// pointers lists the pointers of the fields.
func (f Fields) pointers() []string {
	list := []string{
		f.Task, f.State, f.Version, f.Progress, f.Cost, f.Currency, f.Settled,
		f.ErrorCode, f.ErrorMessage, f.Result, f.LinksExpire,
	}
	if _, header := f.requestHeader(); !header {
		list = append(list, f.RequestID)
	}
	return list
}

func (f Fields) requestHeader() (name string, ok bool) {
	return strings.CutPrefix(f.RequestID, "header:")
}

// requestID is the provider's id of a request, "" if there is none.
func (f Fields) requestID(d document, h http.Header) string {
	id := d.id(f.RequestID)
	if name, ok := f.requestHeader(); ok {
		id = h.Get(name)
	}
	if !usableID(id) {
		return ""
	}
	return id
}

// answer is what a provider sent back, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// verdict is the one meaning of an answer's status and envelope. status is 0
// where the two contradict each other.
type verdict struct {
	status        int
	doc           document
	malformed     bool
	word, message string
}

// judge reads the answer's status, envelope and error. A 2xx whose envelope
// carries another code is an error with that code, but for 0, which is how many
// spell success; an error status whose envelope says anything else means nothing
// certain (2-contracts §2, O-046).
func (u Upstream) judge(a answer, f Fields) verdict {
	s := u.spec
	doc, err := readDocument(a.body, append(f.pointers(), s.Envelope.Code, s.Errors.Code, s.Errors.Message)...)
	v := verdict{status: a.status, doc: doc, malformed: err != nil}
	if code := doc.word(s.Envelope.Code); code != "" {
		n, err := strconv.Atoi(code)
		switch {
		case success(a.status) && (success(n) || err == nil && n == 0), n == a.status:
		case success(a.status) && err == nil && n >= 300 && n <= 599:
			v.status = n
		default:
			v.status = 0
		}
	}
	if !success(v.status) {
		v.word = u.word(doc.word(s.Errors.Code), maxWord)
		v.message = u.message(doc.word(s.Errors.Message))
	}
	return v
}

func success(status int) bool { return status >= 200 && status <= 299 }
