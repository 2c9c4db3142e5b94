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
	var sent []byte
	if r.Body != nil && r.GetBody != nil {
		if copied, err := r.GetBody(); err == nil {
			sent, _ = io.ReadAll(copied)
		}
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

// failing is the rest of a body that broke off.
type failing struct{ err error }

// Read implements [io.Reader].
func (f failing) Read([]byte) (int, error) { return 0, f.err }
