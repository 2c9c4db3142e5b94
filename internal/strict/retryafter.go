package strict

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait that RetryAfter gives (7-rules §5).
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads a Retry-After field value (RFC 9110 §10.2.3; HT-01, HT-02):
// whole seconds, or an HTTP-date in one of its three forms, counted from now,
// the moment of receipt. A past date gives 0, a long wait MaxRetryAfter.
// Anything else ("-5", "1.5", "+3", "1000abc", "") is as good as absent: false.
func RetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), MaxRetryAfter), true
}
