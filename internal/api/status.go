package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Health is what a node has measured in the last hour, or since it has run.
type Health struct {
	// Since is the beginning of what is counted.
	Since pawl.Time
	// Needs is what needs a person, by these figures.
	Needs []Need
	// Confirmed are the seconds from create to confirmed: median and 95th
	// percentile; 0 where none was confirmed.
	Median, P95 float64
	// Events counts what was received by verdict, Deliveries attempts by outcome.
	Events, Deliveries map[string]int64
	// Calls are those to each upstream.
	Calls map[string]Calls
}

// Need is something that a person should look at; urgent is what cannot wait.
type Need struct {
	Text   string `json:"text"`
	Urgent bool   `json:"urgent"`
}

// Calls count what was asked of an upstream, and what of it came to nothing.
type Calls struct {
	Creates       int64 `json:"creates"`
	CreatesFailed int64 `json:"creates_failed"`
	Reads         int64 `json:"reads"`
	ReadsFailed   int64 `json:"reads_failed"`
}

// statusJSON is the health of the installation in one answer.
type statusJSON struct {
	Needs             []Need           `json:"needs" doc:"What needs a person, the urgent first; empty where nothing does."`
	Since             pawl.Time        `json:"since" format:"date-time" doc:"What is counted over time is of the node that answers, since then: an hour at most."`
	Unfinished        map[string]int64 `json:"unfinished" doc:"Operations by state."`
	OldestUnfinished  *pawl.Time       `json:"oldest_unfinished_at,omitempty" format:"date-time"`
	Confirmed         *confirmedJSON   `json:"create_to_confirmed,omitempty" doc:"Left out where no operation was confirmed."`
	Events            map[string]int64 `json:"events" doc:"Received, by verdict; refused is what was never judged."`
	OrphanShare       float64          `json:"orphan_share" doc:"Of the events, from 0 to 1."`
	DuplicateShare    float64          `json:"duplicate_share" doc:"Of the events, from 0 to 1."`
	Deliveries        map[string]int64 `json:"deliveries" doc:"Ends of attempts by outcome."`
	DeliveriesWaiting int64            `json:"deliveries_waiting"`
	DeadLetters       int64            `json:"dead_letters"`
	EndpointsDisabled int64            `json:"endpoints_disabled"`
	Reviews           map[string]int64 `json:"reviews" doc:"Open, by reason."`
	Upstreams         []upstreamStatus `json:"upstreams"`
	Nodes             []nodeJSON       `json:"nodes"`
}

type confirmedJSON struct {
	Median float64 `json:"median_seconds"`
	P95    float64 `json:"p95_seconds"`
}

type upstreamStatus struct {
	Name    string      `json:"name"`
	Removed bool        `json:"removed,omitempty"`
	Paused  []pauseJSON `json:"paused"`
	Calls
}

func (a *api) statusRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/status", name: "getStatus", tag: "nodes", scope: ledger.ScopeAdmin, status: http.StatusOK,
		summary: "The health of the installation: what needs a person, and the figures of the console's overview",
	}, getStatus)
}

func getStatus(c *call, _ none) (statusJSON, error) {
	stats, err := c.opts.Reader.Stats(c.ctx)
	if err != nil {
		return statusJSON{}, err
	}
	out := statusJSON{
		Unfinished: map[string]int64{}, OldestUnfinished: isSet(stats.OldestUnfinished), Events: map[string]int64{}, Deliveries: map[string]int64{},
		DeliveriesWaiting: stats.DeliveriesWaiting, DeadLetters: stats.DeliveriesDead, EndpointsDisabled: stats.Disabled, Reviews: map[string]int64{},
		Needs: []Need{}, Upstreams: []upstreamStatus{}, Nodes: []nodeJSON{},
	}
	for state := pawl.Pending; state <= pawl.Running; state++ {
		out.Unfinished[state.String()] = stats.Unfinished[state]
	}
	for reason, n := range stats.OpenReviews {
		out.Reviews[reason.String()] = n
	}
	var h Health
	if c.opts.Health != nil {
		h = c.opts.Health(slices.Sorted(maps.Keys(c.ups)))
	}
	out.measured(h)
	if err := c.statusOfUpstreams(&out, h); err != nil {
		return out, err
	}
	if out.DeadLetters > 0 {
		if err := c.statusOfEndpoints(&out); err != nil {
			return out, err
		}
	}
	if c.opts.Nodes != nil {
		nodes, err := c.opts.Nodes(c.ctx)
		if err != nil {
			return out, err
		}
		for _, n := range nodes {
			out.Nodes = append(out.Nodes, nodeShape(n))
			if n.Silent() {
				out.Needs = append(out.Needs, Need{Text: fmt.Sprintf("node %s on %s is silent", n.ID.Text(pawl.PrefixNode), n.Host)})
			}
		}
	}
	slices.SortStableFunc(out.Needs, func(a, b Need) int {
		switch {
		case a.Urgent == b.Urgent:
			return 0
		case a.Urgent:
			return -1
		}
		return 1
	})
	return out, nil
}

