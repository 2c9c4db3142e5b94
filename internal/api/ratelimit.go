package api

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// keyRates are the calls that API keys with a limit have left on this node.
type keyRates struct {
	mu sync.Mutex
	of map[pawl.ID]*keyRate
}

type keyRate struct {
	perSecond int64
	burst     int32
	bucket    *rate.Limiter
}

func newKeyRates() *keyRates { return &keyRates{of: make(map[pawl.ID]*keyRate)} }

// take counts a call of a key and reports how long it would have to wait; zero
// where it may go on. A refused call does not count.
func (k *keyRates) take(key ledger.APIKey, now time.Time) time.Duration {
	if key.Limits.Rate == 0 {
		return 0
	}
	r := k.bucket(key).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// bucket is the key's; with other limits than before it starts full.
func (k *keyRates) bucket(key ledger.APIKey) *rate.Limiter {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.of[key.ID]
	if known == nil || known.perSecond != key.Limits.Rate || known.burst != key.Limits.Burst {
		if len(k.of) >= keyLimit {
			clear(k.of)
		}
		known = &keyRate{key.Limits.Rate, key.Limits.Burst, rate.NewLimiter(rate.Limit(key.Limits.Rate)/thousandths, int(key.Limits.Burst))}
		k.of[key.ID] = known
	}
	return known.bucket
}

// paced refuses a call that its key's rate does not cover.
func (c *call) paced() error {
	wait := c.rates.take(c.by, time.Now())
	if wait == 0 {
		return nil
	}
	seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
	return refuse(http.StatusTooManyRequests, "rate_limited", "this API key has made as many calls as its limit allows; go on after the seconds of Retry-After").with("Retry-After", seconds)
}
