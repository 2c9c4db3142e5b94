package telemetry

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pawlhq/pawl"
)

// Metrics are all measurements of a node, prefix "pawl_", base units (PM-03).
// The comment of each vector names its labels in order. Labels hold words of
// the program or names of the configuration, never a tenant, id, URL or error
// text (PM-06). Safe for concurrent use.
type Metrics struct {
	// OldestUnfinished is the time (Unix seconds) at which the oldest unfinished
	// operation was made, 0 if there is none; a time, so that it stays true when
	// nothing updates it (PM-04).
	OldestUnfinished prometheus.Gauge
	// Operations counts the stored operations now: state.
	Operations *prometheus.GaugeVec
	// Confirmed observes the seconds from create to the first verified terminal
	// observation.
	Confirmed prometheus.Histogram
	// Inbound counts received events: source, verdict. Besides the verdicts
	// there is "refused" (bad signature or request, never stored); a source
	// that is not configured is UnknownName.
	Inbound *prometheus.CounterVec
	// Unstored counts requests of which no event is stored, being refused or only
	// a hint: source, reason (a word of the program; there are too many to export
	// as 0).
	Unstored *prometheus.CounterVec
	// Deliveries counts ends of attempts: outcome (delivered, retried, dead, skipped).
	Deliveries *prometheus.CounterVec
	// Attempts counts tries of deliveries, whatever their outcome.
	Attempts prometheus.Counter
	// AttemptSeconds observes how long tries take.
	AttemptSeconds prometheus.Histogram
	// DeliveriesDead counts the dead letters now.
	DeliveriesDead prometheus.Gauge
	// Reviews counts the open reviews now: reason.
	Reviews *prometheus.GaugeVec
	// ReviewsOverdue counts those of them that should have been decided by now: reason.
	ReviewsOverdue *prometheus.GaugeVec
	// Replayed counts what replays have done again: what (deliveries, events).
	Replayed *prometheus.CounterVec
	// Reads counts status reads: upstream, outcome (see Outcomes).
	Reads *prometheus.CounterVec
	// Submits counts creates: upstream, outcome (see Outcomes).
	Submits *prometheus.CounterVec
	// Cancels counts cancels that were sent: upstream, outcome (see Outcomes).
	Cancels *prometheus.CounterVec
	// BatchCommands observes how many commands one commit held.
	BatchCommands prometheus.Histogram
	// CommitSeconds observes how long commits take.
	CommitSeconds prometheus.Histogram
	// QueueDepth counts what waits now: queue (see Queues).
	QueueDepth *prometheus.GaugeVec
	// OldestDue is the time (Unix seconds) since which the oldest of what is due
	// waits, 0 if nothing is due: queue, as InFlight.
	OldestDue *prometheus.GaugeVec
	// InFlight counts what is under way now: queue (see Queues), without commit, of
	// which one is under way a lane.
	InFlight *prometheus.GaugeVec
	// Requests counts HTTP requests: route, method, status.
	Requests *prometheus.CounterVec
	// RequestSeconds observes how long requests take: route, method.
	RequestSeconds *prometheus.HistogramVec
	// Captures counts ends of tries to capture a result file: outcome (captured,
	// retried, gone, refused).
	Captures *prometheus.CounterVec
	// CapturedBytes counts the bytes of captured files.
	CapturedBytes prometheus.Counter
	// FirstLinkEnd is the time (Unix seconds) at which the first link ends of a
	// file that is yet to be captured, 0 if none waits.
	FirstLinkEnd prometheus.Gauge
	// Waiters counts the requests that wait for an operation's end now.
	Waiters prometheus.Gauge
	// Nodes counts those that serve the ledger now: state (alive, draining, silent).
	Nodes *prometheus.GaugeVec
	// Paused is 1 while creates at an upstream stand still for all tenants, by hand
	// or because it refuses our credential: upstream.
	Paused *prometheus.GaugeVec
	// EndpointsDisabled counts the endpoints that nothing is sent to.
	EndpointsDisabled prometheus.Gauge
	// Panics counts recovered panics of handlers.
	Panics prometheus.Counter
	// Removed counts the upstreams that are not configured any more and that
	// operations wait for.
	Removed prometheus.Gauge
	// DiskFree is what is free on the ledger's disk, in bytes.
	DiskFree prometheus.Gauge
	// IntakeClosed is 1 while nothing new is taken in because of the disk.
	IntakeClosed prometheus.Gauge
	// LastCommit is the time (Unix seconds) of the ledger's last commit before this
	// start, 0 if there was none: nobody listened between the two.
	LastCommit prometheus.Gauge
	// OldestTransaction is the age in seconds of the oldest transaction that keeps
	// PostgreSQL from cleaning up, DeadRows what is not cleaned up in the tables of
	// due work.
	OldestTransaction, DeadRows prometheus.Gauge
	// ContentRemoved counts what had its content removed by age or by erasure: kind
	// (operation, event, idempotency_key, audit).
	ContentRemoved *prometheus.CounterVec
	// RetentionPass is the time (Unix seconds) of the last complete look for what
	// is old, 0 before the first.
	RetentionPass prometheus.Gauge
	// Reloads counts readings of the configuration while the node runs: outcome
	// (ok, refused).
	Reloads *prometheus.CounterVec
	// Worker are those of own workers.
	Worker WorkerMetrics
}

