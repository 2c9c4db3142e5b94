package server

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// While the disk is nearly full nothing new is taken in, and what was taken in
// is finished: reads, settlement and deliveries go on. Intake opens by itself
// (1-product I7).
func TestDiskGuard(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		op, c := w.running("k")
		w.told(op, "operation.running")
		w.free.Store(100<<20 - 1)
		w.pass(diskEvery)
		wait := func(r reply) reply {
			w.Helper()
			if w.want(http.StatusServiceUnavailable, r); r.header.Get("Retry-After") == "" || r.at("reason") != "disk_full" {
				w.Errorf("Retry-After %q, reason %q", r.header.Get("Retry-After"), r.at("reason"))
			}
			return r
		}
		wait(w.call(http.MethodPost, "/v1/operations", job("more"), "Idempotency-Key", "more"))
		wait(w.call(http.MethodPost, "/v1/events", map[string]any{"id": "own", "type": "order.paid", "data": map[string]any{}}))
		wait(w.call(http.MethodPost, "/v1/operations/"+op+"/retry", map[string]any{}, "Idempotency-Key", "again"))
		wait(w.callback(c.callback, event{id: "early", said: done(c.task)}))
		w.now(op, "running")
		for _, base := range []string{w.node.APIURL(), w.node.AdminURL()} {
			w.want(http.StatusServiceUnavailable, w.send(http.MethodGet, base+"/readyz", nil, nil))
			w.want(http.StatusOK, w.send(http.MethodGet, base+"/livez", nil, nil))
		}
		if got := w.metric("pawl_intake_closed") + " " + w.metric("pawl_disk_free_bytes"); got != "1 1.04857599e+08" {
			w.Errorf("metrics %s", got)
		}
		w.provider.say(done(c.task))
		w.pass(30 * time.Second)
		w.now(op, "succeeded")
		w.told(op, "operation.running", "operation.succeeded")
		w.money("99.4", "0")

		// The least is not enough to open again, an eighth more is.
		for free, status := range map[uint64]int{100 << 20: http.StatusServiceUnavailable, 112<<20 + 512<<10 - 1: http.StatusServiceUnavailable} {
			w.free.Store(free)
			w.pass(diskEvery)
			w.want(status, w.call(http.MethodPost, "/v1/operations", job("more"), "Idempotency-Key", "more"))
		}
		w.free.Store(112<<20 + 512<<10)
		w.pass(diskEvery)
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("more"), "Idempotency-Key", "more"))
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/events", map[string]any{"id": "own", "type": "order.paid", "data": map[string]any{}}))
		w.want(http.StatusOK, w.callback(c.callback, event{id: "early", said: done(c.task)}))
		w.want(http.StatusOK, w.send(http.MethodGet, w.node.APIURL()+"/readyz", nil, nil))
		if got := w.metric("pawl_intake_closed"); got != "0" {
			w.Errorf("pawl_intake_closed %s", got)
		}
		if n := w.metric(`pawl_inbound_events_total{source="up",verdict="refused"}`); n != "1" {
			w.Errorf("%s hooks were refused", n)
		}
		// Open, the least itself is enough.
		w.free.Store(100 << 20)
		w.pass(diskEvery)
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("more"), "Idempotency-Key", "still-more"))
	}, func(c *config.Config, u *config.Upstream) {
		c.Disk.MinFree = 100 << 20
		u.Read.First, u.Read.Max = 2*time.Second, 15*time.Second
	})
}

// A node whose disk is nearly full when it starts takes nothing in from the
// first moment on.
func TestDiskGuardAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.drain()
	w.free.Store(1)
	w.start()
	w.want(http.StatusServiceUnavailable, w.call(http.MethodPost, "/v1/operations", job("x"), "Idempotency-Key", "x"))
	w.get("/v1/operations")
}

// What cannot be measured closes nothing and is told once; 0 guards nothing.
func TestDiskGuardJudges(t *testing.T) {
	var free uint64
	var broken error
	least := config.Size(80)
	log := new(logBuffer)
	g := &diskGuard{
		free:    func(string) (uint64, error) { return free, broken },
		minFree: func() config.Size { return least }, metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		log: slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, step := range []struct {
		free   uint64
		broken error
		least  config.Size
		full   bool
	}{
		{80, nil, 80, false}, {79, nil, 80, true}, {0, errors.New("gone"), 80, true}, {89, nil, 80, true}, {90, nil, 80, false},
		{0, errors.New("gone"), 80, false}, {0, nil, 0, false}, {0, nil, 1, true}, {0, nil, 0, false},
	} {
		free, broken, least = step.free, step.broken, step.least
		g.look()
		if g.full() != step.full {
			t.Errorf("%+v: full %t", step, g.full())
		}
	}
	if n := count(log.String(), "is not known"); n != 2 {
		t.Errorf("told %d times of two outages:\n%s", n, log)
	}
	if _, err := FreeSpace(t.TempDir()); err != nil {
		t.Error(err)
	}
	if free, err := FreeSpace(t.TempDir()); err != nil || free == 0 {
		t.Errorf("%d bytes free here, %v", free, err)
	}
	if _, err := FreeSpace("/nonexistent"); err == nil {
		t.Error("a folder that does not exist has free space")
	}
}
