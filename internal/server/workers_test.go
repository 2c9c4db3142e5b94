package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// handed adds an upstream of own workers, "hands", to a world.
func handed(change ...func(*config.Upstream)) settings {
	return func(c *config.Config, _ *config.Upstream) {
		u := config.DefaultUpstream()
		u.Preset, u.Deadline = config.PresetWorker, time.Hour
		for _, f := range change {
			f(&u)
		}
		c.Upstreams["hands"] = u
	}
}

// handWork is the body of a submission for own workers that costs 1 USD.
func handWork(prompt string) map[string]any {
	body := job(prompt)
	body["upstream"] = "hands"
	return body
}

func (w *world) forHands(key string, headers ...string) string {
	w.Helper()
	return w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", handWork("canary-prompt"), append(headers, "Idempotency-Key", key)...)).at("id")
}

// lease leases one operation and gives it with its lease's path.
func (w *world) lease(wait int) (path string, r reply) {
	w.Helper()
	r = w.want(http.StatusOK, w.call(http.MethodPost, "/v1/work/lease", map[string]any{"wait": wait}))
	return "/v1/work/" + r.at("lease"), r
}

// says has a worker say something; a refusal's reason is what comes back.
func (w *world) says(path, word string, body any) (reason string, r reply) {
	w.Helper()
	r = w.call(http.MethodPost, path+"/"+word, body)
	if r.status != http.StatusOK {
		return r.at("reason"), r
	}
	return "", r
}

func (w *world) expectSays(want, path, word string, body any) reply {
	w.Helper()
	got, r := w.says(path, word, body)
	if got != want {
		w.Errorf("%s: %q, want %q: %s", word, got, want, r.body)
	}
	return r
}

var (
	result  = map[string]any{"result": map[string]any{"ok": true}}
	failure = map[string]any{"code": "generation_failed", "message": "no", "retryable": true}
)

// The whole way over HTTP: submit, lease, heartbeat, progress, complete; the
// tenant is told, and its money is settled.
func TestOwnWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", handed())
	w.endpoint("types", []string{"operation.running", "operation.progress", "operation.succeeded"})
	answers := w.in(http.MethodPost, "/v1/work/lease", map[string]any{"wait": 30, "capabilities": []string{"other", "hands/m"}})
	w.eventually("nobody waits", func() bool { return w.metric("pawl_worker_waiters") == "1" })
	op := w.forHands("k")
	r := w.want(http.StatusOK, <-answers)
	if r.at("operation.id") != op || r.at("operation.input.prompt") != "canary-prompt" || r.at("attempt") != "1" {
		t.Errorf("leased %s", r.body)
	}
	path := "/v1/work/" + r.at("lease")
	w.expectSays("", path, "heartbeat", nil)
	time.Sleep(1100 * time.Millisecond) // Progress is told at most once a second.
	w.expectSays("", path, "progress", map[string]any{"percent": 50})
	w.expectSays("", path, "complete", result)
	w.told(op, "operation.running", "operation.progress", "operation.succeeded")
	w.money("99", "0")
	for outcome, want := range map[string]string{"leased": "1", "completed": "1", "failed": "0", "expired": "0"} {
		if got := w.metric(fmt.Sprintf("pawl_worker_leases_total{outcome=%q,upstream=\"hands\"}", outcome)); got != want {
			t.Errorf("%s leases %s, want %s", got, outcome, want)
		}
	}
	// Nobody sends events to workers, or hears of them as a source.
	if r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/hands", []byte("{}"), nil); r.status != http.StatusNotFound {
		t.Errorf("a callback for own workers: %d", r.status)
	}
	for _, s := range w.get("/v1/sources").items() {
		if s.at("name") == "hands" {
			t.Error("own workers are listed as a source")
		}
	}
	if n := len(w.provider.created()); n != 0 {
		t.Errorf("%d creates went out", n)
	}
	if log := w.log.String(); strings.Contains(log, "canary") || strings.Contains(log, r.at("lease")) {
		t.Error("the log holds an input or a lease")
	}
}

