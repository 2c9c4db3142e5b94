package console

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How the overview looks back.
const (
	// measureEvery is the time between two measurements.
	measureEvery = 10 * time.Second
	// lookBack is how many are kept: an hour of them, and where it begins.
	lookBack = 361
)

// measured are this node's metrics at one moment, as they count since its start.
type measured struct {
	at time.Time
	// values are counters and gauges by name and labels, as key writes them;
	// confirmed are the cumulated buckets of the time from create to confirmed.
	values    map[string]float64
	confirmed []bucket
}

type bucket struct{ upTo, count float64 }

// confirmedName is the histogram of the times from create to confirmed.
const confirmedName = "pawl_operation_confirmed_seconds"

// wanted are the metrics that the overview shows.
var wanted = []string{
	"pawl_oldest_unfinished_operation_timestamp_seconds", "pawl_operations", "pawl_inbound_events_total", "pawl_deliveries_total", "pawl_deliveries_dead",
	"pawl_reviews_open", "pawl_upstream_reads_total", "pawl_upstream_submits_total", "pawl_queue_depth", "pawl_intake_closed", "pawl_disk_free_bytes", "pawl_upstreams_removed",
	"pawl_database_oldest_transaction_seconds", "pawl_http_panics_total",
}

// key names one value: the metric and its labels' values, in the order of their
// names.
func key(name string, labels ...string) string {
	for _, l := range labels {
		name += "\x00" + l
	}
	return name
}

// measure reads them now. What cannot be gathered is left out: the page shows the
// rest.
func measure(g prometheus.Gatherer, now time.Time) measured {
	m := measured{at: now, values: make(map[string]float64)}
	families, _ := g.Gather()
	for _, f := range families {
		if f.GetName() != confirmedName && !slices.Contains(wanted, f.GetName()) {
			continue
		}
		for _, one := range f.GetMetric() {
			if h := one.GetHistogram(); h != nil {
				for _, b := range h.GetBucket() {
					m.confirmed = append(m.confirmed, bucket{b.GetUpperBound(), float64(b.GetCumulativeCount())})
				}
				m.confirmed = append(m.confirmed, bucket{math.Inf(1), float64(h.GetSampleCount())})
				continue
			}
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			m.values[key(f.GetName(), labels...)] = one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	return m
}

// trend keeps the last hour's measurements. Safe for concurrent use.
type trend struct {
	mu    sync.Mutex
	begun time.Time
	kept  []measured
}

func newTrend(now time.Time) *trend { return &trend{begun: now} }

func (t *trend) run(ctx context.Context, g prometheus.Gatherer) {
	t.add(measure(g, time.Now()))
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			t.add(measure(g, now))
		}
	}
}

func (t *trend) add(m measured) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == lookBack {
		t.kept = slices.Delete(t.kept, 0, 1)
	}
	t.kept = append(t.kept, m)
}

// since are the measurements kept, the oldest first, and now's.
func (t *trend) since(now measured) []measured {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(slices.Clone(t.kept), now)
}

// rise is by how much a counter rose from one measurement to a later one; a
// counter that was not there counts from 0.
func rise(from, to measured, name string) float64 {
	return max(to.values[name]-from.values[name], 0)
}

// quantile is that of the times that came between two measurements, in seconds,
// interpolated within a bucket as Prometheus does; not a number where none came,
// and the highest bound where it is above all of them.
func quantile(from, to measured, q float64) float64 {
	if len(to.confirmed) == 0 {
		return math.NaN()
	}
	counts := make([]float64, len(to.confirmed))
	for i, b := range to.confirmed {
		counts[i] = b.count
		if i < len(from.confirmed) {
			counts[i] -= from.confirmed[i].count
		}
	}
	total := counts[len(counts)-1]
	if total <= 0 {
		return math.NaN()
	}
	rank := q * total
	i := slices.IndexFunc(counts, func(n float64) bool { return n >= rank })
	below, floor := 0.0, 0.0
	if i > 0 {
		below, floor = counts[i-1], to.confirmed[i-1].upTo
	}
	ceiling := to.confirmed[i].upTo
	if math.IsInf(ceiling, 1) || counts[i] == below {
		return floor
	}
	return floor + (ceiling-floor)*(rank-below)/(counts[i]-below)
}
