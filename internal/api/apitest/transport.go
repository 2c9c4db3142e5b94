package apitest

import (
	"bytes"
	"io"
	"net/http"
)

// Transport holds every exchange that goes through it against a document. It
// is safe for concurrent use if its fields are.
type Transport struct {
	// Base carries the requests out.
	Base http.RoundTripper
	// Document is asked for at each exchange; nil leaves that one unchecked.
	Document func(*http.Request) *Document
	// Report is told each fault.
	Report func(fault string)
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	d := t.Document(r)
	if d == nil {
		return t.Base.RoundTrip(r)
	}
	sent, r, err := read(r)
	if err != nil {
		return nil, err
	}
	res, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		// A cut answer is the caller's to find out.
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
		return res, nil
	}
	for _, fault := range d.Faults(Exchange{r.Method, r.URL, r.Header, sent, res.StatusCode, res.Header, body}) {
		t.Report(fault)
	}
	return res, nil
}

// read gives a request's body beside a request that still has it.
func read(r *http.Request) ([]byte, *http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, r, nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, r, err
	}
	again := r.Clone(r.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return body, again, nil
}

// failing is the rest of a body that broke off.
type failing struct{ err error }

// Read implements [io.Reader].
func (f failing) Read([]byte) (int, error) { return 0, f.err }
