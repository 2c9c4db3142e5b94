package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/ledger"
)

// visit is one request to the console.
type visit struct {
	*Console
	w http.ResponseWriter
	r *http.Request
	// session is nil before the login; token names it.
	session *session
	token   token
	person  api.Person
}

// enter finds out who asks, or leads to the login.
func (v *visit) enter() error {
	if v.session == nil {
		return v.loggedOut()
	}
	person, ok, err := v.o.API.Person(v.r.Context(), v.session.visitor)
	if err != nil {
		return err
	}
	if !ok {
		v.sessions.end(v.token)
		return v.loggedOut()
	}
	v.person = person
	return nil
}

// errAnswered says that the request is answered already.
var errAnswered = &problem{}

func (v *visit) loggedOut() error {
	next := ""
	if v.r.Method == http.MethodGet && v.r.URL.Path != livePath {
		next = "?" + url.Values{"next": {v.r.URL.RequestURI()}}.Encode()
	}
	switch {
	case v.r.URL.Path == livePath:
		v.w.WriteHeader(http.StatusUnauthorized)
	case v.r.Header.Get("HX-Request") != "":
		v.w.Header().Set("HX-Refresh", "true")
		v.w.WriteHeader(http.StatusUnauthorized)
	default:
		_ = v.redirect("/console/login" + next)
	}
	return errAnswered
}

// finish shows what went wrong, if anything did.
func (v *visit) finish(err error) {
	if err == nil || err == errAnswered {
		return
	}
	p := v.asProblem(err)
	if p.Status == http.StatusUnauthorized && v.session != nil {
		v.sessions.end(v.token)
		_ = v.loggedOut()
		return
	}
	if err := v.show(p.Status, "problem", p.Title, p); err != nil {
		v.o.Log.ErrorContext(v.r.Context(), "the page of an error failed", "error", err)
		http.Error(v.w, p.Title, p.Status)
	}
}

func (v *visit) redirect(to string) error {
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// may reports whether the session's key has a scope, so that a page offers only
// what the API will do.
func (v *visit) may(s ledger.Scopes) bool { return v.person.May(s) }

// call is one call of the API, made inside the process.
type call struct {
	method, path string
	query        url.Values
	// body is sent as JSON; nil sends none.
	body any
	// why and once are the headers Pawl-Reason and Idempotency-Key, match If-Match.
	why, once, match string
	// payloads uses the scope payloads, which is audited.
	payloads bool
}

// get reads something of the API.
func (v *visit) get(path string, query url.Values, into any) error {
	return v.do(call{method: http.MethodGet, path: path, query: query}, into)
}

// do makes a call for the session's API key; a refusal is the error. into takes
// the answer, nil drops it.
func (v *visit) do(cl call, into any) error {
	r, err := v.request(cl)
	if err != nil {
		return err
	}
	answer := &answer{header: make(http.Header), status: http.StatusOK}
	v.o.API.ServeHTTP(answer, r)
	if answer.status >= 400 || answer.status == http.StatusFound {
		p := &problem{Status: answer.status, Title: http.StatusText(answer.status)}
		_ = json.Unmarshal(answer.body.Bytes(), p) // Without one, the status says enough.
		return p
	}
	if into == nil || answer.body.Len() == 0 {
		return nil
	}
	return json.Unmarshal(answer.body.Bytes(), into)
}

func (v *visit) request(cl call) (*http.Request, error) {
	body := []byte(nil)
	if cl.body != nil {
		text, err := json.Marshal(cl.body)
		if err != nil {
			return nil, err
		}
		body = text
	}
	ctx := api.As(v.r.Context(), v.session.visitor, cl.payloads)
	target := (&url.URL{Path: cl.path, RawQuery: cl.query.Encode()}).String()
	r, err := http.NewRequestWithContext(ctx, cl.method, target, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Pawl-Reason": cl.why, "Idempotency-Key": cl.once, "If-Match": cl.match} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// answer takes what the API writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// list is one page of a list of the API.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_page_token"`
}

// link is the address of the page after this one, with the filters that it has;
// empty at the end.
func (l list[T]) link(r *http.Request) string {
	if l.Next == "" {
		return ""
	}
	query := r.URL.Query()
	query.Set("page_token", l.Next)
	return r.URL.Path + "?" + query.Encode()
}

// only are those parameters of the request's query that are named and not empty.
func (v *visit) only(names ...string) url.Values {
	out := make(url.Values)
	for _, name := range names {
		if value := v.r.URL.Query().Get(name); value != "" {
			out.Set(name, value)
		}
	}
	return out
}

// filters are those parameters of the request's query that a page knows and that
// are not empty, as the API takes them: an empty field of a form asks for all.
func (v *visit) filters(names ...string) url.Values {
	return v.only(append(names, "page_token", "tenant")...)
}
