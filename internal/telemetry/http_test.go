package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// node serves a mux through the middleware and keeps what it says.
type node struct {
	*httptest.Server
	log bytes.Buffer
	reg *prometheus.Registry
}

func serve(t *testing.T, panicked http.HandlerFunc) *node {
	n := &node{reg: prometheus.NewRegistry()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, telemetry.RequestID(r.Context()))
	})
	mux.HandleFunc("POST /hooks/{source}/{token}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) })
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("value " + canary) })
	mux.HandleFunc("GET /late", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		w.(http.Flusher).Flush()
		panic(&url.Error{Op: "Get", URL: canary, Err: io.EOF})
	})
	mux.HandleFunc("POST /abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("GET /hints", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(103)
		w.WriteHeader(204)
	})
	route := func(r *http.Request) string { return r.Pattern }
	h := telemetry.HTTP(route, telemetry.NewMetrics(n.reg), nil, telemetry.NewLogger(&n.log, slog.LevelDebug), panicked, mux)
	n.Server = httptest.NewUnstartedServer(h)
	n.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&n.log, nil), slog.LevelError)
	n.Start()
	t.Cleanup(n.Close)
	return n
}

// ask gives the status and body, status 0 if the connection was cut.
func (n *node) ask(t *testing.T, method, path string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, n.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := n.Client().Do(r)
	if err != nil {
		return 0, "", nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, string(body), resp.Header
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestHTTPGivesIDs(t *testing.T) {
	n := serve(t, nil)
	_, first, header := n.ask(t, "GET", "/v1/things/1")
	_, second, _ := n.ask(t, "GET", "/v1/things/1")
	if !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(first) || first == second {
		t.Errorf("ids %q and %q", first, second)
	}
	if header.Get(telemetry.RequestIDHeader) != first {
		t.Errorf("the header has %q, the context %q", header.Get(telemetry.RequestIDHeader), first)
	}
	if got := telemetry.RequestID(context.Background()); got != "" {
		t.Errorf("outside of a request: %q", got)
	}
}

func TestHTTPMeasuresAndLogsRoutes(t *testing.T) {
	n := serve(t, nil)
	n.ask(t, "GET", "/v1/things/"+canary+"?q="+canary)
	n.ask(t, "POST", "/hooks/studio/"+canary)
	n.ask(t, "GET", "/"+canary)
	n.ask(t, canary, "/v1/things/1")
	n.ask(t, "GET", "/hints")
	n.ask(t, "POST", "/abort")
	n.Close()
	want := `# HELP pawl_http_requests_total HTTP requests by route, method and status.
# TYPE pawl_http_requests_total counter
pawl_http_requests_total{method="GET",route="GET /hints",status="204"} 1
pawl_http_requests_total{method="GET",route="GET /v1/things/{id}",status="200"} 1
pawl_http_requests_total{method="GET",route="unmatched",status="404"} 1
pawl_http_requests_total{method="POST",route="POST /abort",status="cut"} 1
pawl_http_requests_total{method="POST",route="POST /hooks/{source}/{token}",status="202"} 1
pawl_http_requests_total{method="other",route="unmatched",status="405"} 1
`
	if diff := cmp.Diff(want, expose(t, n.reg, "pawl_http_requests_total")); diff != "" {
		t.Error(diff)
	}
	log := n.log.String()
	if strings.Contains(log, canary) {
		t.Errorf("the log holds a path, query or method:\n%s", log)
	}
	if !strings.Contains(log, `"route":"POST /hooks/{source}/{token}"`) || strings.Count(log, "\n") < 6 {
		t.Errorf("the log lacks a route:\n%s", log)
	}
}

func TestHTTPRecovers(t *testing.T) {
	n := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(500)
		fmt.Fprint(w, telemetry.RequestID(r.Context()))
	})
	status, body, header := n.ask(t, "GET", "/panic")
	if status != 500 || !strings.HasPrefix(body, "req_") || header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %q %v", status, body, header)
	}
	if status, body, _ := n.ask(t, "GET", "/late"); status != 0 {
		t.Errorf("half an answer looks whole: %d %q", status, body)
	}
	n.Close()
	log := n.log.String()
	if strings.Contains(log, canary) {
		t.Errorf("the log holds the value of a panic:\n%s", log)
	}
	for _, want := range []string{`"panic_type":"string"`, `"panic_type":"*url.Error"`, "http_test.go:", `"route":"GET /panic"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	want := "# HELP pawl_http_panics_total Recovered panics of HTTP handlers.\n# TYPE pawl_http_panics_total counter\npawl_http_panics_total 2\n"
	if diff := cmp.Diff(want, expose(t, n.reg, "pawl_http_panics_total")); diff != "" {
		t.Error(diff)
	}
}

func TestHTTPWithoutCallback(t *testing.T) {
	n := serve(t, nil)
	if status, body, _ := n.ask(t, "GET", "/panic"); status != 500 || body != "" {
		t.Errorf("got %d %q", status, body)
	}
}
