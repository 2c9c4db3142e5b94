package telemetry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// The words are those of the contract and the rules, not of the code.
const startText = `# HELP pawl_deliveries_dead Dead letters now.
# TYPE pawl_deliveries_dead gauge
pawl_deliveries_dead 0
# HELP pawl_deliveries_total Ends of delivery attempts by outcome.
# TYPE pawl_deliveries_total counter
pawl_deliveries_total{outcome="dead"} 0
pawl_deliveries_total{outcome="delivered"} 0
pawl_deliveries_total{outcome="retried"} 0
pawl_deliveries_total{outcome="skipped"} 0
# HELP pawl_delivery_attempts_total Tries of deliveries.
# TYPE pawl_delivery_attempts_total counter
pawl_delivery_attempts_total 0
# HELP pawl_in_flight What is under way now by queue.
# TYPE pawl_in_flight gauge
pawl_in_flight{queue="capture"} 0
pawl_in_flight{queue="delivery"} 0
pawl_in_flight{queue="read"} 0
pawl_in_flight{queue="submit"} 0
# HELP pawl_inbound_events_total Received events by source and verdict.
# TYPE pawl_inbound_events_total counter
SOURCE unknown
# HELP pawl_oldest_unfinished_operation_timestamp_seconds Creation time of the oldest unfinished operation, 0 if there is none.
# TYPE pawl_oldest_unfinished_operation_timestamp_seconds gauge
pawl_oldest_unfinished_operation_timestamp_seconds 0
# HELP pawl_operations Operations in the ledger by state.
# TYPE pawl_operations gauge
pawl_operations{state="canceled"} 0
pawl_operations{state="expired"} 0
pawl_operations{state="failed"} 0
pawl_operations{state="pending"} 0
pawl_operations{state="running"} 0
pawl_operations{state="succeeded"} 0
pawl_operations{state="unconfirmed"} 0
`

var verdicts = []string{"applied", "conflict", "duplicate", "hint", "orphan", "refused", "rejected", "stale", "unknown_state", "unknown_type"}

func inbound(source string) string {
	var b strings.Builder
	for _, v := range verdicts {
		b.WriteString(`pawl_inbound_events_total{source="` + source + `",verdict="` + v + "\"} 0\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestKnownLabelsStartAtZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	telemetry.NewMetrics(reg)
	want := strings.Replace(startText, "SOURCE unknown", inbound("unknown"), 1)
	var names []string
	for line := range strings.Lines(startText) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			names = append(names, strings.Fields(name)[0])
		}
	}
	if diff := cmp.Diff(want, expose(t, reg, names...)); diff != "" {
		t.Error(diff)
	}
	// 7-rules §6 names eighteen reasons.
	if n := series(t, reg, "pawl_reviews_open"); n != 18 {
		t.Errorf("%d reasons", n)
	}
}

func TestConfiguredNamesStartAtZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := telemetry.NewMetrics(reg)
	m.AddUpstream("studio")
	for name, want := range map[string]int{
		"pawl_inbound_events_total":   2 * len(verdicts),
		"pawl_upstream_reads_total":   len(telemetry.Outcomes()),
		"pawl_upstream_submits_total": len(telemetry.Outcomes()),
		"pawl_upstream_cancels_total": len(telemetry.Outcomes()),
	} {
		if n := series(t, reg, name); n != want {
			t.Errorf("%s: %d series, want %d", name, n, want)
		}
	}
}

// The rules of the Prometheus project (names, units, help) and our own (prefix,
// no label that grows with tenants or work).
func TestMetricRules(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := telemetry.NewMetrics(reg)
	m.AddUpstream("studio")
	m.Requests.WithLabelValues("GET /x", "GET", "200").Inc()
	m.RequestSeconds.WithLabelValues("GET /x", "GET").Observe(1)
	problems, err := promlint.New(strings.NewReader(expose(t, reg))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	allowed := map[string]bool{"state": true, "source": true, "verdict": true, "outcome": true, "reason": true, "upstream": true, "queue": true, "what": true, "kind": true, "route": true, "method": true, "status": true, "version": true, "goversion": true, "revision": true}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "pawl_") {
			t.Errorf("%s lacks the prefix", f.GetName())
		}
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				if !allowed[l.GetName()] {
					t.Errorf("%s has the label %s", f.GetName(), l.GetName())
				}
			}
		}
	}
	if n := series(t, reg, "pawl_build_info"); n != 1 {
		t.Errorf("%d build infos", n)
	}
}

// expose is the text format of the named families, of all if none is named.
func expose(t *testing.T, reg *prometheus.Registry, names ...string) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		if len(names) > 0 && !slices.Contains(names, f.GetName()) {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// series counts those of a family.
func series(t *testing.T, reg *prometheus.Registry, name string) int {
	t.Helper()
	return strings.Count(expose(t, reg, name), "\n") - 2
}
