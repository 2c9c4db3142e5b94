package pawl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/promtest"
)

const alertsFile = "deploy/alerts.yaml"

// What every case has beside its own: a node that is scraped. A minute lies
// between two values.
const (
	scraped = `up{job="pawl",instance="a"}`
	built   = `pawl_build_info{job="pawl",instance="a"}`
)

// In the cases all is well for ten minutes and again from the 70th on.
func gauge(good, bad string) string {
	return good + "+0x9 " + bad + "+0x59 " + good + "+0x60"
}

// rising is a counter that rises in the bad hour, by 10 each minute, and level
// one that stands still.
const (
	rising = "0+0x9 0+10x59 590+0x60"
	level  = "0+0x129"
)

// firings are the figures that each alert is for.
var firings = []struct {
	alert  string
	series map[string]string
	// bad and good are minutes at which it fires and no longer does; 69 and 129 if
	// they are left out.
	bad, good int
}{
	{alert: "PawlNodeDown", series: map[string]string{scraped: gauge("1", "0")}},
	{alert: "PawlNoMetrics", series: map[string]string{built: "1+0x9 _x60 1+0x60"}},
	{alert: "PawlNodeSilent", series: map[string]string{`pawl_nodes{state="silent"}`: gauge("0", "1")}},
	{alert: "PawlRequestsFail", series: map[string]string{
		`pawl_http_requests_total{status="503"}`: rising, `pawl_http_requests_total{status="202"}`: "0+100x129",
	}},
	{alert: "PawlPanics", series: map[string]string{"pawl_http_panics_total": rising}},
	{alert: "PawlConfigRefused", series: map[string]string{`pawl_config_reloads_total{instance="a",outcome="refused"}`: rising}},
	{alert: "PawlIntakeClosed", series: map[string]string{`pawl_intake_closed{instance="a"}`: gauge("0", "1")}},
	{alert: "PawlDiskFilling", series: map[string]string{`pawl_disk_free_bytes{instance="a"}`: gauge("1e12", "5e8")}},
	// 1 GB a minute would use 1.4 TB in 24 hours.
	{alert: "PawlDiskFilling", series: map[string]string{`pawl_disk_free_bytes{instance="a"}`: "1000e9+0x9 1000e9-1e9x59 1000e9+0x60"}},
	{alert: "PawlCommitsSlow", series: map[string]string{
		`pawl_commit_duration_seconds_bucket{le="0.512"}`: level, `pawl_commit_duration_seconds_bucket{le="1.024"}`: rising, `pawl_commit_duration_seconds_bucket{le="+Inf"}`: rising,
	}},
	{alert: "PawlCommandsQueue", series: map[string]string{`pawl_queue_depth{instance="a",queue="commit"}`: gauge("10", "1001")}},
	{alert: "PawlLongTransaction", series: map[string]string{"pawl_database_oldest_transaction_seconds": gauge("2", "301")}},
	{alert: "PawlRetentionStands", series: map[string]string{"pawl_retention_pass_timestamp_seconds": "60+0x399 24000+60x60"}, bad: 390, good: 430},
	{alert: "PawlOldestUnfinished", series: map[string]string{"pawl_oldest_unfinished_operation_timestamp_seconds": "60+0x299 0+0x60"}, bad: 290, good: 310},
	{alert: "PawlConfirmedSlow", series: map[string]string{
		`pawl_operation_confirmed_seconds_bucket{le="1800"}`: level, `pawl_operation_confirmed_seconds_bucket{le="3600"}`: rising, `pawl_operation_confirmed_seconds_bucket{le="+Inf"}`: rising,
	}},
	{alert: "PawlUnconfirmed", series: map[string]string{`pawl_operations{state="unconfirmed"}`: gauge("0", "1")}},
	{alert: "PawlNothingCreated", series: map[string]string{
		`pawl_operations{state="pending"}`: gauge("0", "1"), `pawl_upstream_submits_total{upstream="u",outcome="ok"}`: level, `pawl_worker_leases_total{upstream="w",outcome="leased"}`: level,
	}},
	{alert: "PawlReviewsOverdue", series: map[string]string{`pawl_reviews_overdue{reason="orphan"}`: gauge("0", "1")}},
	{alert: "PawlReviewsPile", series: map[string]string{`pawl_reviews_open{reason="orphan"}`: gauge("20", "21"), `pawl_reviews_open{reason="capture"}`: gauge("5", "5")}},
	{alert: "PawlUpstreamFails", series: map[string]string{
		`pawl_upstream_submits_total{upstream="u",outcome="unconfirmed"}`: rising, `pawl_upstream_submits_total{upstream="u",outcome="ok"}`: "0+1x129",
	}},
	{alert: "PawlUpstreamRefuses", series: map[string]string{
		`pawl_upstream_submits_total{upstream="u",outcome="refused"}`: rising, `pawl_upstream_submits_total{upstream="u",outcome="ok"}`: "0+1x129",
	}},
	{alert: "PawlUpstreamPaused", series: map[string]string{`pawl_upstream_paused{upstream="u"}`: gauge("0", "1")}},
	{alert: "PawlReadsFail", series: map[string]string{
		`pawl_upstream_reads_total{upstream="u",outcome="failed"}`: rising, `pawl_upstream_reads_total{upstream="u",outcome="ok"}`: "0+1x129",
	}},
	{alert: "PawlUpstreamRemoved", series: map[string]string{"pawl_upstreams_removed": gauge("0", "1")}},
	{alert: "PawlOrphans", series: map[string]string{
		`pawl_inbound_events_total{source="u",verdict="orphan"}`: rising, `pawl_inbound_events_total{source="u",verdict="applied"}`: "0+100x129",
	}},
	{alert: "PawlDuplicates", series: map[string]string{
		`pawl_inbound_events_total{source="u",verdict="duplicate"}`: rising, `pawl_inbound_events_total{source="u",verdict="applied"}`: "0+9x129",
	}},
	{alert: "PawlCallbacksRefused", series: map[string]string{
		`pawl_inbound_events_total{source="u",verdict="refused"}`: rising, `pawl_inbound_events_total{source="u",verdict="applied"}`: "0+50x129",
	}},
	{alert: "PawlDeadLetters", series: map[string]string{`pawl_deliveries_total{outcome="dead"}`: rising, `pawl_deliveries_total{outcome="delivered"}`: "0+100x129"}},
	{alert: "PawlEndpointDisabled", series: map[string]string{"pawl_endpoints_disabled": gauge("3", "4")}},
	{alert: "PawlDeliveriesFail", series: map[string]string{`pawl_deliveries_total{outcome="retried"}`: rising, `pawl_deliveries_total{outcome="delivered"}`: "0+9x129"}},
	{alert: "PawlDeliveriesQueue", series: map[string]string{`pawl_queue_depth{queue="delivery"}`: "0+0x9 0+100x59 0+0x60"}},
	{alert: "PawlCapturesLate", series: map[string]string{"pawl_capture_first_link_end_timestamp_seconds": gauge("0", "600")}},
	{alert: "PawlWorkersAbsent", series: map[string]string{
		"pawl_worker_oldest_waiting_timestamp_seconds": gauge("0", "600"), `pawl_worker_leases_total{upstream="w",outcome="leased"}`: level,
	}},
}

