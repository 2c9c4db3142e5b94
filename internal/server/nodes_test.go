package server

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

// nodesByState lists the nodes that the API shows.
func (w *world) nodesByState() map[string]int {
	w.Helper()
	found := make(map[string]int)
	for _, item := range w.get("/v1/nodes").items() {
		found[item.at("state")]++
	}
	return found
}

// TestNodeByItself: with SQLite there is one node, which tells what it holds.
func TestNodeByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	reached, open := w.provider.gate()
	w.submit("k")
	<-reached
	items := w.get("/v1/nodes").items()
	if len(items) != 1 || items[0].at("state") != "alive" || items[0].at("holds.creates") != "1" || items[0].at("lanes") != "1" || items[0].at("address") != w.node.APIURL() {
		t.Errorf("%v", items)
	}
	open()
	w.eventually("nothing is held", func() bool { return w.get("/v1/nodes").items()[0].at("holds.creates") == "0" })
}

// TestStartingNodeDrainsNot: it takes no requests yet, and is not about to stop.
func TestStartingNodeDrainsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.drain()
	n, err := Start(t.Context(), w.cfg, w.options())
	if err != nil {
		t.Fatal(err)
	}
	if got := n.present().State(); n.ready.on.Load() || got != "alive" {
		t.Errorf("a node that starts is %s", got)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w.node, w.stop, w.stopped = n, stop, make(chan error, 1)
	go func() { w.stopped <- n.Run(ctx) }()
	w.eventually("the node does not serve", n.ready.on.Load)
	w.drain()
	if got := n.present().State(); n.ready.on.Load() || got != "draining" {
		t.Errorf("a node that stops is %s", got)
	}
}

// TestNodesShareDueWork: three nodes share what is due without knowing of each
// other, each as much as it has slots for. One that loses its way to the database
// with calls on the wire blocks nobody, and nothing that it did is lost or done
// twice; one that stops hands over what it has.
func TestNodesShareDueWork(t *testing.T) {
	t.Parallel()
	const each, jobs = 2, 10
	w := newWorld(t, "media-v2", onPostgres(t), func(_ *config.Config, u *config.Upstream) { u.Concurrency = each })
	cut := new(disk)
	second, stop := w.another(new(disk))
	third, _ := w.another(cut)
	nodes := []*Node{w.node, second, third}
	_, open := w.provider.gate()
	ids := make([]string, jobs)
	for i := range ids {
		ids[i] = w.submit(fmt.Sprint("job-", i))
	}
	w.eventually("each node has its share", func() bool {
		for _, n := range nodes {
			if creates, _ := n.worker.UnderWay(); creates != each {
				return false
			}
		}
		return true
	})
	for _, n := range nodes {
		n.beat(t.Context())
	}
	for _, item := range w.get("/v1/nodes").items() {
		if item.at("state") != "alive" || item.at("holds.creates") != fmt.Sprint(each) {
			t.Errorf("%s", item.body)
		}
	}

	cut.state.Store(full)
	open()
	running := func() (n int) {
		for _, id := range ids {
			if w.operation(id).at("state") == "running" {
				n++
			}
		}
		return n
	}
	w.eventually("the others do all but what the third has on the wire", func() bool { return running() == jobs-each })
	stop()
	if found := w.nodesByState(); found["alive"] != 2 || len(found) != 1 {
		t.Errorf("after one has left: %v", found)
	}
	cut.state.Store(works)
	w.eventually("what the third did is taken", func() bool { return running() == jobs })
	if n := len(w.provider.created()); n != jobs {
		t.Errorf("%d creates, want %d", n, jobs)
	}
}