// A hundred workers race for a hundred operations: each operation is leased
// once, and each worker gets one.
func TestHundredWorkersRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", handed())
	const n = 100
	var wait sync.WaitGroup
	var mu sync.Mutex
	leased := map[string]int{}
	for i := range n {
		wait.Go(func() {
			r := w.call(http.MethodPost, "/v1/work/lease", map[string]any{"wait": 30})
			if r.status != http.StatusOK || r.at("attempt") != "1" {
				t.Errorf("worker %d: %d %s", i, r.status, r.body)
				return
			}
			mu.Lock()
			leased[r.at("operation.id")]++
			mu.Unlock()
			w.expectSays("", "/v1/work/"+r.at("lease"), "complete", result)
		})
		if i%2 == 0 { // Some come before the work, some after it.
			wait.Go(func() {
				for j := range 2 {
					w.forHands(fmt.Sprint("k", i, "-", j))
				}
			})
		}
	}
	wait.Wait()
	for op, times := range leased {
		if times != 1 {
			t.Errorf("%s was leased %d times", op, times)
		}
	}
	if len(leased) != n {
		t.Errorf("%d operations were leased, want %d", len(leased), n)
	}
	w.money("0", "0")
}

// A worker that dies is found out by its silence: another gets the operation,
// one outcome counts, and the first, which was only slow, is told why.
func TestDeadWorker(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.client.Timeout = 5 * time.Minute
		op := w.forHands("k")
		first, a := w.lease(0)
		answers := w.in(http.MethodPost, "/v1/work/lease", map[string]any{"wait": 60})
		w.pass(40 * time.Second)
		w.expectSays("", first, "heartbeat", nil)
		if r := w.want(http.StatusNoContent, <-answers); r.took < time.Minute || r.took > time.Minute+time.Second {
			w.Errorf("waited %s in vain, want a minute", r.took)
		}
		b := w.want(http.StatusOK, <-w.in(http.MethodPost, "/v1/work/lease", map[string]any{"wait": 60}))
		// The heartbeat came 40 s after the lease, and lasts 60 s.
		if b.took < 39*time.Second || b.took > 42*time.Second || b.at("attempt") != "2" || b.at("operation.id") != op || b.at("lease") == a.at("lease") {
			w.Errorf("after %s: %s", b.took, b.body)
		}
		for word, body := range map[string]any{"heartbeat": nil, "progress": map[string]any{"percent": 1}, "complete": result, "fail": failure} {
			if r := w.expectSays("lease_lost", first, word, body); r.status != http.StatusConflict || r.at("operation_id") != op {
				w.Errorf("%s: %d %s", word, r.status, r.body)
			}
		}
		second := "/v1/work/" + b.at("lease")
		w.expectSays("", second, "complete", result)
		w.expectSays("lease_lost", first, "complete", result)
		w.expectSays("", second, "complete", result)
		w.now(op, "succeeded")
		w.money("99", "0")
		if got := w.metric(`pawl_worker_leases_total{outcome="expired",upstream="hands"}`); got != "1" {
			w.Errorf("%s leases ran out, want 1", got)
		}
		w.line(op, "work lease_expired", 1)
	}, handed())
}

// Nobody ever comes back (O-107): after the last attempt it fails as timeout, and costs
// nothing. What nobody takes at all expires at its deadline.
func TestO107WorkersThatNeverAnswer(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		op := w.forHands("k")
		for n := range 3 {
			if _, r := w.lease(0); r.at("attempt") != fmt.Sprint(n+1) {
				w.Errorf("attempt %s, want %d", r.at("attempt"), n+1)
			}
			w.pass(61 * time.Second)
		}
		if r := w.now(op, "failed"); r.at("error.code") != "timeout" || r.at("attempts") != "3" {
			w.Errorf("it ended as %s", r.body)
		}
		w.want(http.StatusNoContent, w.call(http.MethodPost, "/v1/work/lease", nil))
		unwanted := w.forHands("unwanted")
		w.pass(time.Hour - time.Second)
		w.now(unwanted, "pending")
		w.pass(3 * time.Second)
		w.now(unwanted, "expired")
		w.money("100", "0")
	}, handed(func(u *config.Upstream) { u.Attempts = 3 }))
}

