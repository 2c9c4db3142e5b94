package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// PolicyJSON is a delivery policy as tenants write it and as an endpoint keeps
// it. Durations are written as Go writes them ("15s", "1h30m"); what is left
// out is the scheme's own.
type PolicyJSON struct {
	Attempts int      `json:"attempts,omitempty" minimum:"1" maximum:"50" doc:"How often a delivery is tried. More than the schedule has waits repeats its last one."`
	Timeout  string   `json:"timeout,omitempty" example:"15s" doc:"How long one attempt may take, 1s to 60s."`
	MaxAge   string   `json:"max_age,omitempty" example:"96h" doc:"How long after the first attempt was due no further one is made, 1s to 720h."`
	Schedule []string `json:"schedule,omitempty" maxItems:"50" example:"[\"0s\",\"5s\",\"5m\"]" doc:"The wait before each attempt, the first included, each 0s to 168h."`
	Retry    []int32  `json:"retry,omitempty" maxItems:"50" uniqueItems:"true" example:"[422]" doc:"Statuses from 400 to 599 that are tried again, beside those of the scheme. A status is in one of retry, dead and gone only."`
	Dead     []int32  `json:"dead,omitempty" maxItems:"50" uniqueItems:"true" example:"[501]" doc:"Statuses from 400 to 599 after which a delivery is dead at once, beside those of the scheme."`
	Gone     []int32  `json:"gone,omitempty" maxItems:"50" uniqueItems:"true" example:"[404]" doc:"Statuses from 400 to 599 after which a delivery is dead at once and the endpoint is disabled, beside those of the scheme."`
}

// The bounds of a policy.
const (
	maxPolicyAttempts = 50
	maxPolicyTimeout  = time.Minute
	maxPolicyAge      = 30 * 24 * time.Hour
	maxPolicyWait     = 7 * 24 * time.Hour
	// maxPolicyStatuses bounds each list of statuses.
	maxPolicyStatuses = 50
)

// PolicyOf is the policy of endpoints of a scheme that have none of their own.
func PolicyOf(scheme string) Policy {
	if scheme == "body-timestamp" {
		return BodyTimestampPolicy()
	}
	return DefaultPolicy()
}

// ParsePolicy reads the policy that an endpoint of a scheme keeps in
// Endpoint.Policy; empty text is the scheme's own. The error says which member
// is wrong and what it may be.
func ParsePolicy(scheme, text string) (Policy, error) {
	if text == "" {
		return PolicyOf(scheme), nil
	}
	var p PolicyJSON
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Policy{}, errors.New("policy: not an object of attempts, timeout, max_age, schedule, retry, dead and gone")
	}
	if _, err := dec.Token(); err != io.EOF {
		return Policy{}, errors.New("policy: data after the object")
	}
	return p.Of(scheme)
}

// Of joins the policy with that of the scheme.
func (p PolicyJSON) Of(scheme string) (Policy, error) {
	out := PolicyOf(scheme)
	if len(p.Schedule) > 0 {
		out.Schedule = make([]time.Duration, len(p.Schedule))
	}
	if p.Attempts < 0 || p.Attempts > maxPolicyAttempts || len(p.Schedule) > maxPolicyAttempts {
		return Policy{}, fmt.Errorf("policy: attempts: 1 to %d are possible", maxPolicyAttempts)
	}
	for i, text := range p.Schedule {
		if err := bounded(&out.Schedule[i], text, 0, maxPolicyWait); err != nil {
			return Policy{}, fmt.Errorf("policy: schedule[%d]: %w", i, err)
		}
	}
	if err := bounded(&out.Timeout, p.Timeout, time.Second, maxPolicyTimeout); err != nil {
		return Policy{}, fmt.Errorf("policy: timeout: %w", err)
	}
	if err := bounded(&out.MaxAge, p.MaxAge, time.Second, maxPolicyAge); err != nil {
		return Policy{}, fmt.Errorf("policy: max_age: %w", err)
	}
	if p.Attempts > 0 {
		last := out.Schedule[len(out.Schedule)-1]
		for len(out.Schedule) < p.Attempts {
			out.Schedule = append(out.Schedule, last)
		}
		out.Schedule = slices.Clip(out.Schedule[:p.Attempts])
	}
	return p.statuses(out)
}

// statuses moves the named statuses in the table of 7-rules §5. What is no
// answer of a failure (2xx, 3xx, none at all) keeps its place there.
func (p PolicyJSON) statuses(out Policy) (Policy, error) {
	var seen []int32
	for _, list := range []struct {
		name     string
		statuses []int32
	}{{"retry", p.Retry}, {"dead", p.Dead}, {"gone", p.Gone}} {
		if len(list.statuses) > maxPolicyStatuses {
			return Policy{}, fmt.Errorf("policy: %s: at most %d statuses are possible", list.name, maxPolicyStatuses)
		}
		for _, status := range list.statuses {
			if status < 400 || status > 599 {
				return Policy{}, fmt.Errorf("policy: %s: want statuses from 400 to 599", list.name)
			}
			if slices.Contains(seen, status) {
				return Policy{}, fmt.Errorf("policy: %s: %d is named twice", list.name, status)
			}
			seen = append(seen, status)
		}
	}
	moved := func(status int32) bool { return slices.Contains(seen, status) }
	out.Retry = append(slices.DeleteFunc(out.Retry, moved), p.Retry...)
	out.Dead = append(slices.DeleteFunc(out.Dead, moved), p.Dead...)
	out.Gone = append(slices.DeleteFunc(out.Gone, moved), p.Gone...)
	return out, nil
}

// Text is the form that an endpoint keeps; empty for a policy that says
// nothing.
func (p PolicyJSON) Text() string {
	if text := encode(p); text != "{}" {
		return text
	}
	return ""
}

// bounded reads a duration into to, unless the text is empty.
func bounded(to *time.Duration, text string, least, most time.Duration) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return fmt.Errorf("want a duration such as 15s, from %s to %s", least, most)
	}
	*to = d
	return nil
}
