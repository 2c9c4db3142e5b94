package telemetry

import "github.com/prometheus/client_golang/prometheus"

// WorkerMetrics are those of own workers.
type WorkerMetrics struct {
	// Leases counts what became of leases: upstream, outcome (see LeaseOutcomes).
	Leases *prometheus.CounterVec
	// Waiters counts the requests of workers that wait for work now.
	Waiters prometheus.Gauge
	// OldestWaiting is since when the oldest operation could be leased that none
	// has yet (Unix seconds), 0 if there is none.
	OldestWaiting prometheus.Gauge
}

// The outcomes of leases: each begins as leased and ends as one of the others.
const (
	LeaseBegun     = "leased"
	LeaseCompleted = "completed"
	LeaseFailed    = "failed"
	LeaseExpired   = "expired"
)

// LeaseOutcomes are the labels of Leases.
func LeaseOutcomes() []string {
	return []string{LeaseBegun, LeaseCompleted, LeaseFailed, LeaseExpired}
}

func (f factory) workers() WorkerMetrics {
	return WorkerMetrics{
		Leases:        f.counters("worker_leases_total", "Leases of own workers by upstream and outcome.", "upstream", "outcome"),
		Waiters:       f.gauge("worker_waiters", "Requests of own workers that wait for work now."),
		OldestWaiting: f.gauge("worker_oldest_waiting_timestamp_seconds", "Since when the oldest operation waits that no own worker has, 0 if there is none."),
	}
}

// AddWorkers exports the label values of an upstream of own workers as 0.
func (m *Metrics) AddWorkers(upstream string) {
	for _, outcome := range LeaseOutcomes() {
		m.Worker.Leases.WithLabelValues(upstream, outcome)
	}
}
