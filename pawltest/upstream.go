package pawltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/webhook"
)

// providerKey is what the node shows the upstream.
const providerKey = "pawltest-provider-key"

// Upstream is a provider that does what the test says. It is safe for concurrent
// use.
type Upstream struct {
	client *http.Client
	scheme webhook.Scheme
	key    webhook.Key
	mux    *http.ServeMux
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	choose func(model string, input json.RawMessage) Script
	tasks  []*task
}

// task is one task of the upstream's; the upstream's mutex guards it.
type task struct {
	Task
	script   Script
	ref      string
	callback string
	finish   chan struct{}
}

func newUpstream(secret string, client *http.Client) (*Upstream, error) {
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		return nil, err
	}
	u := &Upstream{client: client, scheme: scheme, key: key, mux: http.NewServeMux()}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	u.Script(Script{})
	u.mux.HandleFunc("POST /generate", u.create)
	u.mux.HandleFunc("GET /status/{task}", u.read)
	u.mux.HandleFunc("POST /cancel/{task}", u.stop)
	u.mux.HandleFunc("GET /lookup", u.lookup)
	u.mux.HandleFunc("GET /list", u.list)
	return u, nil
}

// Script is what is done with every job that is created from now on.
func (u *Upstream) Script(s Script) {
	u.Choose(func(string, json.RawMessage) Script { return s })
}

// Choose decides by model and input what is done with each job that is created
// from now on.
func (u *Upstream) Choose(choose func(model string, input json.RawMessage) Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.choose = choose
}

// Tasks is everything that was created, in order: a job that was created twice is
// there twice.
func (u *Upstream) Tasks() []Task {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]Task, len(u.tasks))
	for i, t := range u.tasks {
		all[i] = t.Task
	}
	return all
}

// Finish ends a task that its script holds, and reports whether there is one.
func (u *Upstream) Finish(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.find(func(t *task) bool { return t.ID == id })
	if t == nil || !t.script.Hold || t.State.Terminal() {
		return false
	}
	select {
	case <-t.finish:
	default:
		close(t.finish)
	}
	return true
}

func (u *Upstream) find(is func(*task) bool) *task {
	for _, t := range u.tasks {
		if is(t) {
			return t
		}
	}
	return nil
}

func (u *Upstream) close() {
	u.cancel()
	u.work.Wait()
}

// ServeHTTP is the provider's API.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+providerKey {
		refuse(w, http.StatusUnauthorized, "unauthorized")
		return
	}
	u.mux.ServeHTTP(w, r)
}

func (u *Upstream) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model       string          `json:"model"`
		Input       json.RawMessage `json:"input"`
		CallbackURL string          `json:"callback_url"`
		Ref         string          `json:"client_ref"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 2<<20)).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request")
		return
	}
	u.mu.Lock()
	script := u.choose(in.Model, in.Input)
	u.mu.Unlock()
	if script.Refuse != "" {
		refuse(w, http.StatusBadRequest, string(script.Refuse))
		return
	}
	u.mu.Lock()
	t := &task{
		Task:   Task{ID: fmt.Sprintf("task-%d", len(u.tasks)+1), Model: in.Model, Input: in.Input, State: pawl.Running},
		script: script, ref: in.Ref, callback: in.CallbackURL, finish: make(chan struct{}),
	}
	u.tasks = append(u.tasks, t)
	u.mu.Unlock()
	u.work.Go(func() { u.run(t) })
	if script.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	answer(w, http.StatusAccepted, map[string]string{"task": t.ID, "state": "queued", "request_id": "req-" + t.ID})
}

// run is the life of a task.
func (u *Upstream) run(t *task) {
	timer := time.NewTimer(t.script.Takes)
	defer timer.Stop()
	over := timer.C
	if t.script.Hold {
		over = nil
	}
	select {
	case <-over:
	case <-t.finish:
	case <-u.ctx.Done():
		return
	}
	u.mu.Lock()
	if !t.State.Terminal() {
		t.State = t.script.end()
	}
	end := u.shown(t)
	u.mu.Unlock()
	begun := map[string]any{"task": t.ID, "state": "processing"}
	switch t.script.Tell {
	case TellTwice:
		u.tell(t, "end", end)
		u.tell(t, "end", end)
	case TellLate:
		u.tell(t, "end", end)
		u.tell(t, "begun", begun)
	case TellOnce:
		u.tell(t, "end", end)
	case TellNever:
	}
}

// tell sends a callback until it is taken.
func (u *Upstream) tell(t *task, event string, body map[string]any) {
	body["type"] = "task.updated"
	text, err := json.Marshal(body)
	if err != nil || t.callback == "" {
		return
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if u.post(t, t.ID+"-"+event, text) {
			return
		}
		select {
		case <-time.After(wait):
		case <-u.ctx.Done():
			return
		}
	}
}

func (u *Upstream) post(t *task, event string, body []byte) bool {
	header, err := u.scheme.Sign(webhook.Message{ID: event, Timestamp: time.Now().Unix(), Body: body}, u.key)
	if err != nil {
		return false
	}
	r, err := http.NewRequestWithContext(u.ctx, http.MethodPost, t.callback, bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	resp, err := u.client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode/100 != 2 {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	t.Callbacks++
	return true
}

// shown is a task as the provider shows it. The caller holds the mutex.
func (u *Upstream) shown(t *task) map[string]any {
	v := map[string]any{"task": t.ID, "state": "processing", "settled": false}
	if !t.State.Terminal() {
		return v
	}
	v["state"], v["settled"] = t.State.String(), true
	if t.script.Cost != "" && t.State == pawl.Succeeded {
		v["cost"], v["currency"] = t.script.Cost, "USD"
	}
	if t.State == pawl.Succeeded && t.script.Result != nil {
		v["result"] = t.script.Result
	}
	if t.State == pawl.Failed {
		code := t.script.Code
		if code == "" {
			code = string(pawl.FailGeneration)
		}
		v["error"] = map[string]string{"code": code, "message": t.script.Message}
	}
	return v
}

func (u *Upstream) read(w http.ResponseWriter, r *http.Request) {
	u.show(w, func(t *task) bool { return t.ID == r.PathValue("task") })
}

func (u *Upstream) lookup(w http.ResponseWriter, r *http.Request) {
	u.show(w, func(t *task) bool { return t.ref == r.URL.Query().Get("client_ref") })
}

// list shows all tasks on one page.
func (u *Upstream) list(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	items := make([]map[string]any, len(u.tasks))
	for i, t := range u.tasks {
		items[i] = u.shown(t)
	}
	answer(w, http.StatusOK, map[string]any{"items": items})
}

func (u *Upstream) show(w http.ResponseWriter, is func(*task) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.find(is)
	if t == nil {
		refuse(w, http.StatusNotFound, "unknown_task")
		return
	}
	t.Reads++
	answer(w, http.StatusOK, u.shown(t))
}

// stop cancels a task that has not ended.
func (u *Upstream) stop(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.find(func(t *task) bool { return t.ID == r.PathValue("task") })
	switch {
	case t == nil:
		refuse(w, http.StatusNotFound, "unknown_task")
		return
	case t.State.Terminal():
		refuse(w, http.StatusConflict, "not_cancelable")
		return
	}
	t.State = pawl.Canceled
	select {
	case <-t.finish:
	default:
		close(t.finish)
	}
	answer(w, http.StatusAccepted, u.shown(t))
}

func refuse(w http.ResponseWriter, status int, code string) {
	answer(w, status, map[string]any{"error": map[string]string{"code": code, "message": "the upstream says no"}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // The node may be gone: its business.
}
