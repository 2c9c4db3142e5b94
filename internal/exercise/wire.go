package exercise

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
)

// kind says which way an exchange went.
type kind string

// The kinds of exchanges.
const (
	// callback: the provider tells the receiver of an event.
	callback kind = "callback"
	// read: we ask the provider for a task's status.
	read kind = "read"
	// create: a create reached the provider, which must not happen.
	create kind = "create"
	// delivery: an outcome is told to the receiver of our own events.
	delivery kind = "delivery"
	// other: a request that nothing expects.
	other kind = "other"
)

// exchange is one request and its answer as they are kept in wire/.
// Signatures, credentials and callback tokens are left out; who signed is told
// instead, and the secrets of a run can be derived (see [keyring]).
type exchange struct {
	Number int       `json:"number"`
	Kind   kind      `json:"kind"`
	Phase  string    `json:"phase"`
	Check  string    `json:"check"`
	At     pawl.Time `json:"at"`
	// To is the task of the operation whose callback address was used.
	To string `json:"to,omitempty"`
	// SignedBy is "source" or "stranger", Age how many seconds before the
	// exchange the signature says that it was made.
	SignedBy string  `json:"signed_by,omitempty"`
	Age      int64   `json:"age,omitempty"`
	EventID  string  `json:"event_id,omitempty"`
	Request  request `json:"request"`
	// Answer is absent where the connection was lost before one came.
	Answer *answer `json:"answer,omitempty"`
	Lost   string  `json:"lost,omitempty"`
}

type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

type answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// shownHeaders are the only ones that are kept: none can hold a credential or
// a signature.
var shownHeaders = []string{
	"Content-Type", "Accept", "Retry-After", "Pawl-Attempt", "Pawl-Endpoint-Sequence",
	"Webhook-Id", "Webhook-Timestamp", "X-Webhook-Id", "X-Webhook-Timestamp", "X-Webhook-Payload-Version",
}

func shown(h http.Header) map[string]string {
	kept := make(map[string]string)
	for _, name := range shownHeaders {
		if values := h.Values(name); len(values) > 0 {
			kept[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return kept
}

// wire numbers the exchanges of a run. It is safe for concurrent use.
type wire struct {
	mu    sync.Mutex
	phase string
	check string
	all   []exchange
}

// now says what the exchanges from here on belong to.
func (w *wire) now(phase, check string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.check = phase, check
}

// begin keeps a place for an exchange; [wire.end] fills it. Its number is that
// of its request.
func (w *wire) begin(x exchange) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.Number, x.Phase, x.Check, x.At = len(w.all)+1, w.phase, w.check, pawl.TimeOf(time.Now())
	w.all = append(w.all, x)
	return x.Number
}

func (w *wire) end(number int, a *answer, lost string) exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &w.all[number-1]
	x.Answer, x.Lost = a, lost
	return *x
}

func (w *wire) exchanges() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]exchange(nil), w.all...)
}

// tap records what a handler is asked and answers.
func (w *wire) tap(k func(*http.Request) kind, body func(*http.Request) []byte, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		number := w.begin(exchange{Kind: k(r), Request: request{r.Method, r.URL.RequestURI(), shown(r.Header), string(body(r))}})
		seen := &capture{ResponseWriter: rw, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		w.end(number, &answer{seen.status, shown(rw.Header()), seen.body.String()}, "")
	})
}

// capture is a ResponseWriter that remembers.
type capture struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements [http.ResponseWriter].
func (c *capture) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (c *capture) Write(p []byte) (int, error) {
	c.body.Write(p)
	return c.ResponseWriter.Write(p)
}
