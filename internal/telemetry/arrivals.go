package telemetry

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// The bounds of what is remembered of requests of which nothing is stored.
const (
	// samplesKept is how many of a source are kept per reason, the latest ones.
	samplesKept = 5
	// sampleEvery is the least time between two of them.
	sampleEvery = time.Second
)

// Sample is one request of which nothing is stored: it could not be verified, or
// is only a hint (1-product C4). It never holds a body, a signature, a token, nor
// anything else that its sender chose.
type Sample struct {
	At     time.Time
	Reason string
	// Status is that of the answer.
	Status int
	// Size is that of the body in bytes, -1 where it is not known.
	Size int64
	// Digest is the SHA-256 of the body in hexadecimal, empty where it was not
	// read.
	Digest string
	// Headers are the names of those headers that the source's scheme reads and
	// the request had.
	Headers []string
	// Absent are the names of those that it had not: a header that a proxy drops
	// needs another remedy than a wrong secret (field case O-038).
	Absent []string
}

// Arrivals count what comes in per source, in the metrics and for people to look
// at, and keep a sample of what leaves no other trace. All of it is this node's,
// since its start. Safe for concurrent use.
type Arrivals struct {
	metrics *Metrics
	since   time.Time

	mu      sync.Mutex
	sources map[string]*tally
}

type tally struct {
	verdicts map[string]int64
	reasons  map[string]int64
	samples  map[string][]Sample
}

// NewArrivals begins to count at a moment.
func NewArrivals(m *Metrics, since time.Time) *Arrivals {
	return &Arrivals{metrics: m, since: since, sources: make(map[string]*tally)}
}

// Since is when the counts began.
func (a *Arrivals) Since() time.Time { return a.since }

// Judged counts an event that ended with a verdict. The source must be one that
// is configured.
func (a *Arrivals) Judged(source, verdict string) {
	a.metrics.Inbound.WithLabelValues(source, verdict).Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(source).verdicts[verdict]++
}

// Unstored counts a request of which no event is stored, and keeps it as a
// sample unless one like it was kept a moment ago. The verdict is [Refused] or
// that of a hint; the source must be configured, or [UnknownName], and the
// reason a word of the program.
func (a *Arrivals) Unstored(source, verdict string, s Sample) {
	a.Judged(source, verdict)
	a.metrics.Unstored.WithLabelValues(source, s.Reason).Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of(source)
	t.reasons[s.Reason]++
	kept := t.samples[s.Reason]
	if n := len(kept); n > 0 && s.At.Sub(kept[n-1].At) < sampleEvery {
		return
	}
	if len(kept) == samplesKept {
		kept = slices.Delete(kept, 0, 1)
	}
	t.samples[s.Reason] = append(kept, s)
}

func (a *Arrivals) of(source string) *tally {
	t, ok := a.sources[source]
	if !ok {
		t = &tally{verdicts: make(map[string]int64), reasons: make(map[string]int64), samples: make(map[string][]Sample)}
		a.sources[source] = t
	}
	return t
}

// Tally is what has come from one source.
type Tally struct {
	// Verdicts count events by their verdict, [Refused] included; Unstored count
	// requests of which no event is stored by their reason.
	Verdicts, Unstored map[string]int64
	// Samples are of the latter, the latest first.
	Samples []Sample
}

// Tally is a copy of what has come from a source so far.
func (a *Arrivals) Tally(source string) Tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.sources[source]
	if !ok {
		return Tally{}
	}
	out := Tally{Verdicts: maps.Clone(t.verdicts), Unstored: maps.Clone(t.reasons)}
	for _, kept := range t.samples {
		out.Samples = append(out.Samples, kept...)
	}
	slices.SortStableFunc(out.Samples, func(x, y Sample) int { return y.At.Compare(x.At) })
	return out
}
