package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// said is what a provider says of a task, in whatever dialect.
type said struct {
	task, state, result, code, message string
	cost, currency                     string
	settled                            bool
	version                            int
	progress                           string
}

// event is what a provider calls back with.
type event struct {
	id, kind string
	said
}

// create is one create call that reached the provider.
type create struct {
	key, callback, ref string
	// task is what the provider made of it.
	task string
	body string
	at   time.Time
}

// answer is an HTTP answer; cut closes the connection instead, hang says
// nothing until the caller gives up.
type answer struct {
	status     int
	retryAfter string
	body       any
	cut, hang  bool
}

// provider is a scripted provider of one dialect. It takes every create, keeps
// the promise of an idempotency key, and says of a task what it was told to,
// unless a script says otherwise.
type provider struct {
	dialect, url string

	mu sync.Mutex
	// creating, reading and looking replace an answer; n counts from 1.
	creating func(n int, c create) *answer
	reading  func(n int, task string) *answer
	looking  func(n int, ref string) *answer
	// listing answers GET of a list; nil lists every task, in pages of listSize.
	listing func(n int, q url.Values) *answer
	lists   []time.Time
	creates []create
	cancels []string
	reads   []time.Time
	lookups []string
	byKey   map[string]string
	heads   []http.Header
	tasks   int
	// names are the ids of the next tasks; "task-N" after those.
	names []string
	says  map[string]said
	// accrued is what a canceled task costs, empty for no word of it.
	accrued string
}

func newProvider(dialect string) *provider {
	return &provider{dialect: dialect, byKey: make(map[string]string), says: make(map[string]said)}
}

// headers are those of every request.
func (p *provider) headers() []http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heads)
}

func (p *provider) created() []create {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.creates)
}

func (p *provider) readAt() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reads)
}

// canceled is how many cancels reached the provider.
func (p *provider) canceled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cancels)
}

// call gives the next tasks their ids.
func (p *provider) call(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = names
}

// say sets what reads of a task are answered with.
func (p *provider) say(s said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.says[s.task] = s
}

// script sets the scripts; nil means the default.
func (p *provider) script(creating func(int, create) *answer, reading func(int, string) *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.creating, p.reading = creating, reading
}

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.heads = append(p.heads, r.Header)
	p.mu.Unlock()
	a := p.answer(r)
	if a.hang {
		<-r.Context().Done()
	}
	if a.cut || a.hang {
		panic(http.ErrAbortHandler)
	}
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body)
	}
}

func (p *provider) answer(r *http.Request) answer {
	switch {
	case r.Header.Get("Authorization") != "Bearer provider-key":
		return answer{status: http.StatusUnauthorized}
	case r.Method == http.MethodPost && p.dialect == "sim" && path.Dir(r.URL.Path) == "/cancel":
		return p.cancel(path.Base(r.URL.Path))
	case r.Method == http.MethodPost:
		return p.create(r)
	case r.URL.Path == "/list":
		return p.list(r.URL.Query())
	case r.URL.Path == "/lookup":
		return p.lookup(r.URL.Query())
	case p.dialect == "media-v2":
		return p.read(r.URL.Query().Get("taskId"))
	}
	return p.read(path.Base(r.URL.Path))
}