// UnknownName stands for every name that a sender chose and no one configured.
const UnknownName = "unknown"

// Refused is the label, beside the verdicts, of what was never judged.
const Refused = "refused"

// Handshake is that of what was no event, but a sender's question whether the
// address is meant for it.
const Handshake = "handshake"

// The label values that are exported as 0 from the start (PM-05).
var (
	deliveryOutcomes = []string{"delivered", "retried", "dead", "skipped"}
	replayed         = []string{"deliveries", "events"}
	callOutcomes     = []string{"ok", "refused", "rate_limited", "retried", "unconfirmed", "failed"}
	queues           = []string{"commit", "submit", "read", "delivery", "capture"}
	captureOutcomes  = []string{"captured", "retried", "gone", "refused"}
	removedKinds     = []string{"operation", "event", "idempotency_key", "audit"}
	nodeStates       = []string{"alive", "draining", "silent"}
	reloadOutcomes   = []string{"ok", "refused"}
)

// Outcomes are the labels of Reads, Submits and Cancels: ok; refused (final answer);
// rate_limited; retried (safe to try again); unconfirmed (a create may exist);
// failed (no usable answer).
func Outcomes() []string { return append([]string(nil), callOutcomes...) }

// Queues are the labels of QueueDepth, and but for commit of InFlight: commit (commands),
// submit, read, delivery and capture (due work).
func Queues() []string { return append([]string(nil), queues...) }

// requestBuckets are those of the OpenTelemetry HTTP conventions (PM-08).
var requestBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// confirmBuckets reach from a quick image to a job of a day, in seconds.
var confirmBuckets = []float64{1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400}

// NewMetrics registers every metric with reg, which may be nil in tests. A
// registerer takes one Metrics: a second one panics, as it is a mistake of
// the program.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := factory{promauto.With(reg)}
	m := &Metrics{
		OldestUnfinished:  f.gauge("oldest_unfinished_operation_timestamp_seconds", "Creation time of the oldest unfinished operation, 0 if there is none."),
		Operations:        f.gauges("operations", "Operations in the ledger by state.", "state"),
		Confirmed:         f.histogram("operation_confirmed_seconds", "Seconds from create to the first verified terminal observation.", confirmBuckets),
		Inbound:           f.counters("inbound_events_total", "Received events by source and verdict.", "source", "verdict"),
		Unstored:          f.counters("inbound_unstored_total", "Requests of which no event is stored by source and reason.", "source", "reason"),
		Deliveries:        f.counters("deliveries_total", "Ends of delivery attempts by outcome.", "outcome"),
		Attempts:          f.counter("delivery_attempts_total", "Tries of deliveries."),
		AttemptSeconds:    f.histogram("delivery_attempt_duration_seconds", "Duration of tries of deliveries.", requestBuckets),
		DeliveriesDead:    f.gauge("deliveries_dead", "Dead letters now."),
		Reviews:           f.gauges("reviews_open", "Open reviews by reason.", "reason"),
		ReviewsOverdue:    f.gauges("reviews_overdue", "Open reviews that should have been decided by now, by reason.", "reason"),
		Replayed:          f.counters("replayed_total", "What replays have done again: deliveries or events.", "what"),
		Reads:             f.counters("upstream_reads_total", "Status reads by upstream and outcome.", "upstream", "outcome"),
		Submits:           f.counters("upstream_submits_total", "Creates by upstream and outcome.", "upstream", "outcome"),
		Cancels:           f.counters("upstream_cancels_total", "Cancels by upstream and outcome.", "upstream", "outcome"),
		BatchCommands:     f.histogram("commit_batch_commands", "Commands in one commit.", prometheus.ExponentialBuckets(1, 2, 9)),
		CommitSeconds:     f.histogram("commit_duration_seconds", "Duration of commits.", prometheus.ExponentialBuckets(0.0005, 2, 14)),
		QueueDepth:        f.gauges("queue_depth", "What waits now by queue.", "queue"),
		OldestDue:         f.gauges("queue_oldest_due_timestamp_seconds", "Since when the oldest of what is due waits by queue, 0 if nothing is due.", "queue"),
		InFlight:          f.gauges("in_flight", "What is under way now by queue.", "queue"),
		Requests:          f.counters("http_requests_total", "HTTP requests by route, method and status.", "route", "method", "status"),
		RequestSeconds:    f.histograms("http_request_duration_seconds", "Duration of HTTP requests.", requestBuckets, "route", "method"),
		Captures:          f.counters("captures_total", "Ends of tries to capture a result file by outcome.", "outcome"),
		CapturedBytes:     f.counter("captured_bytes_total", "Bytes of captured result files."),
		FirstLinkEnd:      f.gauge("capture_first_link_end_timestamp_seconds", "Time at which the first link of a file that is yet to be captured ends, 0 if none waits."),
		Waiters:           f.gauge("http_waiters", "Requests that wait for an operation's end now."),
		Nodes:             f.gauges("nodes", "Nodes that serve the ledger by state.", "state"),
		Paused:            f.gauges("upstream_paused", "1 while creates at the upstream stand still for all tenants.", "upstream"),
		EndpointsDisabled: f.gauge("endpoints_disabled", "Endpoints that nothing is sent to."),
		Panics:            f.counter("http_panics_total", "Recovered panics of HTTP handlers."),
		Removed:           f.gauge("upstreams_removed", "Upstreams that are not configured any more and that operations wait for."),
		DiskFree:          f.gauge("disk_free_bytes", "Free space on the ledger's disk."),
		IntakeClosed:      f.gauge("intake_closed", "1 while nothing new is taken in because the disk is nearly full."),
		LastCommit:        f.gauge("last_commit_before_start_timestamp_seconds", "Time of the ledger's last commit before this start, 0 if there was none."),
		OldestTransaction: f.gauge("database_oldest_transaction_seconds", "Age of the oldest transaction that keeps PostgreSQL from cleaning up."),
		DeadRows:          f.gauge("database_dead_rows", "Dead rows in PostgreSQL's tables of due work."),
		ContentRemoved:    f.counters("content_removed_total", "What had its content removed by age or by erasure by kind.", "kind"),
		RetentionPass:     f.gauge("retention_pass_timestamp_seconds", "Time of the last complete look for what is old, 0 before the first."),
		Reloads:           f.counters("config_reloads_total", "Reloads of the configuration by outcome.", "outcome"),
	}
	m.Worker = f.workers()
	f.buildInfo()
	m.zero()
	return m
}

