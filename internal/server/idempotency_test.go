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

// Many callers with one key, beside those who misuse it (1-product A3, A4, A5;
// O-001, O-002, O-009).
func TestO001ManyCallersOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	other := w.sibling()
	reached, open := w.provider.gate()
	defer open()
	submit := func(body any, headers ...string) reply {
		return w.call(http.MethodPost, "/v1/operations", body, append([]string{"Idempotency-Key", "k-burst-1"}, headers...)...)
	}
	var same [100]reply
	var changed, foreign [20]reply
	var callers sync.WaitGroup
	for i := range same {
		callers.Go(func() {
			if i%2 == 1 {
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
		t.Fatalf("%d operations, want 1", len(ops))
	}
	id, first := ops[0].at("id"), 0
	for _, r := range same {
		w.want(http.StatusAccepted, r)
		if r.at("id") != id {
			t.Errorf("a caller got %s, want %s", r.at("id"), id)
		}
		if r.header.Get("Idempotency-Replayed") != "true" {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers were not marked as replays, want 1", first)
	}
	for _, r := range changed {
		if w.want(http.StatusUnprocessableEntity, r); r.at("operation_id") != id {
			t.Errorf("the mismatch names %q, want %s", r.at("operation_id"), id)
		}
	}
	open()
	w.state(id, "running")
	task := w.operation(id).at("task_id")
	for _, r := range foreign {
		w.want(http.StatusConflict, r)
		all := r.body
		for name, values := range r.header {
			all += name + ": " + strings.Join(values, " ")
		}
		if strings.Contains(all, "op_") || strings.Contains(all, id[3:]) || strings.Contains(all, task) {
			t.Errorf("a sibling key is told: %s", all)
		}
	}
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates reached the provider, want 1", n)
	}
	w.money("100", "1")
	w.line(id, "money reserve", 1)
	if r := submit(job("a red kite")); r.at("id") != id || r.at("state") != "running" {
		t.Errorf("a later repeat got %s %s", r.at("id"), r.at("state"))
	}
	if found := w.get("/v1/operations?idempotency_key=k-burst-1").items(); len(found) != 1 || found[0].at("id") != id {
		t.Errorf("the key finds %v", found)
	}
}

// The process ends without a word while the create is on the wire (O-004,
// O-012, 1-product B1, B2): the next one knows that it was.
func TestO004KilledDuringCreate(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[string]struct {
		state   string
		creates int
	}{
		"media-v2":       {"running", 2},     // repeated under the same key: still one task
		"body-timestamp": {"unconfirmed", 1}, // never sent again
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dialect, func(c *config.Config, _ *config.Upstream) { c.Drain = 300 * time.Millisecond })
			w.endpoint()
			reached, open := w.provider.gate()
			id := w.submit("k-9")
			<-reached
			w.kill()
			open()
			w.provider.script(nil, nil)
			w.start()
			var callers sync.WaitGroup
			for range 30 {
				callers.Go(func() {
					if got := w.submit("k-9"); got != id {
						t.Errorf("a repeat got %s, want %s", got, id)
					}
				})
			}
			callers.Wait()
			w.state(id, want.state)
			created := w.provider.created()
			if len(created) != want.creates {
				t.Errorf("%d creates reached the provider, want %d", len(created), want.creates)
			}
			for _, c := range created {
				if c.task != "task-1" || c.key != created[0].key {
					t.Errorf("create of %s under %q, want task-1 under %q", c.task, c.key, created[0].key)
				}
			}
			w.told(id, "operation."+want.state)
			w.money("100", "1")
			w.line(id, "money reserve", 1)
			// The token in the address finds the operation, whatever is known.
			w.want(http.StatusAccepted, w.callback(created[0].callback, event{id: "e1", said: said{task: "task-1", state: "succeeded", version: 2, settled: true, cost: "1", result: `{}`}}))
			w.now(id, "succeeded")
			w.money("99", "0")
		})
	}
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

// What could not be committed leaves nothing: the same key works afterwards
// (1-product A6, O-005).
func TestO005StoreUnavailableAtSubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.disk.state.Store(full)
	r := w.want(http.StatusServiceUnavailable, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k-11"))
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.disk.state.Store(works)
	if n := len(w.get("/v1/operations").items()); n != 0 {
		t.Errorf("%d operations after the refusal", n)
	}
	w.money("100", "0")
	r = w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k-11"))
	if r.header.Get("Idempotency-Replayed") != "" {
		t.Error("the first success is marked as a replay")
	}
	w.state(r.at("id"), "running")
	w.money("100", "1")
}

// A repeat with other metadata is a replay: the first values stay (7-rules R2,
// O-006).
func TestO006OtherMetadataIsAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	body := job("x")
	first := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", "k-13"))
	body["metadata"] = map[string]string{"attempt": "2"}
	body["expected_cost"] = map[string]string{"amount": "50", "currency": "USD"}
	second := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", `"k-13"`))
	if second.at("id") != first.at("id") || second.header.Get("Idempotency-Replayed") != "true" || second.at("metadata.attempt") != "" {
		t.Errorf("the repeat got %s", second.body)
	}
	w.state(first.at("id"), "running")
	w.money("100", "1")
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
}

// One tenant's keys are nobody else's business (O-003).
func TestO003KeyOfAnotherTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	r := w.call(http.MethodPost, "/v1/keys", `{"tenant":"beta","scopes":["submit","read"]}`)
	beta := "Bearer " + w.want(http.StatusCreated, r).at("secret")
	ours := w.submit("2024-invoice-1")
	body := job("a red kite")
	delete(body, "expected_cost") // beta has no account
	theirs := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", "2024-invoice-1", "Authorization", beta))
	if theirs.at("id") == ours || theirs.header.Get("Idempotency-Replayed") != "" {
		t.Error("the other tenant got our operation")
	}
	if got := w.submit("2024-invoice-1"); got != ours {
		t.Errorf("our repeat got %s, want %s", got, ours)
	}
	w.want(http.StatusNotFound, w.call(http.MethodGet, "/v1/operations/"+ours, nil, "Authorization", beta))
}