func (p *provider) create(r *http.Request) answer {
	var in struct {
		CallBackURL string `json:"callBackUrl"`
		CallbackURL string `json:"callback_url"`
		ClientRef   string `json:"client_ref"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &in)
	c := create{key: r.Header.Get("Idempotency-Key"), callback: in.CallBackURL + in.CallbackURL, ref: in.ClientRef, body: string(body), at: time.Now()}
	p.mu.Lock()
	task, known := p.byKey[c.key]
	if !known {
		p.tasks++
		if task = fmt.Sprintf("task-%d", p.tasks); len(p.names) > 0 {
			task, p.names = p.names[0], p.names[1:]
		}
		if c.key != "" {
			p.byKey[c.key] = task
		}
		p.says[task] = said{task: task, state: "processing"}
		if p.dialect == "body-timestamp" {
			p.says[task] = said{task: task, state: "running", version: 1}
		}
	}
	c.task = task
	p.creates = append(p.creates, c)
	n, script := len(p.creates), p.creating
	p.mu.Unlock()
	if script != nil {
		if a := script(n, c); a != nil {
			return *a
		}
	}
	return p.accept(task)
}

// accept is the answer to a create that is taken.
func (p *provider) accept(task string) answer {
	switch p.dialect {
	case "media-v2":
		return answer{status: 200, body: envelope("req_1", map[string]any{"taskId": task})}
	case "body-timestamp":
		return answer{status: 202, body: map[string]any{"task_id": task, "status": "pending"}}
	}
	return answer{status: 202, body: map[string]any{"task": task, "state": "queued", "request_id": "req_1"}}
}

func (p *provider) read(task string) answer {
	p.mu.Lock()
	p.reads = append(p.reads, time.Now())
	s, known := p.says[task]
	n, script := len(p.reads), p.reading
	p.mu.Unlock()
	if script != nil {
		if a := script(n, task); a != nil {
			return *a
		}
	}
	if !known {
		return answer{status: http.StatusNotFound}
	}
	return answer{status: 200, body: p.status(s)}
}

// cancel takes every cancel of a task that has not ended.
func (p *provider) cancel(task string) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels = append(p.cancels, task)
	s, known := p.says[task]
	if !known || s.state != "processing" {
		return answer{status: http.StatusConflict}
	}
	s.state, s.cost, s.settled = "canceled", p.accrued, true
	p.says[task] = s
	return answer{status: http.StatusAccepted, body: p.fields(s)}
}

func (p *provider) lookup(q url.Values) answer {
	ref := q.Get("client_ref")
	p.mu.Lock()
	p.lookups = append(p.lookups, ref)
	n, script := len(p.lookups), p.looking
	i := slices.IndexFunc(p.creates, func(c create) bool { return c.ref == ref })
	var task string
	if i >= 0 {
		task = p.creates[i].task
	}
	p.mu.Unlock()
	if script != nil {
		if a := script(n, ref); a != nil {
			return *a
		}
	}
	if task == "" {
		return answer{status: http.StatusNotFound}
	}
	return answer{status: 200, body: map[string]any{"task": task}}
}

func envelope(id string, data any) map[string]any {
	return map[string]any{"code": 200, "msg": "success", "data": data, "request_id": id}
}

// status is what a read answers.
func (p *provider) status(s said) any {
	if p.dialect == "media-v2" {
		return envelope("req_2", p.fields(s))
	}
	return p.fields(s)
}

// fields are the members of a task in the dialect.
func (p *provider) fields(s said) map[string]any {
	m := map[string]any{}
	set := func(name, value string) {
		if value != "" {
			m[name] = value
		}
	}
	raw := func(name, value string) {
		if value != "" {
			m[name] = json.RawMessage(value)
		}
	}
	switch p.dialect {
	case "media-v2":
		set("taskId", s.task)
		set("state", s.state)
		set("cost", s.cost)
		set("errorCode", s.code)
		set("errorMessage", s.message)
		m["settled"] = s.settled
	case "body-timestamp":
		set("task_id", s.task)
		set("status", s.state)
		if s.version > 0 {
			m["version"] = s.version
		}
	default:
		set("task", s.task)
		set("state", s.state)
		set("cost", s.cost)
		set("currency", s.currency)
		raw("progress", s.progress)
		m["settled"] = s.settled
		if s.code != "" {
			m["error"] = map[string]string{"code": s.code, "message": s.message}
		}
	}
	raw("result", s.result)
	return m
}

// render is the body of a callback.
func (p *provider) render(e event) []byte {
	m := p.fields(e.said)
	switch p.dialect {
	case "media-v2":
		m = envelope(e.id, m)
	case "body-timestamp":
		if e.kind == "" {
			e.kind = "ai.task.completed"
		}
		m = map[string]any{"id": e.id, "type": e.kind, "created_at": time.Now().UTC().Format(time.RFC3339), "data": m}
	default:
		if e.kind == "" {
			e.kind = "task.updated"
		}
		m["id"], m["type"] = e.id, e.kind
	}
	body, _ := json.Marshal(m)
	return body
}

// sign gives the headers of a callback that is sent at a time.
func (p *provider) sign(id string, body []byte, at time.Time) http.Header {
	name := p.dialect
	if name == "sim" {
		name = "standard-webhooks"
	}
	scheme, _ := webhook.Lookup(name)
	key, err := scheme.ParseKey(hookSecret)
	if err != nil {
		panic(err)
	}
	h, err := scheme.Sign(webhook.Message{ID: id, Timestamp: at.Unix(), Body: body}, key)
	if err != nil {
		panic(err)
	}
	h.Set("Content-Type", "application/json")
	return h
}

// callback sends an event to the address of a create, or to the source's own
// address if that is empty.
func (w *world) callback(address string, e event) reply {
	w.Helper()
	body := w.provider.render(e)
	return w.hook(address, body, w.provider.sign(e.id, body, time.Now()))
}

// hook posts what it is given. Of an address only the path counts: a node that
// was started again listens on another port.
func (w *world) hook(address string, body []byte, h http.Header) reply {
	w.Helper()
	return w.send(http.MethodPost, w.hookURL(address), body, h)
}

func (w *world) hookURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		w.Fatal(err)
	}
	if u.Path == "" {
		u.Path = "/hooks/up"
	}
	return w.node.APIURL() + u.Path
}

// delivery is one attempt that reached the receiver.
type delivery struct {
	id, kind, op string
	version      string
	sequence     int64
	attempt      string
	body         string
	header       http.Header
	at           time.Time
}

// receiver takes deliveries, verifies them with every one of its secrets and
// answers by a script; 204 without one.
type receiver struct {
	url string

	mu      sync.Mutex
	secrets []string
	// answering gives status and Retry-After; n counts attempts from 1.
	answering func(n int, d delivery) (int, string)
	got       []delivery
	refused   []string
}

func newReceiver(secrets ...string) *receiver { return &receiver{secrets: secrets} }

// ServeHTTP implements [http.Handler].
func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut in the middle: it did not arrive
	}
	status, retryAfter := s.take(r.Header, body)
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
}

func (s *receiver) take(h http.Header, body []byte) (int, string) {
	scheme, _ := webhook.Lookup("standard-webhooks")
	s.mu.Lock()
	for _, secret := range s.secrets {
		key, err := scheme.ParseKey(secret)
		if err == nil {
			_, err = scheme.Verify(webhook.Request{Header: h, Body: body}, time.Now(), key)
		}
		if err != nil {
			s.refused = append(s.refused, err.Error())
		}
	}
	var in struct {
		ID, Type string
		Sequence int64
		Data     struct {
			ID      string
			Version int64
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		s.refused = append(s.refused, err.Error())
	}
	if in.ID != h.Get("webhook-id") || strconv.FormatInt(in.Sequence, 10) != h.Get("pawl-endpoint-sequence") {
		s.refused = append(s.refused, "headers and body of "+in.ID+" differ")
	}
	d := delivery{
		id: in.ID, kind: in.Type, op: in.Data.ID, version: strconv.FormatInt(in.Data.Version, 10), sequence: in.Sequence,
		attempt: h.Get("pawl-attempt"), body: string(body), header: h, at: time.Now(),
	}
	s.got = append(s.got, d)
	n, script := len(s.got), s.answering
	s.mu.Unlock()
	if script != nil {
		return script(n, d)
	}
	return http.StatusNoContent, ""
}

func (s *receiver) attempts() []delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *receiver) refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// script sets how attempts are answered.
func (s *receiver) script(answering func(n int, d delivery) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answering = answering
}

// types are the types of the events of an operation in the order of the
// stream, each event once.
func (s *receiver) types(op string) []string {
	byID := make(map[string]delivery)
	for _, d := range s.attempts() {
		if d.op == op {
			byID[d.id] = d
		}
	}
	all := make([]delivery, 0, len(byID))
	for _, d := range byID {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b delivery) int { return int(a.sequence - b.sequence) })
	types := make([]string, len(all))
	for i, d := range all {
		types[i] = d.kind
	}
	return types
}
