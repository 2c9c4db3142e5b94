package server

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// A key with another body is refused and names what it stands for; the first
// body goes on working (1-product A3, O-002).
func TestO002KeyReusedWithAnotherBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	submit := func(prompt string) reply {
		return w.call(http.MethodPost, "/v1/operations", job(prompt), "Idempotency-Key", "k-7")
	}
	first := w.want(http.StatusAccepted, submit("red kite")).at("id")
	w.state(first, "running")
	for range 2 {
		if r := w.want(http.StatusUnprocessableEntity, submit("blue kite")); r.at("operation_id") != first || r.at("reason") == "" {
			t.Errorf("the mismatch is answered %s", r.body)
		}
		if r := w.want(http.StatusAccepted, submit("red kite")); r.at("id") != first || r.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the first body got %s, want %s again", r.at("id"), first)
		}
	}
	if n := len(w.get("/v1/operations").items()); n != 1 || len(w.provider.created()) != 1 {
		t.Errorf("%d operations, %d creates, want one of each", n, len(w.provider.created()))
	}
	w.money("100", "1")
}

// One tenant's keys are nobody else's business: what another tenant is answered
// looks as if the key had never been used (O-003).
func TestO003KeyOfAnotherTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	tenant := func(name string) string {
		r := w.call(http.MethodPost, "/v1/keys", map[string]any{"tenant": name, "scopes": []string{"submit", "read"}})
		return "Bearer " + w.want(http.StatusCreated, r).at("secret")
	}
	submit := func(key, prompt, authorization string) reply {
		body := job(prompt)
		delete(body, "expected_cost") // the other tenants have no account
		return w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", key, "Authorization", authorization)
	}
	const shared = "2024-invoice-1"
	ours := w.want(http.StatusAccepted, submit(shared, "a red kite", "Bearer "+adminKey)).at("id")
	seen := map[string]bool{ours: true}
	for name, prompt := range map[string]string{"beta": "a blue kite", "gamma": "a red kite"} {
		theirs := tenant(name)
		unused, used := w.want(http.StatusAccepted, submit("unused", prompt, theirs)), w.want(http.StatusAccepted, submit(shared, prompt, theirs))
		if seen[used.at("id")] || used.header.Get("Idempotency-Replayed") != "" || used.at("state") != "pending" {
			t.Errorf("%s got %s", name, used.everything())
		}
		seen[used.at("id")] = true
		members := func(r reply) string { return fmt.Sprint(slices.Sorted(maps.Keys(r.fields))) }
		headers := func(r reply) string { return fmt.Sprint(slices.Sorted(maps.Keys(r.header))) }
		if members(used) != members(unused) || headers(used) != headers(unused) {
			t.Errorf("%s can tell the key from an unused one:\n%s\n%s", name, used.everything(), unused.everything())
		}
		if all := used.everything(); strings.Contains(all, ours[3:]) {
			t.Errorf("%s is told of our operation: %s", name, all)
		}
		// Its own key answers for its own operation.
		if r := w.want(http.StatusUnprocessableEntity, submit(shared, "a green kite", theirs)); r.at("operation_id") != used.at("id") {
			t.Errorf("%s reused the key and was told of %s", name, r.at("operation_id"))
		}
		w.want(http.StatusNotFound, w.call(http.MethodGet, "/v1/operations/"+ours, nil, "Authorization", theirs))
		found := w.call(http.MethodGet, "/v1/operations?idempotency_key="+shared, nil, "Authorization", theirs).items()
		if len(found) != 1 || found[0].at("id") != used.at("id") {
			t.Errorf("%s finds %d operations by the key", name, len(found))
		}
	}
	if r := w.want(http.StatusAccepted, submit(shared, "a red kite", "Bearer "+adminKey)); r.at("id") != ours {
		t.Errorf("our repeat got %s, want %s", r.at("id"), ours)
	}
}

// briefly lets a node be killed without waiting for its drain.
func briefly(c *config.Config, _ *config.Upstream) { c.Drain = 300 * time.Millisecond }

// killBeforeCall submits a job and ends the node between the commit of its claim
// and the first byte to the provider.
func (w *world) killBeforeCall(key string) (op string) {
	w.Helper()
	reached := make(chan struct{})
	var once sync.Once
	provider := strings.TrimPrefix(w.provider.url, "http://")
	dialling := func(f func(context.Context, string)) {
		w.virtual.mu.Lock()
		defer w.virtual.mu.Unlock()
		w.virtual.dialling = f
	}
	dialling(func(ctx context.Context, address string) {
		if address == provider {
			once.Do(func() { close(reached) })
			<-ctx.Done()
		}
	})
	op = w.submit(key)
	<-reached
	w.kill()
	dialling(nil)
	if n := len(w.provider.created()); n != 0 {
		w.Fatalf("%d creates before the kill, want none", n)
	}
	return op
}

