package telemetry_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// Everything is counted, and of each reason a few of the latest are kept, no two
// within a second: a flood of one leaves room for the others.
func TestArrivals(t *testing.T) {
	reg := prometheus.NewRegistry()
	a := telemetry.NewArrivals(telemetry.NewMetrics(reg), time.Unix(1, 0))
	start := time.Unix(1000, 0)
	a.Unstored("s", telemetry.Refused, telemetry.Sample{At: start, Reason: "too_large", Status: 413, Size: 5 << 20})
	for i := range 100 {
		at := start.Add(time.Duration(i) * 100 * time.Millisecond)
		a.Unstored("s", telemetry.Refused, telemetry.Sample{At: at, Reason: "no_match", Status: 401, Size: int64(i), Digest: "d", Headers: []string{"Webhook-Id"}})
	}
	a.Judged("s", "applied")
	a.Unstored("s", "hint", telemetry.Sample{At: start.Add(time.Minute), Reason: "read_due", Status: 202})

	got := a.Tally("s")
	if want := map[string]int64{"applied": 1, "hint": 1, "refused": 101}; !maps.Equal(got.Verdicts, want) {
		t.Errorf("verdicts %v, want %v", got.Verdicts, want)
	}
	if want := map[string]int64{"no_match": 100, "too_large": 1, "read_due": 1}; !maps.Equal(got.Unstored, want) {
		t.Errorf("unstored %v, want %v", got.Unstored, want)
	}
	var kept []string
	for _, s := range got.Samples {
		kept = append(kept, fmt.Sprint(s.Reason, " ", s.At.Sub(start)))
	}
	if want := "[read_due 1m0s no_match 9s no_match 8s no_match 7s no_match 6s no_match 5s too_large 0s]"; fmt.Sprint(kept) != want {
		t.Errorf("samples %v, want %s", kept, want)
	}
	if got := a.Tally("other"); got.Verdicts != nil || got.Samples != nil {
		t.Errorf("a source that sent nothing: %+v", got)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, f := range families {
		if f.GetName() == "pawl_inbound_unstored_total" {
			series = len(f.GetMetric())
		}
	}
	if series != 3 {
		t.Errorf("%d series of reasons, want 3", series)
	}
}
