package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/internal/strict"
)

// Traces begins the spans of a node. Nil begins none, reads no header and costs
// nothing. What a span may hold is a fixed list: words of the program, names of
// the configuration, our own ids, scheme, host and port of where a request went,
// and status codes; never a path, a query, a header or a body (I4, TR-12, TR-13).
// It is safe for concurrent use.
type Traces struct{ tracer trace.Tracer }

// NewTraces begins spans by a provider, which should be of [NewTraceProvider].
func NewTraces(p trace.TracerProvider) *Traces {
	return &Traces{p.Tracer("github.com/pawlhq/pawl")}
}

// NewTraceProvider makes a provider that can begin a trace under a given id, as
// what was never submitted within a trace needs ([Errand.Trace]).
func NewTraceProvider(o ...sdk.TracerProviderOption) *sdk.TracerProvider {
	return sdk.NewTracerProvider(append(o, sdk.WithIDGenerator(traceIDs{}))...)
}

type traceIDKey struct{}

// traceIDs draws ids, but for the trace that the context names.
type traceIDs struct{}

// NewIDs implements [sdk.IDGenerator].
func (g traceIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(traceIDKey{}).(trace.TraceID)
	for !ok || !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
		ok = true
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements [sdk.IDGenerator].
func (traceIDs) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// Errand says what requests to the outside are for.
type Errand struct {
	// Submission is the stored trace context of what they are for, empty for none.
	// Within makes the span a part of that trace, else it begins one of its own
	// and links that (TR-06).
	Submission string
	Within     bool
	// Seed is what the trace's id is made of where there is no submission to be
	// within, empty for an id that is drawn: the same seed, the same trace.
	Seed []byte
	// Told hands the span's context to the receiver, in place of the traceparent
	// of the request.
	Told bool
	// Resend counts the earlier tries.
	Resend int
	// Act is a word of the program: create, read, lookup, cancel, capture, deliver.
	Act string
	// Upstream is a name of the configuration; the others are our own ids in their
	// text form. All may be empty.
	Upstream, Operation, Event, Endpoint, Delivery string
}

type errandKey struct{}

// On says that requests under the context it gives are made for an errand.
func (t *Traces) On(ctx context.Context, e Errand) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, errandKey{}, e)
}

// Call is the span of one request to the outside. The zero value records nothing.
type Call struct {
	span trace.Span
	told bool
}

// Call begins the span of a request. Its name is the method alone: the path
// belongs to the other side, and may hold secrets (TR-10, TR-12).
func (t *Traces) Call(ctx context.Context, method string, to *url.URL) Call {
	if t == nil {
		return Call{}
	}
	e, _ := ctx.Value(errandKey{}).(Errand)
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(e.attributes(method, to)...)}
	// Neither values nor the end of the caller's context are the span's.
	parent := context.Background()
	submission, known := contextOf(e.Submission)
	switch {
	case known && e.Within:
		parent = trace.ContextWithRemoteSpanContext(parent, submission)
	case known:
		options = append(options, trace.WithLinks(trace.Link{SpanContext: submission}))
	case len(e.Seed) > 0:
		sum := sha256.Sum256(append([]byte("pawl trace "), e.Seed...))
		parent = context.WithValue(parent, traceIDKey{}, trace.TraceID(sum[:16]))
	}
	_, span := t.tracer.Start(parent, spanName(method), options...)
	return Call{span, e.Told}
}

func (e Errand) attributes(method string, to *url.URL) []attribute.KeyValue {
	all := append(methodAttributes(method), semconv.ServerAddress(to.Hostname()), semconv.URLScheme(to.Scheme), semconv.ServerPort(portOf(to)))
	if e.Resend > 0 {
		all = append(all, semconv.HTTPRequestResendCount(e.Resend))
	}
	for _, a := range [...]struct {
		key   attribute.Key
		value string
	}{
		{"pawl.act", e.Act}, {"pawl.upstream", e.Upstream}, {operationAttribute, e.Operation},
		{"pawl.event", e.Event}, {"pawl.endpoint", e.Endpoint}, {"pawl.delivery", e.Delivery},
	} {
		if a.value != "" {
			all = append(all, a.key.String(a.value))
		}
	}
	if e.Event != "" {
		all = append(all, semconv.MessagingSystemKey.String("pawl"), semconv.MessagingOperationTypeSend, semconv.MessagingOperationName(e.Act),
			semconv.MessagingMessageID(e.Event), semconv.MessagingDestinationName(e.Endpoint))
	}
	return all
}

const operationAttribute = attribute.Key("pawl.operation")

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// Tell puts the span's context into the headers of a request whose receiver is
// told of it. Nobody ever gets tracestate or baggage (TR-08).
func (c Call) Tell(h http.Header) {
	if c.span != nil && c.told {
		h.Set("Traceparent", textOf(c.span.SpanContext()))
	}
}

// Answered ends the span with the status of the answer, and with the kind of
// what went wrong while it was read, empty for nothing.
func (c Call) Answered(status int, failure string) {
	if c.span == nil {
		return
	}
	c.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	if status >= 400 {
		failure = strconv.Itoa(status)
	}
	c.fail(failure)
	c.span.End()
}

// Failed ends the span of a request without an answer: failure is a word of the
// program for why, empty if we gave it up ourselves, which is no error (TR-11).
func (c Call) Failed(failure string) {
	if c.span == nil {
		return
	}
	c.fail(failure)
	c.span.End()
}

func (c Call) fail(failure string) { failSpan(c.span, failure) }

// failSpan marks a span as an error of a kind, empty for none. There is no text:
// it would be another's.
func failSpan(s trace.Span, failure string) {
	if failure != "" {
		s.SetAttributes(semconv.ErrorTypeKey.String(failure))
		s.SetStatus(codes.Error, "")
	}
}

// methodAttributes keeps the values few: a method may be any word (TR-10).
func methodAttributes(method string) []attribute.KeyValue {
	if methodOf(method) == "other" {
		method = "_OTHER"
	}
	return []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method)}
}

func spanName(method string) string {
	if methodOf(method) == "other" {
		return "HTTP"
	}
	return method
}

// contextOf reads a trace context of the ledger.
func contextOf(traceparent string) (trace.SpanContext, bool) {
	if traceparent == "" {
		return trace.SpanContext{}, false
	}
	t, ok := strict.ParseTraceparent([]string{traceparent})
	return spanContext(t), ok
}

func spanContext(t strict.Traceparent) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t.Trace, SpanID: t.Span, TraceFlags: trace.TraceFlags(t.Flags), Remote: true,
	})
}

func textOf(c trace.SpanContext) string {
	return strict.Traceparent{Trace: c.TraceID(), Span: c.SpanID(), Flags: byte(c.TraceFlags()) & (strict.FlagSampled | strict.FlagRandom)}.String()
}