func (s *statusJSON) measured(h Health) {
	s.Since = h.Since
	s.Needs = append(s.Needs, h.Needs...)
	maps.Copy(s.Deliveries, h.Deliveries)
	if h.P95 > 0 {
		s.Confirmed = &confirmedJSON{h.Median, h.P95}
	}
	var all int64
	for verdict, n := range h.Events {
		s.Events[verdict] = n
		all += n
	}
	if all > 0 {
		s.OrphanShare = float64(h.Events[pawl.Orphan.String()]) / float64(all)
		s.DuplicateShare = float64(h.Events[pawl.Duplicate.String()]) / float64(all)
	}
}

// statusOfUpstreams tells what stands still, and what of it needs somebody.
func (c *call) statusOfUpstreams(out *statusJSON, h Health) error {
	paused, err := c.pauses()
	if err != nil {
		return err
	}
	removed, err := c.removed()
	if err != nil {
		return err
	}
	for _, u := range removed {
		out.Upstreams = append(out.Upstreams, upstreamStatus{Name: u.Name, Removed: true, Paused: []pauseJSON{}})
		out.Needs = append(out.Needs, Need{"upstream " + u.Name + " is not configured any more, and operations wait for it", true})
	}
	for _, name := range slices.Sorted(maps.Keys(c.ups)) {
		out.Upstreams = append(out.Upstreams, upstreamStatus{Name: name, Paused: append([]pauseJSON{}, paused[name]...), Calls: h.Calls[name]})
		for _, p := range paused[name] {
			out.Needs = append(out.Needs, Need{Text: "upstream " + name + ": " + p.Work + " is paused, " + p.Reason})
		}
	}
	return nil
}

// namedEndpoints is how many endpoints with dead letters are named.
const namedEndpoints = 5

// statusOfEndpoints names those that the newest dead letters were for, with what
// they answered last.
func (c *call) statusOfEndpoints(out *statusJSON) error {
	dead, err := c.opts.Reader.Deliveries(c.ctx, store.DeliveryFilter{State: pawl.DeliveryDead}, store.Page{Limit: maxPage})
	if err != nil {
		return err
	}
	var order []pawl.ID
	counts, last := make(map[pawl.ID]int), make(map[pawl.ID]int32)
	for _, d := range dead {
		if counts[d.Endpoint]++; counts[d.Endpoint] == 1 {
			order, last[d.Endpoint] = append(order, d.Endpoint), d.LastStatus
		}
	}
	order = order[:min(len(order), namedEndpoints)]
	rows, err := c.load(c.ctx, ledger.Keys{Endpoints: order})
	if err != nil {
		return err
	}
	for _, id := range order {
		e, _ := rows.Endpoints.Get(id)
		text := fmt.Sprintf("endpoint %s of %s: %d of the latest dead letters", id.Text(pawl.PrefixEndpoint), cmp.Or(e.Owner, e.Tenant, "the installation"), counts[id])
		if last[id] > 0 {
			text += fmt.Sprintf("; it answered HTTP %d last", last[id])
		}
		out.Needs = append(out.Needs, Need{Text: text})
	}
	return nil
}
