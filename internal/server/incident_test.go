package server

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// measures are the four that show an incident (1-product I3), each over the time
// since the scrape before.
type measures struct {
	// oldest is the age of the oldest unfinished operation in seconds.
	oldest float64
	// orphans and duplicates are shares of all events received, from 0 to 1.
	orphans, duplicates float64
	// confirmed is the mean of the seconds from create to confirmed.
	confirmed float64
}

// scrape is what one look at /metrics says.
type scrape struct {
	oldest                            float64
	events, orphans, duplicates       float64
	confirmedSum, confirmedOperations float64
}

func (w *world) scrape() (s scrape) {
	w.Helper()
	r := w.send(http.MethodGet, w.node.AdminURL()+"/metrics", nil, nil)
	for line := range strings.Lines(r.body) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		switch {
		case name == "pawl_oldest_unfinished_operation_timestamp_seconds":
			s.oldest = value
		case name == "pawl_operation_confirmed_seconds_sum":
			s.confirmedSum = value
		case name == "pawl_operation_confirmed_seconds_count":
			s.confirmedOperations = value
		case strings.HasPrefix(name, `pawl_inbound_events_total{source="up"`):
			s.events += value
			if strings.Contains(name, `"orphan"`) {
				s.orphans += value
			}
			if strings.Contains(name, `"duplicate"`) {
				s.duplicates += value
			}
		}
	}
	return s
}

func (s scrape) since(before scrape, now time.Time) (m measures) {
	if s.oldest > 0 {
		m.oldest = float64(now.UnixMicro())/1e6 - s.oldest
	}
	if n := s.events - before.events; n > 0 {
		m.orphans, m.duplicates = (s.orphans-before.orphans)/n, (s.duplicates-before.duplicates)/n
	}
	if n := s.confirmedOperations - before.confirmedOperations; n > 0 {
		m.confirmed = (s.confirmedSum - before.confirmedSum) / n
	}
	return m
}

// An incident at a provider: it works slowly, repeats its callbacks, and sends
// us those of somebody else's tasks. Each of the four measures rises by it and
// falls again when it is over (seed 002; 1-product I3).
func TestIncident(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		n, strays := 0, 0
		var last scrape
		// round runs a minute: ten jobs that take so long each, whose ends are told
		// so often, and so many events of tasks that nobody knows.
		round := func(work time.Duration, times, foreign int) measures {
			w.Helper()
			began := time.Now()
			var jobs []create
			for range 10 {
				n++
				_, c := w.running(fmt.Sprint("k", n))
				jobs = append(jobs, c)
			}
			for range foreign {
				strays++
				w.want(http.StatusAccepted, w.callback("", event{id: fmt.Sprint("stray", strays), said: done(fmt.Sprint("theirs", strays))}))
			}
			w.pass(min(work, 45*time.Second))
			middle := w.scrape() // while the jobs run
			age := middle.since(last, time.Now()).oldest
			w.pass(work - min(work, 45*time.Second))
			for i, c := range jobs {
				for range times {
					if r := w.callback(c.callback, event{id: fmt.Sprint("end", n, "-", i), said: done(c.task)}); r.status >= 300 {
						w.Fatalf("answered %d %s", r.status, r.body)
					}
				}
			}
			w.pass(max(time.Minute-time.Since(began), 16*time.Second)) // the gauges are set every 15 s
			now := w.scrape()
			m := now.since(last, time.Now())
			m.oldest = max(m.oldest, age)
			last = now
			return m
		}
		calm := round(2*time.Second, 1, 0)
		storm := round(5*time.Minute, 4, 20)
		after := round(2*time.Second, 1, 0)

		for _, m := range []measures{calm, after} {
			if m.oldest > 3 || m.orphans != 0 || m.duplicates != 0 || m.confirmed < 1.9 || m.confirmed > 2.5 {
				w.Errorf("when all is well: %+v", m)
			}
		}
		// 20 strays, 10 ends and 30 repeats make 60 events.
		near := func(got, want float64) bool { return math.Abs(got-want) < 0.001 }
		if storm.oldest < 40 || !near(storm.orphans, 20.0/60) || !near(storm.duplicates, 30.0/60) || storm.confirmed < 299 || storm.confirmed > 301 {
			w.Errorf("in the incident: %+v", storm)
		}
	}, func(c *config.Config, _ *config.Upstream) { c.Tenants["default"].Account.Credit *= 10 })
}
