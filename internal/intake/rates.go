package intake

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// rates hold each source to the callbacks a second that are configured for it,
// of which a second's worth may come at once. The names are configured ones, so
// that the map is bounded.
type rates struct {
	mu      sync.Mutex
	buckets map[string]*bucket
}

// bucket has room for what may come at once; it runs dry and fills again.
type bucket struct {
	left float64
	at   time.Time
}

func newRates() *rates { return &rates{buckets: make(map[string]*bucket)} }

// take lets one through, or says when the next may come. A rate of 0 lets all
// through.
func (r *rates) take(source string, rate float64, now time.Time) (wait time.Duration, ok bool) {
	if rate <= 0 {
		return 0, true
	}
	most := max(1, rate)
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[source]
	if b == nil {
		b = &bucket{left: most, at: now}
		r.buckets[source] = b
	}
	b.left = min(most, b.left+max(0, now.Sub(b.at).Seconds())*rate)
	b.at = now
	if b.left < 1 {
		return time.Duration((1 - b.left) / rate * float64(time.Second)), false
	}
	b.left--
	return 0, true
}

// seconds writes a wait for Retry-After: whole seconds, at least one.
func seconds(wait time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(wait.Seconds()))), 10)
}
