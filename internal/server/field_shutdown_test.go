package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// 200 deliveries wait when the node is told to stop (O-110): none of them fails
// for that, what was not sent is as it was, and after the start each goes out.
func TestO110ShutdownFailsNoDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(c *config.Config, _ *config.Upstream) { c.Drain = 500 * time.Millisecond })
	w.endpoint("types", []string{"job.done"}, "policy", quickly)
	var open atomic.Bool
	shut := make(chan struct{})
	w.sink.script(func(int, delivery) (int, string) {
		if !open.Load() {
			<-shut
		}
		return http.StatusOK, ""
	})
	const n = 200
	for i := range n {
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/events", map[string]any{"id": fmt.Sprint("job-", i), "type": "job.done", "data": map[string]any{}}))
	}
	w.eventually("nothing is on the wire", func() bool { return len(w.sink.attempts()) > 0 })
	sent := len(w.sink.attempts())
	w.drain()
	open.Store(true)
	close(shut)
	w.start()
	w.eventually("not all are delivered", func() bool {
		return len(w.get("/v1/deliveries?state=delivered&page_size=200").items()) == n
	})
	spent := 0
	for _, d := range w.get("/v1/deliveries?page_size=200").items() {
		if a := d.at("attempts"); a != "1" {
			spent++
		}
	}
	if spent > sent {
		t.Errorf("%d deliveries took more than one attempt, and %d were on the wire at the end", spent, sent)
	}
}

// A node that does not know an upstream, as during a rolling change, leaves its
// operations alone and says so (O-114): they go on with the next node that does.
func TestO114UnknownWorkIsLeftAlone(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.provider.script(func(int, create) *answer { return &answer{status: http.StatusTooManyRequests} }, nil)
		op := w.submit("k")
		w.eventually("no create", func() bool { return len(w.provider.created()) > 0 })
		w.drain()
		w.provider.script(nil, nil)
		before := len(w.provider.created())
		known := w.cfg.Upstreams
		w.cfg.Upstreams = map[string]config.Upstream{"another": known["up"]}
		w.start()
		w.eventually("the upstream is not shown as removed", func() bool {
			return strings.Contains(w.get("/v1/upstreams").body, `"removed":true`)
		})
		w.pass(3 * time.Second) // The create is due again after 1 to 2 s.
		if r := w.operation(op); r.at("state") != "pending" || len(w.provider.created()) != before {
			t.Errorf("%d creates, %s", len(w.provider.created()), r.body)
		}
		w.drain()
		w.cfg.Upstreams = known
		w.start()
		w.state(op, "running")
	})
}
