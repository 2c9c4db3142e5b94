package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
)

type servingKey struct{}

// serving is the span of a request that is served. It begins when it is first
// needed: not before it is known, if ever, that its caller may be believed.
type serving struct {
	traces  *Traces
	method  string
	scheme  string
	request string
	start   time.Time
	caller  strict.Traceparent
	called  bool

	once sync.Once
	span trace.Span
}

// serve prepares the span of a request; nil if there is to be none. The probes of
// whoever runs the node are no one's requests.
func (t *Traces) serve(r *http.Request, id string, start time.Time) *serving {
	if t == nil || r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
		return nil
	}
	s := &serving{traces: t, method: r.Method, scheme: "http", request: id, start: start}
	if r.TLS != nil {
		s.scheme = "https"
	}
	s.caller, s.called = strict.ParseTraceparent(r.Header.Values("Traceparent"))
	return s
}

// begin begins the span unless it has begun: in the trace of a caller that is
// known, else in one of its own, which links the caller's, so that no stranger
// decides what is recorded (TR-05).
func (s *serving) begin(known bool) trace.Span {
	s.once.Do(func() {
		ctx := context.Background()
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.start),
			trace.WithAttributes(append(methodAttributes(s.method), semconv.URLScheme(s.scheme), attribute.String("pawl.request", s.request))...),
		}
		switch {
		case s.called && known:
			ctx = trace.ContextWithRemoteSpanContext(ctx, spanContext(s.caller))
		case s.called:
			options = append(options, trace.WithLinks(trace.Link{SpanContext: spanContext(s.caller)}))
		}
		_, s.span = s.traces.tracer.Start(ctx, spanName(s.method), options...)
	})
	return s.span
}

// end ends the span of a request to a route, which is a pattern, never a path.
func (s *serving) end(route, status string) {
	if s == nil {
		return
	}
	span := s.begin(false)
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path // A pattern of the mux names the method too.
	}
	if route != unmatched {
		span.SetName(spanName(s.method) + " " + route)
		span.SetAttributes(semconv.HTTPRoute(route))
	}
	code, err := strconv.Atoi(status)
	switch {
	case err != nil:
		failSpan(span, status)
	case code >= 500:
		failSpan(span, status)
		fallthrough
	default:
		span.SetAttributes(semconv.HTTPResponseStatusCode(code))
	}
	span.End()
}

func servingOf(ctx context.Context) *serving {
	s, _ := ctx.Value(servingKey{}).(*serving)
	return s
}

// Believe is to be called once a request's caller has proved who it is: the
// request's span becomes a part of the caller's own trace.
func Believe(ctx context.Context) {
	if s := servingOf(ctx); s != nil {
		s.begin(true)
	}
}

// TraceContext is what is stored of a request with what it brings about: the
// context of its span where spans are made, else the caller's own word if it may
// be believed, empty for none.
func TraceContext(ctx context.Context, believed http.Header) string {
	if s := servingOf(ctx); s != nil {
		return textOf(s.begin(false).SpanContext())
	}
	if t, ok := strict.ParseTraceparent(believed.Values("Traceparent")); ok {
		return t.String()
	}
	return ""
}

// Concerns says which operation a request is about, and links the trace context
// that it was submitted in, where that is another.
func Concerns(ctx context.Context, operation pawl.ID, submission string) {
	s := servingOf(ctx)
	if s == nil || operation.IsZero() {
		return
	}
	span := s.begin(false)
	span.SetAttributes(operationAttribute.String(operation.Text(pawl.PrefixOperation)))
	if c, ok := contextOf(submission); ok && c.SpanID() != span.SpanContext().SpanID() {
		span.AddLink(trace.Link{SpanContext: c})
	}
}

// traceID is the trace of the request that a context belongs to, empty for none.
func traceID(ctx context.Context) string {
	if s := servingOf(ctx); s != nil {
		return s.begin(false).SpanContext().TraceID().String()
	}
	return ""
}
