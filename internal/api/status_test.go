package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// Of what a node has measured, all is in the answer, the urgent first, and none of
// it is a tenant's business.
func TestStatus(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := pawl.NewID(pawl.TimeOf(at), 1)
	for _, c := range []struct {
		name   string
		health Health
		nodes  []store.Node
		paused bool
		want   map[string]string
	}{
		{"at rest", Health{}, nil, false, map[string]string{
			"needs": "[]", "nodes": "[]", "create_to_confirmed": "<nil>", "oldest_unfinished_at": "<nil>", "orphan_share": "0", "duplicate_share": "0",
			"unfinished": "map[pending:0 running:0 unconfirmed:0]", "deliveries_waiting": "0", "dead_letters": "0", "endpoints_disabled": "0",
		}},
		{"measured", Health{
			Since: pawl.TimeOf(at), Median: 1.5, P95: 9, Events: map[string]int64{"applied": 5, "orphan": 2, "duplicate": 1}, Deliveries: map[string]int64{"delivered": 7},
		}, nil, false, map[string]string{
			"since": "2026-01-02T03:04:05.000000Z", "create_to_confirmed": "map[median_seconds:1.5 p95_seconds:9]", "orphan_share": "0.25", "duplicate_share": "0.125",
			"events": "map[applied:5 duplicate:1 orphan:2]", "deliveries": "map[delivered:7]", "needs": "[]",
		}},
		{"the urgent first", Health{Needs: []Need{{"first", false}, {"second", true}, {"third", false}, {"fourth", true}}}, nil, false, map[string]string{
			"needs": "[map[text:second urgent:true] map[text:fourth urgent:true] map[text:first urgent:false] map[text:third urgent:false]]",
		}},
		{"paused", Health{}, nil, true, map[string]string{"needs": "[map[text:upstream open: submit is paused, quota talks urgent:false]]"}},
		{"a silent node", Health{}, []store.Node{
			{ID: id, Host: "one", StartedAt: pawl.TimeOf(at), SeenAt: pawl.TimeOf(at)}, {ID: id, Host: "two", StartedAt: pawl.TimeOf(at), SeenAt: pawl.TimeOf(at), Unheard: time.Minute},
		}, false, map[string]string{
			"needs": fmt.Sprintf("[map[text:node %s on two is silent urgent:false]]", id.Text(pawl.PrefixNode)),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			if c.health.Since == 0 {
				c.health.Since = pawl.TimeOf(at)
			}
			g.nodes, g.health = c.nodes, func([]string) Health { return c.health }
			if c.paused {
				g.call("admin", "POST", "/v1/upstreams/open/pause", `{"reason":"quota talks"}`).want(200, "")
			}
			for _, key := range []string{"acme", "full", "payloads"} {
				g.call(key, "GET", "/v1/status", "").want(403, "insufficient_scope")
			}
			a := g.call("admin", "GET", "/v1/status", "").want(200, "")
			for name, want := range c.want {
				if got := fmt.Sprint(a.json[name]); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
		})
	}
	g := newRig(t)
	g.health = func(names []string) Health {
		calls := map[string]Calls{}
		for i, name := range names {
			calls[name] = Calls{Creates: int64(i), CreatesFailed: 2, Reads: 3, ReadsFailed: 4}
		}
		return Health{Since: pawl.TimeOf(at), Calls: calls}
	}
	for i, u := range g.call("admin", "GET", "/v1/status", "").want(200, "").json["upstreams"].([]any) {
		got := u.(map[string]any)
		if got["creates"] != float64(i) || got["creates_failed"] != 2.0 || got["reads"] != 3.0 || got["reads_failed"] != 4.0 {
			t.Errorf("%v", got)
		}
	}
}

// Who is told of dead letters is told whose they are.
func TestStatusNamesTheEndpointsOfDeadLetters(t *testing.T) {
	g := newRig(t)
	g.health = func([]string) Health { return Health{Since: pawl.TimeOf(time.Now())} }
	endpoint, _, row := g.deliverTo()
	if body := string(g.call("admin", "GET", "/v1/status", "").want(200, "").body); strings.Contains(body, endpoint) {
		t.Errorf("nothing is dead: %s", body)
	}
	g.attempt(row, 400)
	want := "map[text:endpoint " + endpoint + " of acme: 1 of the latest dead letters; it answered HTTP 400 last urgent:false]"
	if got := fmt.Sprint(g.call("admin", "GET", "/v1/status", "").want(200, "").json["needs"]); !strings.Contains(got, want) {
		t.Errorf("needs are %s, want %s among them", got, want)
	}
}
