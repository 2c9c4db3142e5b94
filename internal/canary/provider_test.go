package canary_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
)

// provider is a careless one of preset sim: its answers say too much. What it
// does with a job is the member "do" of the job's input.
type provider struct {
	watch *watch
	*httptest.Server

	mu    sync.Mutex
	tasks map[string]*task
}

// task is one that was created, or may have been.
type task struct {
	id, do, callback string
}

func newProvider(t *testing.T, w *watch) *provider {
	p := &provider{watch: w, tasks: make(map[string]*task)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	return p
}

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.watch.look(toProvider, fmt.Sprint(r.Method, r.URL, r.Header, string(body)))
	if strings.HasPrefix(r.URL.Path, "/file/") {
		_, _ = io.WriteString(w, "a film")
		return
	}
	if r.Method != http.MethodPost {
		p.read(w, r, path.Base(r.URL.Path))
		return
	}
	var in struct {
		Input    struct{ Do string }
		Callback string `json:"callback_url"`
	}
	_ = json.Unmarshal(body, &in)
	_, token, _ := strings.Cut(in.Callback, "/hooks/")
	if token != "" {
		p.watch.add(hookToken, token[strings.LastIndex(token, "/")+1:])
	}
	p.mu.Lock()
	made := &task{id: fmt.Sprintf("task-%d", len(p.tasks)+1), do: in.Input.Do, callback: in.Callback}
	p.tasks[made.id] = made
	p.mu.Unlock()
	p.create(w, r, made)
}

func (p *provider) create(w http.ResponseWriter, r *http.Request, made *task) {
	switch made.do {
	case "create 302":
		w.Header().Set("Location", theMessageLink)
	case "create 429":
		w.Header().Set("Retry-After", "3600")
	case "create cut":
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, `{"task":"`+theMessageLink)
		panic(http.ErrAbortHandler)
	case "create hangs":
		<-r.Context().Done()
		return
	case "create garbage":
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "<html>"+theProviderText+" "+theOutcome)
		return
	}
	status := http.StatusAccepted
	if n, err := fmt.Sscanf(made.do, "create %d", &status); n == 1 && err == nil {
		answerJSON(w, status, map[string]any{"error": map[string]any{"code": "content_rejected", "message": theProviderText + theRest(made.callback)}})
		return
	}
	answerJSON(w, status, map[string]any{"task": made.id, "state": "queued", "request_id": "req-1"})
}

func (p *provider) read(w http.ResponseWriter, r *http.Request, id string) {
	p.mu.Lock()
	t := p.tasks[id]
	p.mu.Unlock()
	state := map[string]any{"task": id, "state": "processing"}
	status := http.StatusOK
	switch {
	case t == nil:
		status = http.StatusNotFound
	case t.do == "read hangs":
		<-r.Context().Done()
		return
	case t.do == "read garbage":
		_, _ = io.WriteString(w, theProviderText)
		return
	case t.do == "read other":
		state["task"] = "task-of-somebody"
	case t.do == "read unknown":
		state["state"] = "thinking"
	case t.do == "read ends":
		state["state"], state["result"], state["settled"], state["cost"] = "succeeded", json.RawMessage(theOutcome), true, "0.5"
	case t.do == "read file", t.do == "read held":
		text, link := theResult, p.URL+"/file/"+theLinkPath+"?sig="+theLinkQuery
		if t.do == "read held" {
			text, link = theHeldText, p.URL+"/file/"+theHeldPath+"?sig="+theHeldQuery
		}
		state["state"], state["result"], state["settled"], state["cost"] = "succeeded", map[string]string{"text": text, "url": link}, true, "0.5"
	case t.do == "read fails":
		state["state"], state["error"] = "failed", map[string]any{"code": "content_rejected", "message": theProviderText + theRest(t.callback)}
	default:
		_, _ = fmt.Sscanf(t.do, "read %d", &status)
	}
	if status != http.StatusOK {
		state = map[string]any{"error": map[string]any{"code": "busy", "message": theProviderText}}
	}
	answerJSON(w, status, state)
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// doing finds the latest task made of a job.
func (p *provider) doing(do string) *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tasks {
		if t.do == do {
			return t
		}
	}
	return nil
}

// sign gives the headers of a callback.
func (p *provider) sign(id string, body []byte) http.Header {
	return p.watch.signed(theProviderSecret, id, body)
}
