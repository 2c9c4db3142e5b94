package ledger

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl"
)

// Policy is how deliveries to an endpoint are tried and judged: one table as
// data (7-rules §5).
type Policy struct {
	// Schedule is the wait before each attempt, the first included; its length
	// is the number of attempts.
	Schedule []time.Duration
	// MaxAge ends the tries this long after the first was due.
	MaxAge time.Duration
	// Timeout is for one attempt.
	Timeout time.Duration
	// Jitter is how much a wait may be moved, in percent either way.
	Jitter int64
	// RetryAfterMax clamps what an endpoint may ask for.
	RetryAfterMax time.Duration
	// Retry are the 4xx statuses that are tried again; the others are final.
	// Dead are the 5xx that are final. Gone are final and also disable the
	// endpoint. No status is in two of them.
	Retry, Dead, Gone []int32
}

// DefaultPolicy is the policy of Standard Webhooks endpoints.
func DefaultPolicy() Policy {
	return Policy{
		Schedule: []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
			10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour},
		MaxAge: 4 * 24 * time.Hour, Timeout: 15 * time.Second, Jitter: 10, RetryAfterMax: 24 * time.Hour,
		Retry: []int32{404, 408, 409, 425, 429}, Gone: []int32{410},
	}
}

// BodyTimestampPolicy is that of endpoints of the body-timestamp dialect: 3 s,
// five attempts, min(30 s, 500 ms × 2^(n-1)) (2-contracts §3).
func BodyTimestampPolicy() Policy {
	p := DefaultPolicy()
	p.Schedule = []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
	p.Timeout = 3 * time.Second
	return p
}

// AttemptFailure is why an attempt got no HTTP answer.
type AttemptFailure uint8

// The failures of an attempt.
const (
	// Answered: there was an HTTP answer.
	Answered AttemptFailure = iota
	// NoAnswer: network, TLS, DNS or timeout.
	NoAnswer
	// EgressRefused: the guard refused the address; final.
	EgressRefused
	// Unsendable: the delivery could not be made into a request; final.
	Unsendable
)

// sentence is what an attempt means for its delivery.
type sentence uint8

const (
	delivered sentence = iota + 1
	again
	dead
	deadAndGone
)

// judge reads the table of 7-rules §5.
func (p Policy) judge(status int32, failure AttemptFailure) sentence {
	switch {
	case failure == EgressRefused || failure == Unsendable:
		return dead
	case failure == NoAnswer:
		return again
	case status >= 200 && status <= 299:
		return delivered
	case slices.Contains(p.Gone, status):
		return deadAndGone
	case slices.Contains(p.Dead, status), status >= 400 && status <= 499 && !slices.Contains(p.Retry, status):
		return dead
	default:
		return again
	}
}

// next is when the attempt after n tries is due; false when there is none.
func (p Policy) next(now, first pawl.Time, tries int32, retryAfter time.Duration, vary func(of time.Duration, percent int64) time.Duration) (pawl.Time, bool) {
	if int(tries) >= len(p.Schedule) {
		return 0, false
	}
	wait := vary(p.Schedule[tries], p.Jitter)
	wait = max(wait, min(retryAfter, p.RetryAfterMax))
	at := now.Add(wait)
	if p.MaxAge > 0 && at.Sub(first) > p.MaxAge {
		return 0, false
	}
	return at, true
}