// A heartbeat past the deadline is told to stop; the worker has the length of one
// lease to hand in what it has.
func TestWorkPastTheDeadline(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		late, lost := w.forHands("late"), w.forHands("lost")
		first, _ := w.lease(0)
		second, _ := w.lease(0)
		for range 119 {
			w.pass(30 * time.Second)
			for _, path := range []string{first, second} {
				if r := w.expectSays("", path, "heartbeat", nil); r.at("cancel_requested") != "false" {
					w.Fatalf("told to stop before the deadline: %s", r.body)
				}
			}
		}
		w.pass(31 * time.Second)
		for _, path := range []string{first, second} {
			if r := w.expectSays("", path, "heartbeat", nil); r.at("cancel_requested") != "true" {
				w.Errorf("not told to stop: %s", r.body)
			}
		}
		w.pass(30 * time.Second)
		w.expectSays("", first, "complete", result)
		w.now(late, "succeeded")
		w.now(lost, "running")
		w.expectSays("", second, "heartbeat", nil) // That does not extend it any more.
		w.pass(35 * time.Second)
		w.now(lost, "expired")
		w.expectSays("finished", second, "complete", result)
		w.money("99", "0")
	}, handed())
}

// A worker outlives the node: its lease goes on over a restart and a crash, and a
// node that was away for longer than a lease hears the worker first.
func TestWorkersOverARestart(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		op := w.forHands("k")
		path, _ := w.lease(0)
		w.pass(10 * time.Second)
		w.drain()
		w.start()
		w.expectSays("", path, "heartbeat", nil)
		w.pass(10 * time.Second)
		w.kill()
		w.start()
		w.want(http.StatusNoContent, w.call(http.MethodPost, "/v1/work/lease", nil))
		w.expectSays("", path, "heartbeat", nil)
		w.kill()
		w.pass(2 * time.Hour) // Lease and deadline are over.
		w.start()
		w.pass(30 * time.Second)
		w.now(op, "running")
		w.want(http.StatusNoContent, w.call(http.MethodPost, "/v1/work/lease", nil))
		w.expectSays("", path, "complete", result)
		w.now(op, "succeeded")
		w.money("99", "0")
		w.line(op, "create leased", 1)
	}, handed())
}

// Cancels (1-product D3): at once where no worker has it; else the worker is told
// and confirms, by its word or by its silence.
func TestCancelOfOwnWork(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		cancel := func(op string) {
			w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations/"+op+"/cancel", nil))
		}
		waiting := w.forHands("waiting")
		cancel(waiting)
		w.now(waiting, "canceled")
		w.want(http.StatusNoContent, w.call(http.MethodPost, "/v1/work/lease", nil))
		told := func(key string) (string, string) {
			op := w.forHands(key)
			path, _ := w.lease(0)
			cancel(op)
			w.now(op, "running")
			if r := w.expectSays("", path, "heartbeat", nil); r.at("cancel_requested") != "true" {
				w.Errorf("not told: %s", r.body)
			}
			return op, path
		}
		byFail, path := told("fail")
		w.expectSays("", path, "fail", failure)
		w.now(byFail, "canceled")
		byWord, path := told("word")
		w.expectSays("", path, "complete", map[string]any{"canceled": true, "cost": map[string]any{"amount": "0.25", "currency": "USD"}})
		w.now(byWord, "canceled")
		won, path := told("won")
		w.expectSays("", path, "complete", result)
		w.now(won, "succeeded")
		bySilence, path := told("silence")
		w.pass(61 * time.Second)
		if r := w.now(bySilence, "canceled"); r.at("cancel.confirmed") != "true" {
			w.Errorf("not confirmed: %s", r.body)
		}
		w.expectSays("finished", path, "heartbeat", nil)
		w.money("98.75", "0")
	}, handed())
}

