package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/promtest"
)

// monitor scrapes a node as Prometheus does and keeps what it finds.
type monitor struct {
	began  time.Time
	looks  int
	series map[string]*strings.Builder
	seen   map[string]int
}

// scrapeEvery is the time between two scrapes.
const scrapeEvery = 30 * time.Second

// scrape takes all figures of now. Where it is judged time begins at 0, so figures
// that are times are moved there.
func (p *monitor) scrape(w *world) {
	w.Helper()
	r := w.want(http.StatusOK, w.send(http.MethodGet, w.node.AdminURL()+"/metrics", nil, nil))
	for line := range strings.Lines(r.body + "up 1\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		name := line[:cut]
		value, err := strconv.ParseFloat(strings.TrimSpace(line[cut:]), 64)
		if err != nil {
			w.Fatalf("%q: %v", line, err)
		}
		if strings.HasSuffix(name, "_timestamp_seconds") && value > 0 {
			value -= float64(p.began.UnixMicro()) / 1e6
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		name += `{job="pawl",instance="a",` + labels + "}"
		if p.series[name] == nil {
			p.series[name] = new(strings.Builder)
		}
		if gap := p.looks - p.seen[name]; gap > 0 {
			fmt.Fprintf(p.series[name], "_x%d ", gap)
		}
		fmt.Fprintf(p.series[name], "%g ", value)
		p.seen[name] = p.looks + 1
	}
	p.looks++
}

// judged is all of it, and the alerts that must fire by the minute.
func (p *monitor) judged(firing map[int][]string) promtest.Case {
	c := promtest.Case{Name: "an incident", Interval: scrapeEvery, Series: map[string]string{}, Firing: map[time.Duration][]string{}}
	for name, values := range p.series {
		c.Series[name] = values.String()
	}
	for minute, alerts := range firing {
		c.Firing[time.Duration(minute)*time.Minute] = alerts
	}
	return c
}

// An incident: for ten minutes a provider answers 500, its callbacks are lost
// meanwhile, and an endpoint is down for half an hour. The alerts tell of cause and
// effects and of nothing else; who is woken does what the runbook says, and they
// end (issue 6).
func TestIncidentFiresItsAlerts(t *testing.T) {
	p := &monitor{}
	inVirtualTime(t, "body-timestamp", func(w *world) {
		*p = monitor{began: time.Now(), series: map[string]*strings.Builder{}, seen: map[string]int{}}
		w.endpoint()
		minute := func() int { return int(time.Since(p.began) / time.Minute) }
		during := func(from, until int) bool { return minute() >= from && minute() < until }
		fails := &answer{status: http.StatusInternalServerError}
		w.provider.script(func(int, create) *answer {
			if during(20, 30) {
				return fails
			}
			return nil
		}, func(int, string) *answer {
			if during(20, 30) {
				return fails
			}
			return nil
		})
		w.sink.script(func(int, delivery) (int, string) {
			if during(20, 50) {
				return http.StatusServiceUnavailable, ""
			}
			return http.StatusOK, ""
		})
		told := 0
		ends := func() {
			for _, c := range w.provider.created()[told:] {
				s := done(c.task)
				w.provider.say(s)
				if !during(18, 30) {
					w.callback(c.callback, event{id: "end-" + c.task, said: s})
				}
				told++
			}
		}
		for minute() < 180 {
			if minute() < 90 {
				w.submit(fmt.Sprint("k", minute()))
			}
			if minute() == 60 {
				// The provider says that it has nothing of them.
				for _, op := range w.get("/v1/operations?state=unconfirmed").items() {
					w.want(http.StatusOK, w.resolve(op.at("id"), "not_created", ""))
				}
			}
			p.scrape(w)
			w.pass(scrapeEvery)
			ends()
			p.scrape(w)
			w.pass(scrapeEvery - time.Since(p.began)%scrapeEvery)
		}
		for path, what := range map[string]string{
			"/v1/operations?unfinished=true": "unfinished", "/v1/reviews?open=true": "to be decided", "/v1/deliveries?state=pending": "not delivered", "/v1/deliveries?state=dead": "dead",
		} {
			if n := len(w.get(path).items()); n > 0 {
				w.Errorf("after the incident %d rows are %s", n, what)
			}
		}
	}, reading(5*time.Minute, 5*time.Minute, 2*time.Hour), func(c *config.Config, _ *config.Upstream) { c.Tenants["default"].Account.Credit *= 10 })
	promtest.Test(t, "../../deploy/alerts.yaml", scrapeEvery, p.judged(map[int][]string{
		10: nil, 19: nil,
		// Five of ten minutes' creates fail from the 25th on, and two minutes later it
		// is told; reads of jobs whose callbacks are lost fail from the 23rd on.
		30: {"PawlReadsFail", "PawlUpstreamFails"},
		// The provider works again, the endpoint does not.
		45: {"PawlDeliveriesFail"},
		// Ten creates have been unconfirmed for half an hour.
		53: {"PawlDeliveriesFail", "PawlUnconfirmed"},
		// The endpoint is back, and nobody has decided yet.
		59: {"PawlUnconfirmed"},
		65: nil, 90: nil, 120: nil, 179: nil,
	}))
}