// zero exports the label values that are known without a configuration.
func (m *Metrics) zero() {
	for s := pawl.Pending; s <= pawl.Expired; s++ {
		m.Operations.WithLabelValues(s.String())
	}
	for r := pawl.ReviewUnconfirmed; r <= pawl.ReviewBodyDiffers; r++ {
		m.Reviews.WithLabelValues(r.String())
		m.ReviewsOverdue.WithLabelValues(r.String())
	}
	for _, what := range replayed {
		m.Replayed.WithLabelValues(what)
	}
	for _, outcome := range deliveryOutcomes {
		m.Deliveries.WithLabelValues(outcome)
	}
	for _, outcome := range captureOutcomes {
		m.Captures.WithLabelValues(outcome)
	}
	for _, kind := range removedKinds {
		m.ContentRemoved.WithLabelValues(kind)
	}
	for _, outcome := range reloadOutcomes {
		m.Reloads.WithLabelValues(outcome)
	}
	for _, queue := range queues {
		m.QueueDepth.WithLabelValues(queue)
		if queue != "commit" {
			m.InFlight.WithLabelValues(queue)
			m.OldestDue.WithLabelValues(queue)
		}
	}
	for _, state := range nodeStates {
		m.Nodes.WithLabelValues(state)
	}
	m.AddSource(UnknownName)
}

// AddUpstream exports the label values of a configured upstream as 0; it is a
// source too.
func (m *Metrics) AddUpstream(name string) {
	m.AddSource(name)
	m.Paused.WithLabelValues(name)
	for _, outcome := range callOutcomes {
		m.Reads.WithLabelValues(name, outcome)
		m.Submits.WithLabelValues(name, outcome)
		m.Cancels.WithLabelValues(name, outcome)
	}
}

// AddSource exports the label values of a configured source as 0.
func (m *Metrics) AddSource(name string) {
	m.Inbound.WithLabelValues(name, Refused)
	for v := pawl.Applied; v <= pawl.Rejected; v++ {
		m.Inbound.WithLabelValues(name, v.String())
	}
}

// factory gives names their prefix.
type factory struct{ promauto.Factory }

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: "pawl_" + name, Help: help})
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: "pawl_" + name, Help: help}, labels)
}

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: "pawl_" + name, Help: help})
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: "pawl_" + name, Help: help}, labels)
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return f.NewHistogram(prometheus.HistogramOpts{Name: "pawl_" + name, Help: help, Buckets: buckets})
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{Name: "pawl_" + name, Help: help, Buckets: buckets}, labels)
}

// buildInfo exports what was built from what, as labels of a constant 1.
func (f factory) buildInfo() {
	version, goversion, revision := UnknownName, UnknownName, UnknownName
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goversion = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	f.gauges("build_info", "What this program was built from.", "version", "goversion", "revision").
		WithLabelValues(version, goversion, revision).Set(1)
}