// A worker that goes away while it waits takes nothing with it.
func TestWorkerGoesAwayWhileItWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", handed())
	body, err := json.Marshal(map[string]any{"wait": 60})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.node.APIURL()+"/v1/work/lease", strings.NewReader(string(body)))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+adminKey)
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		}()
		w.eventually("nobody waits", func() bool { return w.node.desk.Waiters() == 1 })
		leave()
		<-gone
		w.eventually("it waits still", func() bool { return w.node.desk.Waiters() == 0 })
		op := w.forHands(fmt.Sprint("k", n))
		path, r := w.lease(10)
		if r.at("operation.id") != op || r.at("attempt") != "1" {
			t.Errorf("got %s of attempt %s, want %s", r.at("operation.id"), r.at("attempt"), op)
		}
		w.expectSays("", path, "complete", result)
	}
}

// Tenants take turns, however much one of them has waiting; a key of one gets
// only its own (1-product B5).
func TestWorkIsFair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", handed(), func(c *config.Config, _ *config.Upstream) { c.Tenants["small"] = config.Tenant{} })
	free := func(key, tenant string) {
		body := map[string]any{"upstream": "hands", "model": "m", "input": map[string]any{}}
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations?tenant="+tenant, body, "Idempotency-Key", key))
	}
	for n := range 20 {
		free(fmt.Sprint("big", n), "default")
	}
	for n := range 3 {
		free(fmt.Sprint("small", n), "small")
	}
	made := w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/keys", map[string]any{"tenant": "small", "name": "worker", "scopes": []string{"operate"}}))
	owner := func(op string) string {
		r := w.call(http.MethodGet, "/v1/operations/"+op+"?tenant=small", nil)
		if r.status == http.StatusOK {
			return "small"
		}
		return "default"
	}
	var turns []string
	for range 5 {
		_, r := w.lease(0)
		turns = append(turns, owner(r.at("operation.id")))
	}
	small := 0
	for _, name := range turns {
		if name == "small" {
			small++
		}
	}
	if small < 2 || small > 3 || !slices.Contains(turns[:2], "small") {
		t.Errorf("turns %v, want the two in turns", turns)
	}
	for n := range 4 {
		r := w.call(http.MethodPost, "/v1/work/lease", nil, "Authorization", "Bearer "+made.at("secret"))
		if (r.status == http.StatusOK) != (n < 3-small) {
			t.Errorf("lease %d of the small tenant: %d %s", n, r.status, r.body)
		}
		if r.status == http.StatusOK && owner(r.at("operation.id")) != "small" {
			t.Errorf("it got another tenant's: %s", r.body)
		}
	}
}

// A paused upstream hands nothing out, and who waits gets it once it is resumed;
// a node that stops lets nobody wait.
func TestPausedAndStopped(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/hands/pause", nil))
		op := w.forHands("k")
		w.want(http.StatusNoContent, w.call(http.MethodPost, "/v1/work/lease", nil))
		answers := w.in(http.MethodPost, "/v1/work/lease", map[string]any{"wait": 50})
		w.pass(10 * time.Second)
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/hands/resume", nil))
		if r := w.want(http.StatusOK, <-answers); r.at("operation.id") != op || r.took > 11*time.Second {
			w.Errorf("after %s: %s", r.took, r.body)
		}
		answers = w.in(http.MethodPost, "/v1/work/lease", map[string]any{"wait": 50})
		w.pass(5 * time.Second)
		began := time.Now()
		w.drain()
		if took := time.Since(began); took > time.Second {
			w.Errorf("stopping took %s", took)
		}
		w.want(http.StatusNoContent, <-answers)
	}, handed())
}
