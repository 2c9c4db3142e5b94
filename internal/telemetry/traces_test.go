package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// collector takes what is exported, and answers with a status.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	got  bytes.Buffer
	path string
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.path = r.URL.Path
		_, _ = io.Copy(&c.got, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) text() (path, body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.path, c.got.String()
}

// environment sets variables of the standard for the test.
func environment(t *testing.T, pairs ...string) func(string) string {
	t.Helper()
	values := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
		t.Setenv(pairs[i], pairs[i+1])
	}
	return func(name string) string { return values[name] }
}

func oneCall(traces *telemetry.Traces) {
	to := &url.URL{Scheme: "https", Host: "provider.example:8443", Path: "/secret-path", RawQuery: "sig=secret-query", User: url.UserPassword("u", "secret-user")}
	ctx := traces.On(context.Background(), telemetry.Errand{Act: "create", Upstream: "studio"})
	traces.Call(ctx, http.MethodPost, to).Answered(200, "")
}

// What the standard's variables ask for is sent to where they say, when the node
// ends at the latest, and nothing of a URL beyond host and port (TR-12, TR-18).
func TestTracesAreSent(t *testing.T) {
	c := newCollector(t)
	var log bytes.Buffer
	getenv := environment(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_SERVICE_NAME", "pawl-of-studio", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	traces, stop := telemetry.StartTraces(t.Context(), "1.2.3", getenv, telemetry.NewLogger(&log, slog.LevelInfo))
	if traces == nil {
		t.Fatal("no traces")
	}
	oneCall(traces)
	stop()
	path, body := c.text()
	if path != "/v1/traces" {
		t.Errorf("sent to %q", path)
	}
	for _, part := range []string{"POST", "http.request.method", "server.address", "provider.example", "pawl-of-studio", "deployment.environment.name", "studio", "service.version", "1.2.3"} {
		if !strings.Contains(body, part) {
			t.Errorf("%q was not sent", part)
		}
	}
	if strings.Contains(body, "secret") {
		t.Error("more of the URL than its host was sent")
	}
}

// A collector that is not there costs spans, one line in the log, and at the end
// no more than the time for the last of them.
func TestTracesWithoutCollector(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var log bytes.Buffer
	getenv := environment(t, "OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", gone.URL+"/secret-path", "OTEL_EXPORTER_OTLP_HEADERS", "malformed-secret",
		"OTEL_BSP_SCHEDULE_DELAY", "10", "OTEL_EXPORTER_OTLP_TIMEOUT", "50")
	traces, stop := telemetry.StartTraces(t.Context(), "1.2.3", getenv, telemetry.NewLogger(&log, slog.LevelInfo))
	for range 5000 {
		oneCall(traces)
	}
	done := make(chan struct{})
	go func() { stop(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the end waits for the collector")
	}
	if text := log.String(); strings.Contains(text, "secret") || strings.Count(text, "are lost") > 1 {
		t.Error(text)
	}
}

// Without a word of the environment there is nothing, and it can be forbidden.
func TestTracesAreOff(t *testing.T) {
	c := newCollector(t)
	for _, pairs := range [][]string{
		{},
		{"OTEL_SERVICE_NAME", "x"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_SDK_DISABLED", "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_SDK_DISABLED", "TRUE"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_TRACES_EXPORTER", "none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_TRACES_EXPORTER", "zipkin"},
	} {
		getenv := func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
		traces, stop := telemetry.StartTraces(t.Context(), "1.2.3", getenv, slog.New(slog.DiscardHandler))
		oneCall(traces)
		stop()
		if _, body := c.text(); traces != nil || body != "" {
			t.Errorf("%v: traces are made", pairs)
		}
	}
}

// Where there are none, they cost nothing.
func TestTracesCostNothing(t *testing.T) {
	ctx, to := t.Context(), &url.URL{Scheme: "https", Host: "a.example"}
	var traces *telemetry.Traces
	got := testing.AllocsPerRun(100, func() {
		call := traces.Call(traces.On(ctx, telemetry.Errand{}), http.MethodPost, to)
		call.Tell(nil)
		call.Answered(200, "")
		telemetry.Believe(ctx)
		telemetry.Concerns(ctx, pawl.ID{1}, "")
		if telemetry.TraceContext(ctx, nil) != "" {
			t.Error("a context out of nothing")
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