// The process ends between the claim and the call: the key is served at once,
// and what may have happened is known within a lease, not after the key's 24 h
// (1-product B1; O-004).
func TestO004KilledBeforeTheCall(t *testing.T) {
	for dialect, want := range map[string]struct {
		state   string
		creates int
	}{
		"media-v2":       {"running", 1},     // sent now, under its key
		"body-timestamp": {"unconfirmed", 0}, // nobody can know that nothing was sent
	} {
		t.Run(dialect, func(t *testing.T) {
			inVirtualTime(t, dialect, func(w *world) {
				op := w.killBeforeCall("k-9")
				w.start()
				for i := range 6 {
					r := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k-9"))
					if r.at("id") != op || r.header.Get("Idempotency-Replayed") != "true" {
						w.Errorf("repeat %d got %s, want %s", i, r.at("id"), op)
					}
					if i > 1 && r.at("state") != want.state { // 20 s: the lease of a call of 5 s
						w.Errorf("repeat %d says %s, want %s", i, r.at("state"), want.state)
					}
					w.pass(10 * time.Second)
				}
				if n := len(w.provider.created()); n != want.creates {
					w.Errorf("%d creates, want %d", n, want.creates)
				}
				w.money("100", "1")
				w.line(op, "money reserve", 1)
			}, briefly)
		})
	}
}

// What could not be committed leaves nothing: the same key works afterwards, and
// stands for an operation, never for an answer (1-product A6, O-005).
func TestO005StoreUnavailableAtSubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	submit := func(key string) reply {
		return w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", key)
	}
	w.disk.state.Store(full)
	if r := w.want(http.StatusServiceUnavailable, submit("k-11")); r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.disk.state.Store(works)
	if n := len(w.get("/v1/operations").items()); n != 0 {
		t.Errorf("%d operations after the refusal", n)
	}
	w.money("100", "0")
	r := w.want(http.StatusAccepted, submit("k-11"))
	if r.header.Get("Idempotency-Replayed") != "" {
		t.Error("the first success is marked as a replay")
	}
	w.state(r.at("id"), "running")
	w.money("100", "1")
	w.finish(r.at("id"), w.provider.created()[0])
	if again := w.want(http.StatusOK, submit("k-11")); again.at("id") != r.at("id") || again.at("state") != "succeeded" {
		t.Errorf("after the end the key gives %s %s", again.at("id"), again.at("state"))
	}
	// The row is there although the commit failed: it is found, not made again.
	w.disk.state.Store(hidden)
	kept := w.want(http.StatusAccepted, submit("k-12")).at("id")
	w.disk.state.Store(works)
	if again := w.want(http.StatusAccepted, submit("k-12")); again.at("id") != kept || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("after a commit in doubt the key gives %s, want %s", again.at("id"), kept)
	}
	if n := len(w.get("/v1/operations").items()); n != 2 {
		t.Errorf("%d operations, want 2", n)
	}
}

