package exercise

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/pawlhq/pawl/internal/upstream"
)

// provider is the fake upstream: it answers the one status read that it was
// told to expect, and counts every create.
type provider struct {
	spec upstream.Spec

	mu      sync.Mutex
	next    *ReadReply
	reads   map[string]int
	creates int
	others  int
}

func newProvider(spec upstream.Spec) *provider {
	return &provider{spec: spec, reads: make(map[string]int)}
}

// expect sets the answer to the next read; it is given once.
func (p *provider) expect(r *ReadReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = r
}

// counts are the creates so far, and the reads by task.
func (p *provider) counts() (creates, others int, reads map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.creates, p.others, maps.Clone(p.reads)
}

func (p *provider) handler(w *wire) http.Handler {
	return w.tap(p.kindOf, drainBody, p)
}

// drainBody reads a request's body and puts it back.
func drainBody(r *http.Request) []byte {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxFixture))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func (p *provider) kindOf(r *http.Request) kind {
	if task := p.taskOf(r); task != "" {
		return read
	}
	if r.Method == p.spec.Create.Method && r.URL.Path == p.spec.Create.Path {
		return create
	}
	return other
}

// taskOf is the task that a status read asks for, "" for another request.
func (p *provider) taskOf(r *http.Request) string { return taskAsked(p.spec, r.Method, r.URL) }

// taskAsked finds the task in the request of a status read.
func taskAsked(spec upstream.Spec, method string, u *url.URL) string {
	c := spec.Read
	if c == nil || method != c.Method {
		return ""
	}
	if before, after, inPath := strings.Cut(c.Path, "{task}"); inPath {
		rest, ok := strings.CutPrefix(u.EscapedPath(), before)
		task, also := strings.CutSuffix(rest, after)
		if !ok || !also {
			return ""
		}
		task, _ = url.PathUnescape(task) // what cannot be unescaped is no task
		return task
	}
	for _, name := range slices.Sorted(maps.Keys(c.Query)) {
		if c.Query[name] == upstream.FromTask && u.Path == c.Path {
			return u.Query().Get(name)
		}
	}
	return ""
}

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	task := p.taskOf(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	reply := p.next
	switch {
	case task != "":
		p.reads[task]++
		p.next = nil
	case p.kindOf(r) == create:
		p.creates++
		reply = nil
	default:
		p.others++
		reply = nil
	}
	if reply == nil {
		http.Error(w, "nothing is expected here", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	_, _ = w.Write(reply.Body)
}
