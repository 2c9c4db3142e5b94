package server

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
)

// shows checks samples of /metrics after the next sweep: pairs of name and value.
func (w *world) shows(when string, want ...string) {
	w.Helper()
	w.pass(20 * time.Second)
	for i := 0; i < len(want); i += 2 {
		if got := w.metric(want[i]); got != want[i+1] {
			w.Errorf("%s: %s is %q, want %s", when, want[i], got, want[i+1])
		}
	}
}

// What the metrics show of pauses and queues follows the ledger into each state and
// back (issue 6, PM-10).
func TestGaugesFollowTheLedger(t *testing.T) {
	const (
		paused, disabled           = `pawl_upstream_paused{upstream="up"}`, "pawl_endpoints_disabled"
		submits, reads, deliveries = `pawl_queue_depth{queue="submit"}`, `pawl_queue_depth{queue="read"}`, `pawl_queue_depth{queue="delivery"}`
		creating, sending          = `pawl_in_flight{queue="submit"}`, `pawl_in_flight{queue="delivery"}`
	)
	inVirtualTime(t, "media-v2", func(w *world) {
		w.shows("at rest", paused, "0", disabled, "0", submits, "0", reads, "0", deliveries, "0", creating, "0", sending, "0",
			`pawl_queue_depth{queue="capture"}`, "0", `pawl_queue_depth{queue="commit"}`, "0", `pawl_in_flight{queue="read"}`, "0", `pawl_in_flight{queue="capture"}`, "0",
			`pawl_nodes{state="alive"}`, "1", `pawl_nodes{state="draining"}`, "0", `pawl_nodes{state="silent"}`, "0")
		ep := w.endpoint("types", []string{"operation.running"}).at("id")

		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/pause", `{"reason":"talks"}`))
		submitted := time.Now()
		w.submit("k")
		w.shows("paused", paused, "1", submits, "1", creating, "0")
		// PM-04: a time, and no age that grows from look to look.
		oldest, err := strconv.ParseFloat(w.metric("pawl_oldest_unfinished_operation_timestamp_seconds"), 64)
		if err != nil || math.Abs(oldest-float64(submitted.UnixMicro())/1e6) > 1 {
			t.Errorf("the oldest is of %f, want %d, %v", oldest, submitted.Unix(), err)
		}
		due, err := strconv.ParseFloat(w.metric(`pawl_queue_oldest_due_timestamp_seconds{queue="submit"}`), 64)
		if err != nil || math.Abs(due-float64(submitted.UnixMicro())/1e6) > 1 {
			t.Errorf("the oldest create is due since %f, want %d, %v", due, submitted.Unix(), err)
		}
		reached, open := w.provider.gate()
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/resume", nil))
		<-reached
		w.pass(time.Second)
		if got := w.metric(creating); got != "1" {
			t.Errorf("a create is on the wire, and %s is %s", creating, got)
		}
		goOn := make(chan struct{})
		w.sink.script(func(n int, _ delivery) (int, string) {
			if n == 1 {
				<-goOn
				return http.StatusServiceUnavailable, ""
			}
			return http.StatusOK, ""
		})
		open()
		w.pass(time.Second)
		if got := w.metric(sending); got != "1" {
			t.Errorf("a delivery is on the wire, and %s is %s", sending, got)
		}
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/pause", nil))
		close(goOn)
		w.shows("the endpoint is paused", paused, "0", submits, "0", creating, "0", sending, "0", reads, "1", disabled, "1", deliveries, "1")
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/enable", nil))
		w.pass(time.Minute)
		w.shows("it is enabled", disabled, "0", deliveries, "0", sending, "0")
		c := w.provider.created()[0]
		w.provider.say(done(c.task))
		w.callback(c.callback, event{id: "end", said: done(c.task)})
		w.shows("it has ended", reads, "0", `pawl_queue_oldest_due_timestamp_seconds{queue="submit"}`, "0",
			`pawl_queue_oldest_due_timestamp_seconds{queue="read"}`, "0", `pawl_queue_oldest_due_timestamp_seconds{queue="delivery"}`, "0", `pawl_operations{state="running"}`, "0")
	})
}

