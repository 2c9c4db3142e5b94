package config

import (
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// minRetention leaves time to look at what went wrong, and maxRetention is
	// ten years.
	minRetention = time.Hour
	maxRetention = 3653 * day
)

func (k *checker) retention(r Retention) {
	for _, class := range [...]struct {
		name string
		kept time.Duration
	}{{"inputs", r.Inputs}, {"results", r.Results}, {"callbacks", r.Callbacks}, {"deliveries", r.Deliveries}, {"audit", r.Audit}, {"idempotency", r.Idempotency}} {
		if class.kept < minRetention || class.kept > maxRetention {
			k.say("retention."+class.name, "must be from 1h to 3653d; write how long it is kept, such as 30d")
		}
	}
}

// readDays reads whole days, such as 30d.
func readDays(text string) (time.Duration, bool) {
	digits, ok := strings.CutSuffix(text, "d")
	n, err := strconv.ParseUint(digits, 10, 16)
	return time.Duration(n) * day, ok && err == nil
}
