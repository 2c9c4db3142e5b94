package console

import (
	"math"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api"
)

// Health is what the overview shows of the installation, for who asks without a
// browser: its findings and figures, with the calls to the named upstreams.
func (c *Console) Health(upstreams []string) api.Health {
	if c.o.Metrics == nil {
		return api.Health{Since: pawl.TimeOf(time.Now())}
	}
	out := overviewView{}
	for _, name := range upstreams {
		out.Upstreams = append(out.Upstreams, upstreamHealth{upstreamItem: upstreamItem{Name: name}})
	}
	kept := c.trend.since(measure(c.o.Metrics, time.Now()))
	first, now := kept[0], kept[len(kept)-1]
	for i := range out.Upstreams {
		u := &out.Upstreams[i]
		if bad, all := u.judge(kept); u.Kind == "bad" {
			out.find(true, u.fails(bad, all), "")
		}
	}
	out.installation(kept)
	h := api.Health{
		Since: pawl.TimeOf(first.at), Events: make(map[string]int64), Deliveries: make(map[string]int64), Calls: make(map[string]api.Calls),
	}
	for _, f := range out.Findings {
		h.Needs = append(h.Needs, api.Need{Text: f.Text, Urgent: f.Bad})
	}
	for verdict, n := range verdicts(first, now) {
		h.Events[verdict] = int64(n)
	}
	for _, word := range outcomeWords {
		h.Deliveries[word] = int64(rise(first, now, key("pawl_deliveries_total", word)))
	}
	for _, u := range out.Upstreams {
		h.Calls[u.Name] = api.Calls{Creates: u.Created, CreatesFailed: u.CreateFaults, Reads: u.Read, ReadsFailed: u.ReadFaults}
	}
	if median := quantile(first, now, 0.5); !math.IsNaN(median) {
		h.Median, h.P95 = median, quantile(first, now, 0.95)
	}
	return h
}