// Each node is counted in the state that it is in, and not in the one before.
func TestNodesAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", onPostgres(t))
	counted := func(when, alive, draining, silent string) {
		t.Helper()
		w.node.countNodes(t.Context())
		for state, want := range map[string]string{"alive": alive, "draining": draining, "silent": silent} {
			if got := w.metric(`pawl_nodes{state="` + state + `"}`); got != want {
				t.Errorf("%s: %s are %s, want %s", when, got, state, want)
			}
		}
	}
	serves := func(n *Node) {
		w.eventually("the node does not serve", n.ready.on.Load)
		n.beat(t.Context())
	}
	serves(w.node)
	counted("alone", "1", "0", "0")
	second, stop := w.another(new(disk))
	serves(second)
	counted("two", "2", "0", "0")
	d := w.node.roster.(*postgres.Driver)
	gone := store.Node{ID: pawl.NewID(pawl.TimeOf(time.Now()), 9), Host: "gone", Draining: true}
	if err := d.Beat(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	counted("one that stops", "2", "1", "0")
	c, err := pgx.Connect(t.Context(), w.cfg.Database.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), "UPDATE nodes SET seen_at = seen_at - interval '31 seconds' WHERE host = 'gone'"); err != nil {
		t.Fatal(err)
	}
	counted("one is not heard of", "2", "0", "1")
	if r := w.get("/v1/status"); !strings.Contains(r.body, "on gone is silent") {
		t.Errorf("%s", r.at("needs"))
	}
	if err := d.Leave(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	stop()
	counted("alone again", "1", "0", "0")
	if r := w.get("/v1/status"); r.at("needs") != "[]" {
		t.Errorf("%s", r.at("needs"))
	}
}

// Looking whether somebody answers at the address of hooks is no callback: nothing
// is counted or logged, of whatever method else it is.
func TestLookingAtHooksIsNoCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", payments(t, ""))
	refused := func() string { return w.metric(`pawl_inbound_events_total{source="unknown",verdict="refused"}`) }
	for method, status := range map[string]int{"GET /hooks/up": 405, "HEAD /hooks/up": 405, "GET /hooks/nobody": 405, "GET /hooks/up/token": 405, "GET /hooks/a/b/c": 404} {
		verb, path, _ := strings.Cut(method, " ")
		w.want(status, w.send(verb, w.node.APIURL()+path, nil, nil))
	}
	if got := refused(); got != "0" && got != "" || strings.Contains(w.log.String(), "refused") {
		t.Errorf("%s looks are counted as refused: %s", got, w.log.String())
	}
	w.want(405, w.send("PUT", w.node.APIURL()+"/hooks/up", nil, nil))
	w.want(404, w.send("POST", w.node.APIURL()+"/hooks/nobody", nil, nil))
	if got := refused(); got != "2" {
		t.Errorf("%s are refused, want 2", got)
	}
	// At a source that might greet it is a greeting that was refused.
	w.want(405, w.send("GET", w.node.APIURL()+"/hooks/payments", nil, nil))
	if got := w.metric(`pawl_inbound_events_total{source="payments",verdict="refused"}`); got != "1" {
		t.Errorf("%s greetings are refused, want 1", got)
	}
}

// The form of /metrics, who gets it, and the buckets of request times (PM-01, PM-07
// to PM-09, PM-11).
func TestFormOfMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.get("/v1/whoami")
	w.eventually("the request is not measured", func() bool {
		return w.metric(`pawl_http_request_duration_seconds_count{method="GET",route="GET /v1/whoami"}`) == "1"
	})
	get := func(base, accept string) reply {
		return w.send(http.MethodGet, base+"/metrics", nil, http.Header{"Accept": {accept}})
	}
	plain := w.want(http.StatusOK, get(w.node.AdminURL(), "*/*"))
	for _, accept := range []string{"*/*", "application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=2.0.0"} {
		if got := w.want(http.StatusOK, get(w.node.AdminURL(), accept)).header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4;") {
			t.Errorf("to %s: %s", accept, got)
		}
	}
	w.want(http.StatusNotFound, get(w.node.APIURL(), "*/*"))
	// OpenTelemetry, HTTP metrics: the advised boundaries of http.server.request.duration.
	want := []string{"0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1", "2.5", "5", "7.5", "10", "+Inf"}
	var bounds []string
	var last float64
	for line := range strings.Lines(plain.body) {
		if !strings.HasPrefix(line, "pawl_http_request_duration_seconds_bucket{") || !strings.Contains(line, `route="GET /v1/whoami"`) {
			continue
		}
		_, bound, _ := strings.Cut(line, `le="`)
		bound, rest, _ := strings.Cut(bound, `"`)
		n, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil || n < last {
			t.Errorf("%q is below the bucket before it, %v", line, err)
		}
		bounds, last = append(bounds, bound), n
	}
	if !slices.Equal(bounds, want) || last < 1 {
		t.Errorf("buckets %v with %g requests, want %v", bounds, last, want)
	}
}
