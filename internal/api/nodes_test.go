package api

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// TestListNodes: operators of the installation see who serves the ledger, which
// is no tenant's business. Who is not heard of is silent, whatever it said last.
func TestListNodes(t *testing.T) {
	g := newRig(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := func(n uint64) pawl.ID { return pawl.NewID(pawl.TimeOf(at), n) }
	g.nodes = []store.Node{
		{ID: id(1), Host: "one", Address: "http://10.0.0.1:8080", Version: "v1", Unheard: 30 * time.Second, Lanes: 4, Waiting: 3, Creates: 1, Deliveries: 2},
		{ID: id(2), Host: "two", Draining: true},
		{ID: id(3), Host: "three", Draining: true, Unheard: 31 * time.Second},
	}
	for i := range g.nodes {
		g.nodes[i].StartedAt, g.nodes[i].SeenAt = pawl.TimeOf(at), pawl.TimeOf(at)
	}
	for _, key := range []string{"full", "acme"} {
		g.call(key, "GET", "/v1/nodes", "").want(403, "insufficient_scope")
	}
	items := g.call("admin", "GET", "/v1/nodes", "").want(200, "").items()
	for i, want := range []string{"alive", "draining", "silent"} {
		if items[i]["state"] != want {
			t.Errorf("%v is %v, want %s", items[i]["host"], items[i]["state"], want)
		}
	}
	one := items[0]
	if one["last_seen_at"] != "2026-01-02T03:04:05.000000Z" || one["version"] != "v1" || one["address"] != "http://10.0.0.1:8080" || one["id"] != id(1).Text("node") {
		t.Errorf("%v", one)
	}
	holds := one["holds"].(map[string]any)
	if holds["creates"] != 1.0 || holds["reads"] != 0.0 || holds["deliveries"] != 2.0 || one["waiting"] != 3.0 {
		t.Errorf("%v", one)
	}
}
