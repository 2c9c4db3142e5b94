package egress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// Limits bound one request.
type Limits struct {
	Timeout     time.Duration // from the wait for a connection to the last byte of the answer; 0 is DefaultTimeout
	MaxResponse int64         // bytes of the answer's body; 0 is DefaultMaxResponse
	// NoResend makes the request, if it is no GET, one that the transport never
	// sends a second time once a server may have got it (field case O-008). By
	// itself net/http repeats requests with an Idempotency-Key header when a
	// kept connection fails. With it, such a failure comes back as an *Error
	// whose MaybeWritten decides. Creates are sent so; deliveries are not.
	NoResend bool
}

// Response is an answer of any status; 3xx is one like the others.
type Response struct {
	Status   int
	Header   http.Header
	Body     []byte        // at most Limits.MaxResponse bytes
	Duration time.Duration // from the call to the last byte
	// Truncated tells that Body is not all: it was longer than the limit, or,
	// if Cut is set, the answer broke off or the time ran out (field case O-102).
	Truncated bool
	Cut       *Error
}

// Do sends a request and reads the answer. The URL is judged as by ParseURL,
// the Host field of the request is ignored, and the body is closed. The error
// is a *Refused, or an *Error that tells whether the request may have arrived;
// once a status has come, there is none.
func (c *Client) Do(ctx context.Context, r *http.Request, l Limits) (*Response, error) {
	start := time.Now()
	s, err := c.Open(ctx, r, l)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := &Response{Status: s.Status, Header: s.Header}
	out.Body, err = io.ReadAll(s)
	out.Duration = time.Since(start)
	out.Truncated = err != nil
	errors.As(err, &out.Cut)
	return out, nil
}

// ErrTooLarge ends the reading of an answer that is longer than its limit.
var ErrTooLarge = errors.New("egress: the answer is longer than its limit")

// Stream is an answer whose body is still to be read, for results that are too
// large to hold. It must be closed. It is for one goroutine at a time.
type Stream struct {
	Status        int
	Header        http.Header
	ContentLength int64 // as the server says; -1 if it does not

	call   telemetry.Call
	failed Cause // why the answer broke off
	host   string
	body   io.ReadCloser
	left   int64
	cancel context.CancelFunc
}

// Open is Do without reading the body; the time of l runs until Close.
func (c *Client) Open(ctx context.Context, r *http.Request, l Limits) (*Stream, error) {
	u, err := c.policy.ParseURL(r.URL.String())
	if err != nil {
		closeBody(r)
		return nil, err
	}
	call := c.traces.Call(ctx, r.Method, u)
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.Timeout, DefaultTimeout))
	t := &trail{}
	out := r.Clone(httptrace.WithClientTrace(ctx, t.hooks()))
	out.URL, out.Host = u, ""
	call.Tell(out.Header)
	if l.NoResend {
		forbidResend(out)
	}
	answer, err := c.transport(u.Scheme).RoundTrip(out)
	if err != nil {
		cancel()
		err = t.explain(u.Hostname(), err)
		call.Failed(kindOf(err))
		return nil, err
	}
	return &Stream{
		call:   call,
		Status: answer.StatusCode, Header: answer.Header, ContentLength: answer.ContentLength,
		host: u.Hostname(), body: answer.Body, left: cmp.Or(l.MaxResponse, DefaultMaxResponse), cancel: cancel,
	}, nil
}

func (c *Client) transport(scheme string) http.RoundTripper {
	switch {
	case c.wire != nil:
		return c.wire
	case scheme == "http":
		return c.plain
	default:
		return c.secure
	}
}

// forbidResend relies on the rule of net/http that a body can be sent again only
// if GetBody makes another. A request without a body it repeats for its method
// (a GET, which creates nothing) or for an idempotency header, which it finds in
// the canonical spelling only; on the wire the spelling means nothing.
func forbidResend(r *http.Request) {
	r.GetBody = nil
	if r.Body != nil && r.Body != http.NoBody {
		return
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := r.Header[name]; ok {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
}

// kindOf is the kind of a failed request, as a span names it.
func kindOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return errorType(known.Cause)
	}
	return "refused"
}

// errorType is a cause as a span names it: giving up is no error (TR-11).
func errorType(c Cause) string {
	if c == CauseCanceled {
		return ""
	}
	return string(c)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// explain turns an error of the transport into ours.
func (t *trail) explain(host string, err error) error {
	maybe := t.maybeWritten()
	var refused *Refused
	if errors.As(err, &refused) {
		return refused
	}
	var known *Error
	if !errors.As(err, &known) {
		known = failure(host, err, t.handshakeFailed())
	}
	return &Error{Cause: known.Cause, Detail: known.Detail, Host: known.Host, MaybeWritten: maybe}
}

// Read gives bytes of the body up to the limit, then ErrTooLarge if there are
// more. Other errors than io.EOF are an *Error.
func (s *Stream) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, s.probe()
	}
	if int64(len(b)) > s.left {
		b = b[:s.left]
	}
	n, err := s.body.Read(b)
	s.left -= int64(n)
	if err != nil && err != io.EOF {
		err = s.cut(err)
	}
	return n, err
}

// probe tells a body that ends at its limit from a longer one.
func (s *Stream) probe() error {
	var one [1]byte
	for {
		n, err := s.body.Read(one[:])
		switch {
		case n > 0:
			return ErrTooLarge
		case err == io.EOF:
			return io.EOF
		case err != nil:
			return s.cut(err)
		}
	}
}

func (s *Stream) cut(err error) error {
	e := failure(s.host, err, false)
	e.MaybeWritten, s.failed = true, e.Cause
	return e
}

// Close ends the answer; a rest that was not read is not fetched.
func (s *Stream) Close() error {
	s.cancel()
	s.call.Answered(s.Status, errorType(s.failed))
	return s.body.Close()
}
