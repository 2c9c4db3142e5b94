package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// RequestIDHeader carries the request id in every answer.
const RequestIDHeader = "Pawl-Request-Id"

type requestIDKey struct{}

// RequestID is the id that HTTP gave to the request, "" outside of one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// HTTP gives every request an id ("req_" and 26 random characters, in the
// context and in the answer), counts and times it, and recovers panics.
//
// route names the request's route by a pattern of the program; it is asked
// after next has run, with the request that next got, so that it may read
// r.Pattern. "" means that no route matched. Only the pattern is logged and
// measured, never the path or the query, which may hold tokens.
//
// panicked answers in place of a handler that panicked before it wrote
// anything; nil answers a bare 500. If something was written already, the
// connection is cut, so that the client cannot take half an answer for a whole.
//
// traces makes a span of each request; nil makes none.
func HTTP(route func(*http.Request) string, m *Metrics, traces *Traces, log *slog.Logger, panicked http.HandlerFunc, next http.Handler) http.Handler {
	if panicked == nil {
		panicked = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	}
	return &observer{route: route, metrics: m, traces: traces, log: log, panicked: panicked, next: next}
}

type observer struct {
	route    func(*http.Request) string
	metrics  *Metrics
	traces   *Traces
	log      *slog.Logger
	panicked http.HandlerFunc
	next     http.Handler
}

// ServeHTTP implements http.Handler.
func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	id := newRequestID()
	ctx := context.WithValue(r.Context(), requestIDKey{}, id)
	if s := o.traces.serve(r, id, start); s != nil {
		ctx = context.WithValue(ctx, servingKey{}, s)
	}
	r = r.WithContext(ctx)
	w.Header().Set(RequestIDHeader, id)
	rec := &recorder{ResponseWriter: w}
	defer func() {
		cause := recover()
		// The server's own way to cut a connection is no fault.
		if cause != nil && cause != http.ErrAbortHandler {
			o.recovered(rec, r, cause)
		}
		abort := cause != nil && (cause == http.ErrAbortHandler || rec.cut)
		o.record(rec, r, time.Since(start), abort)
		if abort {
			panic(http.ErrAbortHandler)
		}
	}()
	o.next.ServeHTTP(rec, r)
}

// recovered logs where a panic came from, and of its value only the type: the
// value may hold anything.
func (o *observer) recovered(rec *recorder, r *http.Request, cause any) {
	o.metrics.Panics.Inc()
	o.log.LogAttrs(r.Context(), slog.LevelError, "handler panicked",
		slog.String("request_id", RequestID(r.Context())), slog.String("route", o.routeOf(r)),
		slog.String("panic_type", fmt.Sprintf("%T", cause)), slog.Any("stack", stack()))
	if rec.status != 0 {
		rec.cut = true
		return
	}
	o.panicked(rec, r)
}

// Contain is to be deferred by a piece of background work. A panic ends that
// piece alone: it is logged, without its value, which may hold anything, and then
// is called. What ended the process would be met again in its next life.
func Contain(log *slog.Logger, what string, then func()) {
	if cause := recover(); cause != nil {
		log.Error("background work panicked", "work", what, "panic_type", fmt.Sprintf("%T", cause), "stack", stack())
		then()
	}
}

// stack lists the functions and lines below the panic, without arguments.
func stack() []string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var lines []string
	for {
		f, more := frames.Next()
		lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, path.Base(f.File), f.Line))
		if !more {
			return lines
		}
	}
}

// statusCut is the label of a request whose connection was cut.
const statusCut = "cut"

func (o *observer) record(rec *recorder, r *http.Request, took time.Duration, abort bool) {
	route, method := o.routeOf(r), methodOf(r.Method)
	status := statusCut
	level := slog.LevelDebug
	switch {
	case abort:
	case rec.status == 0:
		status = "200"
	default:
		status = strconv.Itoa(rec.status)
	}
	if abort || rec.status >= 500 {
		level = slog.LevelWarn
	}
	o.metrics.Requests.WithLabelValues(route, method, status).Inc()
	o.metrics.RequestSeconds.WithLabelValues(route, method).Observe(took.Seconds())
	o.log.LogAttrs(r.Context(), level, "request",
		slog.String("request_id", RequestID(r.Context())), slog.String("route", route), slog.String("method", method),
		slog.String("status", status), slog.Int64("answer_bytes", rec.bytes), slog.Duration("took", took))
	servingOf(r.Context()).end(route, status)
}

// unmatched stands for the route of a request that has none.
const unmatched = "unmatched"

func (o *observer) routeOf(r *http.Request) string {
	if route := o.route(r); route != "" {
		return route
	}
	return unmatched
}

// methodOf keeps the labels few: a method may be any word.
func methodOf(method string) string {
	known := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	if slices.Contains(known, method) {
		return method
	}
	return "other"
}

func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails (crypto/rand).
	return "req_" + base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// recorder notes what is answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	// cut says that the connection must be closed without an end.
	cut bool
}

// WriteHeader notes the first final status; informational ones come before.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (r *recorder) Write(p []byte) (int, error) {
	r.wrote()
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Flush sends what is buffered, for handlers that ask for http.Flusher.
func (r *recorder) Flush() {
	r.wrote()
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the rest.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) wrote() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
}