// Prometheus takes the rules; each alert fires by the figures that it is for and
// by no others, and ends with them.
func TestAlertsFire(t *testing.T) {
	promtest.Check(t, alertsFile)
	fired := map[string]bool{}
	var cases []promtest.Case
	for _, f := range firings {
		fired[f.alert] = true
		c := promtest.Case{Name: f.alert, Interval: time.Minute, Series: map[string]string{scraped: "1+0x500", built: "1+0x500"}}
		for name, values := range f.series {
			c.Series[name] = values
		}
		bad, good := 69, 129
		if f.bad > 0 {
			bad, good = f.bad, f.good
		}
		at := func(minute int) time.Duration { return time.Duration(minute) * time.Minute }
		c.Firing = map[time.Duration][]string{at(9): nil, at(bad): {f.alert}, at(good): nil}
		cases = append(cases, c)
	}
	for _, a := range alerts(t) {
		if !fired[a.Alert] {
			t.Errorf("%s: nothing shows that it fires", a.Alert)
		}
	}
	promtest.Test(t, alertsFile, 5*time.Minute, cases...)
}

// Prometheus understands what the dashboard asks for.
func TestDashboardQueries(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(readText(t, "deploy/dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			// Grafana puts its own interval in.
			rules = append(rules, rule{"panel", strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")})
		}
	}
	if len(rules) < 20 {
		t.Fatalf("%d queries found", len(rules))
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtest.Check(t, path)
}
