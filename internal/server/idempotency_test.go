package server

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// sibling makes another API key of the default tenant.
func (w *world) sibling() (authorization string) {
	w.Helper()
	r := w.call(http.MethodPost, "/v1/keys", `{"tenant":"default","name":"sibling","scopes":["submit","read"]}`)
	return "Bearer " + w.want(http.StatusCreated, r).at("secret")
}

// gate holds every create until it is opened; reached is closed by the first.
func (p *provider) gate() (reached chan struct{}, open func()) {
	reached, held := make(chan struct{}), make(chan struct{})
	var first, once sync.Once
	p.script(func(int, create) *answer {
		first.Do(func() { close(reached) })
		<-held
		return nil
	}, nil)
	return reached, func() { once.Do(func() { close(held) }) }
}

// Fifty callers at once with one key, and fifty more while the create is on the
// wire for three seconds, beside those who misuse the key (1-product A3, A4, A5;
// O-001).
func TestO001SameKeyManyCallersAtOnce(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		other := w.sibling()
		reached := make(chan struct{})
		var first sync.Once
		w.provider.script(func(int, create) *answer {
			first.Do(func() { close(reached) })
			time.Sleep(3 * time.Second)
			return nil
		}, nil)
		submit := func(body any, headers ...string) reply {
			return w.call(http.MethodPost, "/v1/operations", body, append([]string{"Idempotency-Key", "k-burst-1"}, headers...)...)
		}
		var same [100]reply
		var changed, foreign [20]reply
		var callers sync.WaitGroup
		for i := range same {
			callers.Go(func() {
				if i >= 50 {
					<-reached
				}
				same[i] = submit(job("a red kite"))
			})
		}
		for i := range changed {
			callers.Go(func() { <-reached; changed[i] = submit(job("a blue kite")) })
			callers.Go(func() { <-reached; foreign[i] = submit(job("a red kite"), "Authorization", other) })
		}
		callers.Wait()
		ops := w.get("/v1/operations").items()
		if len(ops) != 1 {
			w.Fatalf("%d operations, want 1", len(ops))
		}
		id, firsts := ops[0].at("id"), 0
		for _, r := range same {
			w.want(http.StatusAccepted, r)
			if r.at("id") != id {
				w.Errorf("a caller got %s, want %s", r.at("id"), id)
			}
			if r.header.Get("Idempotency-Replayed") != "true" {
				firsts++
			}
		}
		if firsts != 1 {
			w.Errorf("%d answers were not marked as replays, want 1", firsts)
		}
		for _, r := range changed {
			if w.want(http.StatusUnprocessableEntity, r); r.at("operation_id") != id {
				w.Errorf("the mismatch names %q, want %s", r.at("operation_id"), id)
			}
		}
		w.pass(4 * time.Second)
		w.now(id, "running")
		task := w.operation(id).at("task_id")
		for _, r := range foreign {
			w.want(http.StatusConflict, r)
			if all := r.everything(); strings.Contains(all, "op_") || strings.Contains(all, id[3:]) || strings.Contains(all, task) {
				w.Errorf("a sibling key is told: %s", all)
			}
		}
		if n := len(w.provider.created()); n != 1 {
			w.Errorf("%d creates reached the provider, want 1", n)
		}
		w.money("100", "1")
		w.line(id, "money reserve", 1)
		if r := submit(job("a red kite")); r.at("id") != id || r.at("state") != "running" {
			w.Errorf("a later repeat got %s %s", r.at("id"), r.at("state"))
		}
		if found := w.get("/v1/operations?idempotency_key=k-burst-1").items(); len(found) != 1 || found[0].at("id") != id {
			w.Errorf("the key finds %v", found)
		}
	})
}

// everything is the answer's body with its header.
func (r reply) everything() string {
	all := r.body
	for name, values := range r.header {
		all += name + ": " + strings.Join(values, " ")
	}
	return all
}

// A refusal of the repeated create says nothing of the first one, which may
// have been taken (1-product B2).
func TestRefusedAfterKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", func(c *config.Config, _ *config.Upstream) { c.Drain = 300 * time.Millisecond })
	reached, open := w.provider.gate()
	id := w.submit("k")
	<-reached
	w.kill()
	open()
	w.provider.script(func(int, create) *answer { return &answer{status: http.StatusBadRequest} }, nil)
	w.start()
	w.eventually("it was not asked again", func() bool { return len(w.provider.created()) == 3 })
	w.now(id, "pending")
	w.money("100", "1")
	w.finish(id, w.provider.created()[0])
	w.money("99.4", "0")
}

// A key lives for its window and at least until its operation has ended
// (7-rules R3, R4).
func TestIdempotencyWindow(t *testing.T) {
	window := 30 * time.Second
	inVirtualTime(t, "media-v2", func(w *world) {
		other := w.sibling()
		running := w.submit("k-running")
		ended := w.submit("k-ended")
		w.pass(time.Second)
		task := w.operation(ended).at("task_id")
		w.want(202, w.callback("", event{id: "e1", said: said{task: task, state: "failed", code: "timeout"}}))
		again := func(key string, headers ...string) reply {
			return w.call(http.MethodPost, "/v1/operations", job("a red kite"), append(headers, "Idempotency-Key", key)...)
		}
		if r := w.want(http.StatusOK, again("k-ended")); r.at("id") != ended || r.at("state") != "failed" {
			w.Errorf("a repeat after the end got %s %s", r.at("id"), r.at("state"))
		}
		w.want(http.StatusConflict, again("k-ended", "Authorization", other))

		w.pass(window)
		if r := again("k-running"); r.at("id") != running {
			w.Errorf("after the window the key of a running operation gave %s, want %s", r.at("id"), running)
		}
		w.want(http.StatusConflict, again("k-running", "Authorization", other))
		fresh := w.want(http.StatusAccepted, again("k-ended", "Authorization", other))
		if fresh.at("id") == ended || fresh.header.Get("Idempotency-Replayed") != "" {
			w.Errorf("after the window the key still gave %s", fresh.at("id"))
		}
		w.want(http.StatusConflict, again("k-ended")) // it is the other key's now
	}, func(c *config.Config, _ *config.Upstream) { c.Idempotency.Window = window })
	if got := config.Default().Idempotency.Window; got != 24*time.Hour {
		t.Errorf("the default window is %s, want 24h", got)
	}
}
