package pawltest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// Send sends an event of the generic source, signed and under an id, and gives the
// status that it was answered with: 202 the first time, 200 for a repeat. The
// tenant's endpoints get it as an event whose type is the member type of the body,
// which must be JSON. It fails the test where there is no answer.
func (p *Pawl) Send(id string, body []byte) (status int) {
	p.t.Helper()
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(string(p.SourceSecret))
	p.must(err)
	header, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: body}, key)
	p.must(err)
	r, err := http.NewRequestWithContext(context.WithoutCancel(p.t.Context()), http.MethodPost, p.URL+"/hooks/"+Source, bytes.NewReader(body))
	p.must(err)
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.http().Do(r)
	p.must(err)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
