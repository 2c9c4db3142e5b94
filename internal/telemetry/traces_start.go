package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// flushLimit bounds the last export of a node that ends.
const flushLimit = 2 * time.Second

// StartTraces starts what the OTEL_* variables of the environment ask for
// (TR-18): spans that are sent as OTLP over HTTP in the background, from a bounded
// queue, so that a collector that is slow or gone costs spans and nothing else.
// It gives nil unless an endpoint is named or OTEL_TRACES_EXPORTER is otlp. Stop
// sends what is left, for 2 s at most; it may be called once.
//
// It is for the program alone: what the library has to say goes to log from then
// on, wherever in the process it is used.
func StartTraces(ctx context.Context, version string, getenv func(string) string, log *slog.Logger) (traces *Traces, stop func()) {
	if !tracesWanted(getenv, log) {
		return nil, func() {}
	}
	quieten(log)
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Error("no traces are sent: the OTEL_EXPORTER_OTLP_… variables cannot be used", "error", err)
		return nil, func() {}
	}
	// The environment comes last, so that it wins. No detector is asked: those
	// tell the command line and the host.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("pawl"), semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		log.Warn("a part of OTEL_RESOURCE_ATTRIBUTES cannot be read", "error", err)
	}
	provider := NewTraceProvider(sdk.WithBatcher(&quietExporter{next: exporter, log: log}), sdk.WithResource(about))
	log.Info("traces are sent", "protocol", "http/protobuf")
	return NewTraces(provider), func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		defer cancel()
		if err := provider.Shutdown(limit); err != nil {
			log.Warn("the last spans could not be sent", "error", err)
		}
	}
}

// tracesWanted reads the variables that say whether there are traces at all.
func tracesWanted(getenv func(string) string, log *slog.Logger) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	endpoint := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	exporters := strings.FieldsFunc(getenv("OTEL_TRACES_EXPORTER"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(exporters) == 0 && endpoint != "" {
		exporters = []string{"otlp"}
	}
	wanted := slices.Contains(exporters, "otlp")
	for _, name := range exporters {
		if name != "otlp" && name != "none" {
			log.Warn("an exporter of OTEL_TRACES_EXPORTER is not known and left out: otlp and none are", "exporter", name)
		}
	}
	if protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); wanted && protocol == "grpc" {
		log.Warn("traces are sent as http/protobuf, not grpc: the endpoint must be the collector's for HTTP, by habit port 4318")
	}
	return wanted
}

// quieten sends what the library says of itself to our log. Of that the message
// alone is kept: what stands beside it may be a header with a credential.
func quieten(log *slog.Logger) {
	otel.SetLogger(logr.FromSlogHandler(messagesOnly{log.Handler()}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("a fault in the making of traces", "error", err) }))
}

// messagesOnly passes warnings and errors on without what stands beside them.
type messagesOnly struct{ slog.Handler }

// Enabled drops what the library tells those who work on it.
func (m messagesOnly) Enabled(ctx context.Context, level slog.Level) bool {
	// A warning of the library is logr's level 1, which becomes -1.
	return level >= -1 && m.Handler.Enabled(ctx, max(level, slog.LevelWarn))
}

// Handle passes the message on.
func (m messagesOnly) Handle(ctx context.Context, r slog.Record) error {
	return m.Handler.Handle(ctx, slog.NewRecord(r.Time, max(r.Level, slog.LevelWarn), "opentelemetry: "+r.Message, r.PC))
}

// WithAttrs drops them.
func (m messagesOnly) WithAttrs([]slog.Attr) slog.Handler { return m }

// WithGroup drops it.
func (m messagesOnly) WithGroup(string) slog.Handler { return m }

// complaintEvery is the least time between two lines about a collector that takes
// nothing.
const complaintEvery = 10 * time.Minute

// quietExporter says seldom that spans are lost, and gives no error.
type quietExporter struct {
	next sdk.SpanExporter
	log  *slog.Logger

	mu    sync.Mutex
	lost  int
	quiet time.Time
}

// ExportSpans implements [sdk.SpanExporter].
func (q *quietExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := q.next.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost += len(spans)
	if now := time.Now(); !now.Before(q.quiet) {
		q.log.Warn("spans could not be sent and are lost; nothing else suffers", "spans", q.lost, "error", err)
		q.lost, q.quiet = 0, now.Add(complaintEvery)
	}
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (q *quietExporter) Shutdown(ctx context.Context) error { return q.next.Shutdown(ctx) }
