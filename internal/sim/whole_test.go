package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/webhook"
)

// careful is the least client that obeys 1-product B2: it repeats a create only
// where that is safe, and otherwise learns its task by callback or lookup.
type careful struct {
	server *Server
	base   string
	hooks  string
	client *http.Client

	mu    sync.Mutex
	tasks map[int]string // learned from callbacks
}

func (c *careful) do(method, path, body, key string) (int, map[string]any) {
	r, err := http.NewRequest(method, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	r.GetBody = nil // the transport must not repeat a create by itself
	r.Header.Set("Authorization", "Bearer "+c.server.Key())
	r.Header.Set("Idempotency-Key", key)
	answer, err := c.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	var out map[string]any
	_ = json.NewDecoder(answer.Body).Decode(&out)
	return answer.StatusCode, out
}

// create returns the task that the answer named, and whether the create was
// refused for good.
func (c *careful) create(s Script) (task string, refused bool) {
	path := map[Dialect]string{Native: "/generate", MediaV2: "/api/v1/jobs/createTask", BodyTimestamp: "/tasks"}[s.Dialect]
	url := fmt.Sprintf("%s/%s/%d", c.hooks, s.Dialect, s.N)
	body := fmt.Sprintf(`{"model":"m","input":{"n":%d},"client_ref":"ref-%d","callback_url":%q,"callBackUrl":%q}`, s.N, s.N, url, url)
	for range 5 {
		status, out := c.do("POST", path, body, fmt.Sprint("key-", s.N))
		switch {
		case status/100 == 2:
			return taskOf(out), false
		case status == 400:
			return "", true
		case status != 429 && !s.Dialect.Idempotent():
			return "", false
		}
	}
	return "", false
}

// taskOf reads the task id of any dialect's answer or event.
func taskOf(m map[string]any) string {
	if data, ok := m["data"].(map[string]any); ok {
		m = data
	}
	for _, field := range []string{"task", "taskId", "task_id"} {
		if id, ok := m[field].(string); ok {
			return id
		}
	}
	return ""
}

// ServeHTTP takes callbacks on /dialect/n, like a URL with a token.
func (c *careful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n int
	dialect, number, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	_, _ = fmt.Sscan(number, &n)
	body, _ := io.ReadAll(r.Body)
	d := Dialect(dialect)
	scheme, _ := webhook.Lookup(d.Scheme())
	key, err := scheme.ParseKey(c.server.Secret(d))
	if err == nil {
		_, err = scheme.Verify(webhook.Request{Header: r.Header, Body: body}, time.Now(), key)
	}
	var event map[string]any
	if err != nil || json.Unmarshal(body, &event) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.tasks[n]; known != "" && known != taskOf(event) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.tasks[n] = taskOf(event)
}

func (c *careful) learned(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks[n]
}

// outcome reads until a task has ended and settled.
func (c *careful) outcome(ctx context.Context, s Script, task string) (string, string) {
	path := map[Dialect]string{
		Native: "/status/", MediaV2: "/api/v1/jobs/recordInfo?taskId=", BodyTimestamp: "/tasks/",
	}[s.Dialect] + task
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		status, out := c.do("GET", path, "", "")
		if data, ok := out["data"].(map[string]any); ok {
			out = data
		}
		if status == 200 && taskOf(out) == task {
			state, _ := out["state"].(string)
			if s.Dialect == BodyTimestamp {
				state, _ = out["status"].(string)
			}
			done := state != "queued" && state != "processing" && state != "pending" && state != "running"
			if done && out["settled"] != false {
				return state, fmt.Sprint(out["cost"])
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ""
		}
	}
}

// TestCarefulClientLearnsWhatIsLearnable plays a whole plan and compares what
// such a client ends with and what the scripts promise.
func TestCarefulClientLearnsWhatIsLearnable(t *testing.T) {
	p := NewPlan(11, 200, Options{NoLookup: true})
	s := newTestServer(t, p, Config{Speed: 20, Backoff: 5 * time.Millisecond, Hold: 20 * time.Millisecond})
	base, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	c := &careful{
		server: s, base: base, tasks: map[int]string{},
		client: &http.Client{Timeout: 30 * time.Second},
	}
	hooks := httptest.NewServer(c)
	t.Cleanup(hooks.Close)
	c.hooks = hooks.URL
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()

	created := make([]string, p.Len())
	refused := make([]bool, p.Len())
	var group errgroup.Group
	group.SetLimit(20)
	for n := range p.Len() {
		group.Go(func() error {
			script, _ := p.Script(n)
			created[n], refused[n] = c.create(script)
			if created[n] != "" {
				c.mu.Lock()
				c.tasks[n] = created[n]
				c.mu.Unlock()
				c.outcome(ctx, script, created[n])
			}
			return nil
		})
	}
	_ = group.Wait()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for n := range p.Len() {
		script, _ := p.Script(n)
		task := c.learned(n)
		if got := task != "" || refused[n]; got != script.Learnable() {
			t.Errorf("operation %d (%s, %s): learned %t, learnable %t", n, script.Dialect, script.Create, got, script.Learnable())
			continue
		}
		if task == "" {
			continue
		}
		state, cost := c.outcome(ctx, script, task)
		wantState, wantCost := script.Expected()
		want(t, fmt.Sprint("state of operation ", n), state, wantState)
		if script.Dialect == Native {
			want(t, fmt.Sprint("cost of operation ", n), cost, wantCost)
		}
	}
	checkBooks(t, p, s.Snapshot())
}

// checkBooks compares the server's own books with the scripts.
func checkBooks(t *testing.T, p Plan, b Books) {
	t.Helper()
	want(t, "hash", b.Hash, p.Hash())
	want(t, "operations", len(b.Operations), p.Len())
	for _, o := range b.Operations {
		script, _ := p.Script(o.N)
		made := 1
		if script.Create == CreateRefused || script.Create == CreateFailedBefore && !script.Dialect.Idempotent() {
			made = 0
		}
		want(t, fmt.Sprint("tasks of operation ", o.N), len(o.Tasks), made)
	}
}
