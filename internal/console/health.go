package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// What is working now is judged by the newest calls, enough of them to say
// something: what is over does not ring for an hour, and what has begun rings at
// once.
const (
	enoughCalls = 10
	judgedBack  = 10 * time.Minute
	// namedMost is how many endpoints that fail are named; triedInVain how many
	// attempts at what still waits are no passing fault any more.
	namedMost   = 5
	triedInVain = 3
)

// upstreamHealth is what came of the calls to an upstream in the last hour.
type upstreamHealth struct {
	upstreamItem
	// Not Reads: that is whether it can be read.
	Created, CreateFaults, Read, ReadFaults int64
	// Events are those that came from it.
	Events int64
	// Kind is "bad" while most of its newest calls fail, "warn" while some do.
	Kind string
}

// endpointHealth is an endpoint that is not delivered to.
type endpointHealth struct {
	endpointItem
	Dead, Waiting int
	// Last is what it answered last.
	Last string
}

// lately is where the newest stretch of time begins in which enough was counted,
// or the oldest that is looked at.
func lately(kept []measured, count func(from, to measured) float64) measured {
	now := kept[len(kept)-1]
	from := now
	for i := len(kept) - 2; i >= 0 && now.at.Sub(kept[i].at) <= judgedBack; i-- {
		if from = kept[i]; count(from, now) >= enoughCalls {
			break
		}
	}
	return from
}

// calls are how many of an upstream's calls ended well and how many did not,
// between two measurements.
func calls(metric, upstream string) func(from, to measured) (good, bad float64) {
	return func(from, to measured) (good, bad float64) {
		for name := range to.values {
			rest, ok := strings.CutPrefix(name, metric+"\x00")
			if !ok {
				continue
			}
			// Labels come by name: outcome before upstream.
			outcome, whose, _ := strings.Cut(rest, "\x00")
			switch {
			case whose != upstream:
			case outcome == "ok" || outcome == "refused":
				good += rise(from, to, name)
			default:
				bad += rise(from, to, name)
			}
		}
		return good, bad
	}
}

// judge says how an upstream does by this node's metrics, and what came of its
// newest calls.
func (u *upstreamHealth) judge(kept []measured) (lateBad, lateAll float64) {
	first, now := kept[0], kept[len(kept)-1]
	creates, reads := calls("pawl_upstream_submits_total", u.Name), calls("pawl_upstream_reads_total", u.Name)
	good, bad := creates(first, now)
	readGood, readBad := reads(first, now)
	u.Created, u.CreateFaults, u.Read, u.ReadFaults = int64(good), int64(bad), int64(readGood), int64(readBad)
	for name := range now.values {
		// Labels come by name: source before verdict.
		if rest, ok := strings.CutPrefix(name, key("pawl_inbound_events_total", u.Name)+"\x00"); ok && rest != "refused" {
			u.Events += int64(rise(first, now, name))
		}
	}
	from := lately(kept, func(from, to measured) float64 {
		a, b := creates(from, to)
		c, d := reads(from, to)
		return a + b + c + d
	})
	lateGood, lateBad := creates(from, now)
	moreGood, moreBad := reads(from, now)
	lateBad, lateAll = lateBad+moreBad, lateGood+lateBad+moreGood+moreBad
	switch {
	case lateBad > 0 && lateBad >= lateAll/2:
		u.Kind = "bad"
	case lateBad > 0:
		u.Kind = "warn"
	}
	return lateBad, lateAll
}

// fails is the finding of an upstream most of whose newest calls fail.
func (u *upstreamHealth) fails(bad, all float64) string {
	return fmt.Sprintf("Upstream %s fails: %s of its last %s calls.", u.Name, number(bad), number(all))
}

// upstreamsHealth judges all upstreams, and says of those that fail who waits for
// them.
func (v *visit) upstreamsHealth(out *overviewView, kept []measured) error {
	var failing []string
	for i := range out.Upstreams {
		u := &out.Upstreams[i]
		bad, all := u.judge(kept)
		if u.Kind != "bad" {
			continue
		}
		failing = append(failing, u.Name)
		waits, err := v.waiting(u.Name)
		if err != nil {
			return err
		}
		out.find(true, u.fails(bad, all)+" "+waits, "/console/upstreams#upstream-"+url.PathEscape(u.Name))
	}
	if n := len(out.Upstreams); len(failing) > 0 && len(failing) < n {
		out.Calm = append(out.Calm, many(n-len(failing), "other upstream works", "other upstreams work"))
	}
	return nil
}

// waiting says how many operations an upstream has not ended, and whose.
func (v *visit) waiting(upstream string) (string, error) {
	var open list[ledger.OperationJSON]
	if err := v.get("/v1/operations", url.Values{"unfinished": {"true"}, "upstream": {upstream}, "page_size": {"200"}}, &open); err != nil {
		return "", err
	}
	n := len(open.Items)
	if n == 0 {
		return "No operation waits there.", nil
	}
	return atMost(n, open.Next != "") + " unfinished " + plural(n, "operation", "operations") + " there.", nil
}

// endpointsHealth finds the endpoints that have dead letters, or for which
// attempt after attempt is in vain, among the newest of both.
func (v *visit) endpointsHealth(out *overviewView, dead []deliveryItem) error {
	var open list[deliveryItem]
	if err := v.get("/v1/deliveries", url.Values{"state": {"pending"}, "page_size": {"200"}}, &open); err != nil {
		return err
	}
	type counts struct {
		dead, waiting int
		tried         int32
		last          string
	}
	by, order := make(map[string]*counts), []string(nil)
	at := func(d deliveryItem) *counts {
		c := by[d.EndpointID]
		if c == nil {
			c = new(counts)
			by[d.EndpointID] = c
			order = append(order, d.EndpointID)
		}
		if c.last == "" && d.LastStatus > 0 {
			c.last = "HTTP " + itoa(int64(d.LastStatus))
		}
		c.last = cmp.Or(c.last, d.LastError)
		return c
	}
	for _, d := range open.Items {
		c := at(d)
		c.waiting++
		c.tried += d.Attempts
	}
	for _, d := range dead {
		at(d).dead++
	}
	order = slices.DeleteFunc(order, func(id string) bool { return by[id].dead == 0 && by[id].tried < triedInVain })
	for _, id := range order[:min(len(order), namedMost)] {
		c := by[id]
		ep := endpointHealth{Dead: c.dead, Waiting: c.waiting, Last: c.last}
		if err := v.get("/v1/endpoints/"+url.PathEscape(id), nil, &ep.endpointItem); err != nil {
			if p, ok := err.(*problem); ok && p.Status == 404 {
				continue // It was deleted, and what it was owed with it.
			}
			return err
		}
		out.Endpoints = append(out.Endpoints, ep)
		out.find(false, ep.finding(), "/console/endpoints/"+ep.ID)
	}
	return nil
}

func (e endpointHealth) finding() string {
	parts := []string{}
	if e.Dead > 0 {
		parts = append(parts, many(e.Dead, "dead letter", "dead letters"))
	}
	if e.Waiting > 0 {
		parts = append(parts, many(e.Waiting, "delivery waits", "deliveries wait"))
	}
	text := "Endpoint " + short(e.ID) + " of " + cmp.Or(e.Owner, e.Tenant) + ": " + strings.Join(parts, ", ")
	switch {
	case e.Disabled:
		text += "; it is disabled, " + strings.ReplaceAll(e.DisabledReason, "_", " ")
	case e.Last != "":
		text += "; it answered " + e.Last + " last"
	}
	return text
}

// plural is the word that goes with a count.
func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