// The reply is lost and the repeat has other metadata: a replay, in which the
// first values stay (7-rules R2, O-006).
func TestO006OtherMetadataIsAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	body := `{"upstream":"up","model":"m","input":{"prompt":"x"},"expected_cost":{"amount":"1","currency":"USD"}`
	lost, err := net.Dial("tcp", strings.TrimPrefix(w.node.APIURL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(lost, "POST /v1/operations HTTP/1.1\r\nHost: pawl\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: k-13\r\nContent-Length: %d\r\n\r\n%s}", adminKey, len(body)+1, body)
	var found []reply
	w.eventually("the submission is not there", func() bool {
		found = w.get("/v1/operations?idempotency_key=k-13").items()
		return len(found) == 1
	})
	_ = lost.Close() // nobody read the answer
	op := found[0].at("id")
	w.state(op, "running")
	for _, more := range []string{`"metadata":{"attempt":2}`, `"metadata":{"attempt":3},"expected_cost":{"amount":"50","currency":"USD"}`, `"deadline":"2099-01-01T00:00:00Z"`} {
		text := strings.Replace(body, `,"expected_cost":{"amount":"1","currency":"USD"}`, "", 1) + "," + more + "}"
		r := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", text, "Idempotency-Key", `"k-13"`))
		if r.at("id") != op || r.header.Get("Idempotency-Replayed") != "true" || r.at("state") != "running" || r.at("metadata.attempt") != "" {
			t.Errorf("the repeat with %s got %s", more, r.body)
		}
	}
	w.money("100", "1")
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
}

// A client gives up after 5 s and tries again while the submit takes 10 s: the
// later calls get what the first one has begun (O-009).
func TestO009ClientRetriesASlowSubmit(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		client := &http.Client{Transport: w.client.Transport, Timeout: 5 * time.Second}
		patient := w.client
		began := time.Now()
		w.disk.late.Store(int64(10 * time.Second)) // of the first batch alone: the next ones begin after it
		go func() {
			time.Sleep(9 * time.Second)
			w.disk.late.Store(0)
		}()
		var got []string
		for try := 0; try < 4 && len(got) == 0; try++ {
			w.client = client
			r, err := w.try(http.MethodPost, w.node.APIURL()+"/v1/operations", []byte(`{"upstream":"up","model":"m","input":{},"expected_cost":{"amount":"1","currency":"USD"}}`),
				http.Header{"Authorization": {"Bearer " + adminKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k-hop"}})
			w.client = patient
			if err == nil {
				got = append(got, w.want(http.StatusAccepted, r).at("id"), fmt.Sprint(try), r.header.Get("Idempotency-Replayed"))
			}
		}
		if took := time.Since(began); len(got) != 3 || got[1] == "0" || got[2] != "true" || took > 15*time.Second {
			w.Errorf("after %s the client has %q", took, got)
		}
		w.pass(5 * time.Second)
		ops := w.get("/v1/operations").items()
		if len(ops) != 1 || len(got) > 0 && ops[0].at("id") != got[0] || len(w.provider.created()) != 1 {
			w.Errorf("%d operations, %d creates, want one of each", len(ops), len(w.provider.created()))
		}
		w.money("100", "1")
	})
}

// The token of the callback's address is durable before the call, so that it
// finds its operation whenever the process ends, and teaches the task (1-product
// B1, B3; O-012).
func TestO012TokenIsWrittenBeforeTheCall(t *testing.T) {
	for name, c := range map[string]struct {
		dialect, state string
		before         bool
		creates        int
	}{
		"before the call, idempotent": {"media-v2", "running", true, 1},
		"before the call":             {"body-timestamp", "unconfirmed", true, 0},
		"after the call, idempotent":  {"media-v2", "running", false, 2}, // repeated under the same key: still one task
		"after the call":              {"body-timestamp", "unconfirmed", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, c.dialect, func(w *world) {
				w.endpoint()
				op := ""
				if c.before {
					op = w.killBeforeCall("k-12")
				} else {
					op = w.killAfterCall("k-12")
				}
				w.start()
				w.state(op, c.state)
				w.told(op, "operation."+c.state)
				w.money("100", "1")
				w.line(op, "money reserve", 1)
				created := w.provider.created()
				if len(created) != c.creates {
					w.Fatalf("%d creates reached the provider, want %d", len(created), c.creates)
				}
				for _, call := range created {
					if call.task != "task-1" || call.key != created[0].key || path.Base(call.callback) != path.Base(created[0].callback) {
						w.Errorf("create of %s under %q, want task-1 under %q", call.task, call.key, created[0].key)
					}
				}
				if c.creates == 0 { // nobody was ever called: a person says so
					w.want(http.StatusOK, w.resolve(op, "failed", ""))
					w.now(op, "failed")
					w.money("100", "0")
					return
				}
				end := said{task: "task-1", state: "succeeded", version: 2, settled: true, cost: "1", result: `{}`}
				w.want(http.StatusAccepted, w.callback(created[0].callback, event{id: "e1", said: end}))
				if r := w.now(op, "succeeded"); r.at("task_id") != "task-1" {
					w.Errorf("task %q", r.at("task_id"))
				}
				w.money("99", "0")
			}, briefly)
		})
	}
}

// killAfterCall submits a job and ends the node when the provider has the
// create, before its answer.
func (w *world) killAfterCall(key string) (op string) {
	w.Helper()
	reached, open := w.provider.gate()
	op = w.submit(key)
	<-reached
	w.kill()
	open()
	w.provider.script(nil, nil)
	return op
}
