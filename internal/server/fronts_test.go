package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/webhook"
)

// caller is a client of the fronts with an API key of its own.
type caller struct {
	*world
	id, secret, webhookSecret string
}

func (w *world) caller(tenant string, scopes ...string) *caller {
	w.Helper()
	if len(scopes) == 0 {
		scopes = []string{"submit", "read"}
	}
	k := w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/keys", map[string]any{"tenant": tenant, "name": "front", "scopes": scopes}))
	return &caller{w, k.at("id"), k.at("secret"), k.at("webhook_secret")}
}

// do calls a front; headers are pairs of name and value, and the key is sent
// unless it is empty.
func (c *caller) do(method, path, body string, headers ...string) reply {
	c.Helper()
	h := http.Header{}
	if c.secret != "" {
		h.Set("Authorization", "Bearer "+c.secret)
	}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return c.send(method, c.node.APIURL()+path, []byte(body), h)
}

// job creates a job through the media front and gives its task id.
func (c *caller) job(key, body string) string {
	c.Helper()
	r := c.want(http.StatusOK, c.do(http.MethodPost, "/api/v1/jobs/createTask", body, "Idempotency-Key", key))
	c.enveloped(r)
	return r.at("data.taskId")
}

func (c *caller) record(task string) reply {
	c.Helper()
	r := c.want(http.StatusOK, c.do(http.MethodGet, "/api/v1/jobs/recordInfo?taskId="+task, ""))
	c.enveloped(r)
	return r
}

// enveloped checks what every answer under /api/v1 has (2-contracts §2).
func (w *world) enveloped(r reply) {
	w.Helper()
	var e struct {
		Code      *int             `json:"code"`
		Msg       *string          `json:"msg"`
		Data      *json.RawMessage `json:"data"`
		RequestID *string          `json:"request_id"`
	}
	d := json.NewDecoder(strings.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Code == nil || *e.Code != r.status || e.Msg == nil || *e.Msg == "" || e.RequestID == nil || *e.RequestID == "" || *e.RequestID != r.header.Get("Pawl-Request-Id") {
		w.Errorf("not the envelope of a %d: %v %s", r.status, err, r.body)
	}
	if (*e.Msg == "success") != (r.status == 200) || r.header.Get("Content-Type") != "application/json" || r.header.Get("Cache-Control") != "no-store" {
		w.Errorf("%d %v %s", r.status, r.header, r.body)
	}
}

// callback is one callback of a front.
type callback struct {
	header http.Header
	body   []byte
	fields reply
}

// listener records the callbacks of a front and answers them by a script.
type listener struct {
	url string
	mu  sync.Mutex
	got []callback
	// statuses are the answers to the first callbacks; 204 after those.
	statuses []int
}

func (w *world) listener(statuses ...int) *listener {
	l := &listener{statuses: statuses}
	l.url = w.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c := callback{header: r.Header, body: body}
		_ = json.Unmarshal(body, &c.fields.fields)
		l.mu.Lock()
		defer l.mu.Unlock()
		status := http.StatusNoContent
		if len(l.got) < len(l.statuses) {
			status = l.statuses[len(l.got)]
		}
		l.got = append(l.got, c)
		w.WriteHeader(status)
	}))
	return l
}

func (l *listener) all() []callback {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

// verified checks a callback by the scheme with a secret's text, and that one
// changed byte is refused.
func (w *world) verified(scheme, secret string, c callback) {
	w.Helper()
	s, _ := webhook.Lookup(scheme)
	key, err := s.ParseKey(secret)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := s.Verify(webhook.Request{Header: c.header, Body: c.body}, time.Now(), key); err != nil {
		w.Errorf("a callback is refused: %v", err)
	}
	for _, at := range []int{0, len(c.body) / 2, len(c.body) - 1} {
		changed := slices.Clone(c.body)
		changed[at] ^= 1
		if _, err := s.Verify(webhook.Request{Header: c.header, Body: changed}, time.Now(), key); err == nil {
			w.Errorf("a callback with another byte %d is accepted", at)
		}
	}
}

// fronted is an upstream with one model of 1 USD and the fronts as given.
func fronted(f config.Fronts) settings {
	return func(c *config.Config, u *config.Upstream) {
		price := testPrice
		u.Models = map[string]config.Model{"m": {Price: &price}}
		c.Fronts = f
	}
}

const testPrice pawl.Amount = pawl.AmountScale

// A job through the front of media-v2: once in the ledger, its states in the
// dialect's words, its money, and its callback, which is signed with the API
// key's webhook secret and is the same on every redelivery.
func TestMediaFront(t *testing.T) {
	inVirtualTime(t, "sim", mediaLife, fronted(config.Fronts{MediaV2: config.MediaFront{Models: map[string]string{"kling": "up/m"}}}))
}

func mediaLife(w *world) {
	c := w.caller("default")
	l := w.listener(500)
	body := fmt.Sprintf(`{"model":"kling","input":{"prompt":"a red kite","seed":9007199254740993},"callBackUrl":%q}`, l.url)
	task := c.job("k1", body)
	if !strings.HasPrefix(task, "job_") || len(task) != len("job_")+26 {
		w.Fatalf("task id %q", task)
	}
	op := "op_" + strings.TrimPrefix(task, "job_")
	w.state(op, "running")
	w.money("100", "1")
	r := c.record(task)
	for path, want := range map[string]string{
		"data.taskId": task, "data.model": "kling", "data.state": "processing", "data.cost": "1.000000000", "data.settled": "false",
	} {
		if r.at(path) != want {
			w.Errorf("%s is %q, want %q", path, r.at(path), want)
		}
	}
	data := r.fields["data"].(map[string]any)
	for _, member := range []string{"errorCode", "errorMessage", "result", "completeTime"} {
		if v, ok := data[member]; !ok || v != nil {
			w.Errorf("%s is %v", member, v)
		}
	}
	if at, ok := data["createTime"].(float64); !ok || time.Since(time.UnixMilli(int64(at))).Abs() > time.Minute {
		w.Errorf("createTime %v", data["createTime"])
	}
	creates := w.provider.created()
	if len(creates) != 1 || !strings.Contains(creates[0].body, "9007199254740993") {
		w.Fatalf("the provider got %v", creates)
	}

	w.want(202, w.callback(creates[0].callback, event{id: "e1", said: said{task: creates[0].task, state: "succeeded", result: `{"text":"done"}`, cost: "0.6", currency: "USD"}}))
	r = c.record(task)
	if r.at("data.state") != "succeeded" || r.at("data.settled") != "false" || r.at("data.cost") != "1.000000000" || r.at("data.result.text") != "done" {
		w.Errorf("before the final figure: %s", r.body)
	}
	w.want(202, w.callback(creates[0].callback, event{id: "e2", said: said{task: creates[0].task, state: "succeeded", result: `{"text":"done"}`, cost: "0.6", currency: "USD", settled: true}}))
	r = c.record(task)
	if r.at("data.state") != "succeeded" || r.at("data.settled") != "true" || r.at("data.cost") != "0.600000000" || r.at("data.completeTime") == "" {
		w.Errorf("after the final figure: %s", r.body)
	}
	w.money("99.4", "0")

	w.eventually("no two callbacks and a redelivery", func() bool { return len(l.all()) == 3 })
	var ids []string
	for _, got := range l.all() {
		w.verified("media-v2", c.webhookSecret, got)
		if got.header.Get("X-Webhook-Payload-Version") != "2" || got.fields.at("code") != "200" || got.fields.at("msg") != "success" {
			w.Errorf("%v %s", got.header, got.body)
		}
		// Ends alone: these callbacks have no version, and a late one would take
		// the job back.
		if got.fields.at("data.state") != "succeeded" || got.fields.at("data.taskId") != task || got.fields.at("data.model") != "kling" {
			w.Errorf("told %s", got.body)
		}
		ids = append(ids, got.fields.at("request_id"))
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) != 2 || !strings.HasPrefix(ids[0], "whd_") {
		w.Errorf("request ids %v", ids)
	}
	// The other ways in know the same job.
	if r := w.operation(op); r.at("model") != "m" || r.at("asked_model") != "kling" || r.at("upstream") != "up" {
		w.Errorf("natively %s", r.body)
	}
	if r := c.do(http.MethodGet, "/tasks/task_"+strings.TrimPrefix(task, "job_"), ""); r.status != 200 || r.at("status") != "succeeded" {
		w.Errorf("as a task: %d %s", r.status, r.body)
	}
}

// Ends other than success, in the words of media-v2 (7-rules R43): all of them
// release the money, and a cancel has no word and no code of its own.
func TestMediaFrontEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{}))
	c := w.caller("default")
	for n, e := range []struct {
		said                        said
		state, code, message, again string
	}{
		{said{state: "failed", code: "content_rejected", message: "no"}, "failed", "content_rejected", "no", "failed"},
		{said{state: "failed", code: "E42", message: "odd"}, "failed", "upstream_failed", "odd", "failed"},
		{said{state: "canceled", settled: true}, "failed", "generation_failed", "canceled", "canceled"},
		{said{state: "expired"}, "expired", "", "", "failed"},
	} {
		task := c.job(fmt.Sprint("k", n), `{"model":"up/m","input":{}}`)
		suffix := strings.TrimPrefix(task, "job_")
		w.state("op_"+suffix, "running")
		create := w.provider.created()[n]
		e.said.task = create.task
		w.want(202, w.callback(create.callback, event{id: fmt.Sprint("e", n), said: e.said}))
		r := c.record(task)
		if r.at("data.model") != "up/m" || r.at("data.state") != e.state || r.at("data.errorCode") != e.code || r.at("data.errorMessage") != e.message {
			t.Errorf("%+v: %s", e.said, r.body)
		}
		if r.at("data.cost") != "0.000000000" || r.at("data.settled") != "true" {
			t.Errorf("money: %s", r.body)
		}
		if v := c.do(http.MethodGet, "/tasks/task_"+suffix, ""); v.at("status") != e.again {
			t.Errorf("as a task: %s", v.body)
		}
	}
	w.money("100", "0")
}

// Keys mean at the fronts what they mean natively, in one space per tenant
// (1-product A2-A4, 7-rules R4).
func TestFrontIdempotency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{}))
	c, sibling, other := w.caller("default"), w.caller("default"), w.caller("other")
	create := func(by *caller, body string, headers ...string) reply {
		t.Helper()
		r := by.do(http.MethodPost, "/api/v1/jobs/createTask", body, headers...)
		w.enveloped(r)
		return r
	}
	body := `{"model":"up/m","input":{"n":1,"s":"x"}}`
	task := c.job("k", body)
	for _, same := range []string{body, `{"input":{"s":"\u0078","n":1.0},"model":"up/m"}`} {
		r := w.want(200, create(c, same, "Idempotency-Key", `"k"`))
		if r.at("data.taskId") != task || r.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the repeat made %s", r.body)
		}
	}
	w.money("100", "1")
	suffix := strings.TrimPrefix(task, "job_")
	r := w.want(422, create(c, `{"model":"up/m","input":{"n":2}}`, "Idempotency-Key", "k"))
	if r.at("data") != "" || !strings.Contains(r.at("msg"), task) {
		t.Errorf("another request: %s", r.body)
	}
	// A sibling is told of no task, at whatever front.
	for _, r := range []reply{
		w.want(409, create(sibling, body, "Idempotency-Key", "k")),
		w.want(409, sibling.do(http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{}}`, "Idempotency-Key", "k")),
	} {
		if strings.Contains(r.body, suffix) || r.at("data") != "" {
			t.Errorf("a sibling is told %s", r.body)
		}
	}
	// The same request by another way in is the same job.
	r = w.want(202, c.do(http.MethodPost, "/v1/operations", `{"upstream":"up","model":"m","input":{"s":"x","n":1}}`, "Idempotency-Key", "k"))
	if r.at("id") != "op_"+suffix {
		t.Errorf("natively %s", r.body)
	}
	r = w.want(202, c.do(http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{"s":"x","n":1}}`, "Idempotency-Key", "k"))
	if r.at("task_id") != "task_"+suffix || r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("as a task %s", r.body)
	}
	// Another tenant never notices; it has no account to pay from.
	w.want(422, create(other, body, "Idempotency-Key", "k"))
	w.want(400, create(c, body))
	w.want(400, create(c, body, "Idempotency-Key", "a", "Idempotency-Key", "b"))
	w.want(400, create(c, body, "Idempotency-Key", "a b"))
	// Under /tasks a key is honoured and not needed (7-rules R44).
	first := w.want(202, c.do(http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{}}`))
	second := w.want(202, c.do(http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{}}`))
	if first.at("task_id") == second.at("task_id") {
		t.Error("two creates without a key are one task")
	}
	w.want(400, c.do(http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{}}`, "Idempotency-Key", "a", "Idempotency-Key", "b"))
	w.money("100", "3")
	w.eventually("not three creates", func() bool { return len(w.provider.created()) == 3 })
}

// What a front refuses, it refuses in its own form and never as a problem.
func TestFrontRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{}))
	c, reader, submitter, stranger := w.caller("default"), w.caller("default", "read"), w.caller("default", "submit"), w.caller("other")
	nobody := &caller{world: w}
	poor := w.caller("default")
	w.want(200, w.call(http.MethodPatch, "/v1/keys/"+poor.id, `{"limits":{"rate":{"per_second":0.001,"burst":1}}}`, "If-Match", w.get("/v1/keys/"+poor.id).header.Get("ETag")))
	poor.do(http.MethodGet, "/tasks/x", "")
	task := c.job("k", `{"model":"up/m","input":{}}`)
	suffix := strings.TrimPrefix(task, "job_")
	const create, record = "/api/v1/jobs/createTask", "/api/v1/jobs/recordInfo"
	good, goodTask := `{"model":"up/m","input":{}}`, `{"upstream":"up","model":"m","input":{}}`
	for _, x := range []struct {
		name         string
		by           *caller
		status       int
		method, path string
		body         string
		headers      []string
	}{
		{"no key", nobody, 401, "POST", create, good, nil},
		{"no key at the read", nobody, 401, "GET", record + "?taskId=" + task, "", nil},
		{"a wrong key", nobody, 401, "POST", create, good, []string{"Authorization", "Bearer pawl_sk_00000000000000000000000000000000"}},
		{"a foreign key", nobody, 401, "POST", create, good, []string{"Authorization", "Basic eA=="}},
		{"no scope", reader, 403, "POST", create, good, nil},
		{"no scope at the read", submitter, 403, "GET", record + "?taskId=" + task, "", nil},
		{"too many calls", poor, 429, "GET", record + "?taskId=" + task, "", nil},
		{"no JSON", c, 400, "POST", create, `{"model"`, nil},
		{"a list", c, 400, "POST", create, `[]`, nil},
		{"a member twice", c, 400, "POST", create, `{"model":"up/m","model":"up/m","input":{}}`, nil},
		{"an unknown member", c, 400, "POST", create, `{"model":"up/m","input":{},"speed":9}`, nil},
		{"no model", c, 400, "POST", create, `{"input":{}}`, nil},
		{"no input", c, 400, "POST", create, `{"model":"up/m"}`, nil},
		{"input of another kind", c, 400, "POST", create, `{"model":"up/m","input":"x"}`, nil},
		{"a forbidden address", c, 400, "POST", create, `{"model":"up/m","input":{},"callBackUrl":"http://10.0.0.1/"}`, nil},
		{"no body", c, 400, "POST", create, "", nil},
		{"a name that is not configured", c, 422, "POST", create, `{"model":"kling","input":{}}`, nil},
		{"an unknown upstream", c, 422, "POST", create, `{"model":"down/m","input":{}}`, nil},
		{"an unknown model", c, 422, "POST", create, `{"model":"up/n","input":{}}`, nil},
		{"another content type", c, 415, "POST", create, good, []string{"Content-Type", "text/plain"}},
		{"a large input", c, 413, "POST", create, `{"model":"up/m","input":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, nil},
		{"a large body", c, 413, "POST", create, `{"model":"up/m","input":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`, nil},
		{"no task id", c, 400, "GET", record, "", nil},
		{"two task ids", c, 400, "GET", record + "?taskId=" + task + "&taskId=" + task, "", nil},
		{"an unknown parameter", c, 400, "GET", record + "?taskId=" + task + "&verbose=1", "", nil},
		{"a broken query", c, 400, "GET", record + "?taskId=%zz", "", nil},
		{"an unknown task", c, 404, "GET", record + "?taskId=job_00000000000000000000000009", "", nil},
		{"no task's id", c, 404, "GET", record + "?taskId=x", "", nil},
		{"an operation's id", c, 404, "GET", record + "?taskId=op_" + suffix, "", nil},
		{"another dialect's id", c, 404, "GET", record + "?taskId=task_" + suffix, "", nil},
		{"another tenant's task", stranger, 404, "GET", record + "?taskId=" + task, "", nil},
		{"no such path", c, 404, "GET", "/api/v1/jobs", "", nil},
		{"the root", c, 404, "GET", "/api/v1", "", nil},
		{"a doubtful path", c, 404, "GET", "/api/v1//jobs/recordInfo", "", nil},
		{"another method", c, 405, "PUT", create, good, nil},
		{"another method at the read", c, 405, "DELETE", record, "", nil},

		{"task: no key", nobody, 401, "POST", "/tasks", goodTask, nil},
		{"task: no key at the read", nobody, 401, "GET", "/tasks/task_" + suffix, "", nil},
		{"task: no scope", reader, 403, "POST", "/tasks", goodTask, nil},
		{"task: no scope at the read", submitter, 403, "GET", "/tasks/task_" + suffix, "", nil},
		{"task: too many calls", poor, 429, "GET", "/tasks/task_" + suffix, "", nil},
		{"task: no JSON", c, 400, "POST", "/tasks", "{", nil},
		{"task: an unknown member", c, 400, "POST", "/tasks", `{"upstream":"up","model":"m","input":{},"x":1}`, nil},
		{"task: no body", c, 400, "POST", "/tasks", "", nil},
		{"task: no upstream", c, 400, "POST", "/tasks", `{"model":"m","input":{}}`, nil},
		{"task: no model", c, 400, "POST", "/tasks", `{"upstream":"up","input":{}}`, nil},
		{"task: no input", c, 400, "POST", "/tasks", `{"upstream":"up","model":"m"}`, nil},
		{"task: a forbidden address", c, 400, "POST", "/tasks", `{"upstream":"up","model":"m","input":{},"callback_url":"http://10.0.0.1/"}`, nil},
		{"task: an unknown model", c, 422, "POST", "/tasks", `{"upstream":"up","model":"n","input":{}}`, nil},
		{"task: another content type", c, 415, "POST", "/tasks", goodTask, []string{"Content-Type", "text/plain"}},
		{"task: a large body", c, 413, "POST", "/tasks", `{"input":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`, nil},
		{"task: unknown", c, 404, "GET", "/tasks/task_00000000000000000000000009", "", nil},
		{"task: of another form", c, 404, "GET", "/tasks/x", "", nil},
		{"task: another dialect's id", c, 404, "GET", "/tasks/" + task, "", nil},
		{"task: another tenant's", stranger, 404, "GET", "/tasks/task_" + suffix, "", nil},
		{"task: a slash at the end", c, 404, "GET", "/tasks/", "", nil},
		{"task: a path below", c, 404, "GET", "/tasks/task_" + suffix + "/x", "", nil},
		{"task: another method", c, 405, "DELETE", "/tasks/task_" + suffix, "", nil},
	} {
		headers := x.headers
		if x.path == create && x.name != "no key" {
			headers = append(headers, "Idempotency-Key", "refused")
		}
		r := x.by.do(x.method, x.path, x.body, headers...)
		if r.status != x.status {
			t.Errorf("%s: %d %s, want %d", x.name, r.status, r.body, x.status)
		}
		notFound := strings.Contains(x.name, "task") && x.status == 404 && !strings.Contains(x.path, "/x") && x.path != "/tasks/"
		if strings.HasPrefix(x.path, "/tasks") {
			if len(r.fields) != 1 || r.at("error") == "" || r.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: not the dialect's form: %s", x.name, r.body)
			}
			if notFound && r.at("error") != "task not found" {
				t.Errorf("%s: %s", x.name, r.body)
			}
		} else {
			w.enveloped(r)
			if notFound && r.at("msg") != "task not found" {
				t.Errorf("%s: %s", x.name, r.body)
			}
		}
		for status, name := range map[int]string{401: "WWW-Authenticate", 405: "Allow", 415: "Accept", 429: "Retry-After"} {
			if r.status == status && r.header.Get(name) == "" {
				t.Errorf("%s: no %s", x.name, name)
			}
		}
	}
	// None of these took the key, or anything else.
	w.money("100", "1")
	c.job("refused", good)

	// 100 jobs of 1 USD are paid for; the disk is full.
	for n := range 98 {
		c.job(fmt.Sprint("k", n), good)
	}
	w.enveloped(w.want(402, c.do(http.MethodPost, create, good, "Idempotency-Key", "poor")))
	w.want(402, c.do(http.MethodPost, "/tasks", goodTask))
}

// While the disk is nearly full nothing new is taken, and what is there is read.
func TestFrontsGuardTheDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{}), func(c *config.Config, _ *config.Upstream) { c.Disk.MinFree = 1 << 20 })
	c := w.caller("default")
	task := c.job("k", `{"model":"up/m","input":{}}`)
	w.free.Store(1)
	w.eventually("the disk is not found full", func() bool {
		return c.do(http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{}}`, "Idempotency-Key", "k").status == 503
	})
	r := w.want(503, c.do(http.MethodPost, "/api/v1/jobs/createTask", `{"model":"up/m","input":{}}`, "Idempotency-Key", "k2"))
	w.enveloped(r)
	if r.header.Get("Retry-After") == "" {
		t.Errorf("%v", r.header)
	}
	c.record(task)
}

// A task through the front of body-timestamp: versions rise with every change of
// the status, in reads and in callbacks, and a receiver that applies what is
// above the version it holds never goes back.
func TestTaskFront(t *testing.T) {
	inVirtualTime(t, "sim", taskLife, fronted(config.Fronts{BodyTimestamp: config.TaskFront{Upstream: "up", Model: "m"}}))
}

func taskLife(w *world) {
	c := w.caller("default")
	l := w.listener(500)
	r := w.want(202, c.do(http.MethodPost, "/tasks", fmt.Sprintf(`{"input":{"prompt":"a red kite"},"callback_url":%q}`, l.url), "Content-Type", "application/json"))
	task := r.at("task_id")
	if !strings.HasPrefix(task, "task_") || r.at("status") != "pending" || len(r.fields) != 2 {
		w.Fatalf("created %s", r.body)
	}
	var version float64
	read := func(status string) reply {
		w.Helper()
		r := w.want(200, c.do(http.MethodGet, "/tasks/"+task, ""))
		now, _ := r.fields["version"].(float64)
		if r.at("task_id") != task || r.at("status") != status || now <= version || now != float64(int64(now)) {
			w.Errorf("%s after version %v, want %s", r.body, version, status)
		}
		version = now
		return r
	}
	op := "op_" + strings.TrimPrefix(task, "task_")
	w.state(op, "running")
	read("running")
	create := w.provider.created()[0]
	w.want(202, w.callback(create.callback, event{id: "e", said: said{task: create.task, state: "succeeded", result: `{"text":"处理完成"}`, settled: true}}))
	if r := read("succeeded"); r.at("result.text") != "处理完成" {
		w.Errorf("%s", r.body)
	}
	w.eventually("no callbacks", func() bool { return len(l.all()) == 3 })
	versions := map[string]string{}
	for _, got := range l.all() {
		w.verified("body-timestamp", c.webhookSecret, got)
		id, kind, status := got.fields.at("id"), got.fields.at("type"), got.fields.at("data.status")
		if got.header.Get("X-Webhook-Id") != id || !strings.HasPrefix(id, "evt_") || got.fields.at("data.task_id") != task {
			w.Errorf("%v %s", got.header, got.body)
		}
		if want := map[string]string{"running": "ai.task.progress", "succeeded": "ai.task.completed"}[status]; kind != want {
			w.Errorf("%s is told as %s", status, kind)
		}
		versions[status] = got.fields.at("data.version")
	}
	if versions["running"] >= versions["succeeded"] || versions["succeeded"] != fmt.Sprint(version) {
		w.Errorf("versions %v, read %v", versions, version)
	}
	w.money("99", "0")
}

// One address that is given natively and to a front is told by each what its
// callers expect.
func TestCallbackAddressOfTwoWaysIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{}))
	c := w.caller("default")
	l := w.listener()
	w.want(202, c.do(http.MethodPost, "/v1/operations", fmt.Sprintf(`{"upstream":"up","model":"m","input":{},"callback_url":%q}`, l.url), "Idempotency-Key", "a"))
	w.want(202, c.do(http.MethodPost, "/tasks", fmt.Sprintf(`{"upstream":"up","model":"m","input":{},"callback_url":%q}`, l.url)))
	c.job("b", fmt.Sprintf(`{"model":"up/m","input":{},"callBackUrl":%q}`, l.url))
	w.eventually("not three creates", func() bool { return len(w.provider.created()) == 3 })
	for n, create := range w.provider.created() {
		w.want(202, w.callback(create.callback, event{id: fmt.Sprint("e", n), said: said{task: create.task, state: "succeeded", settled: true, result: "{}"}}))
	}
	w.eventually("not five callbacks", func() bool { return len(l.all()) == 5 })
	seen := map[string]int{}
	for _, got := range l.all() {
		switch {
		case got.header.Get("Webhook-Signature") != "":
			seen["native"]++
			w.verified("standard-webhooks", c.webhookSecret, got)
		case got.header.Get("X-Webhook-Payload-Version") != "":
			seen["media"]++
			w.verified("media-v2", c.webhookSecret, got)
		default:
			seen["task"]++
			w.verified("body-timestamp", c.webhookSecret, got)
		}
	}
	if seen["native"] != 2 || seen["media"] != 1 || seen["task"] != 2 {
		t.Errorf("%v", seen)
	}
}

// A correction by hand is the one thing that changes an end: the fronts show the
// other end, under a higher version, and tell of it.
func TestFrontsAfterACorrection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{}))
	c := w.caller("default")
	l := w.listener()
	task := c.job("k", fmt.Sprintf(`{"model":"up/m","input":{},"callBackUrl":%q}`, l.url))
	suffix := strings.TrimPrefix(task, "job_")
	w.state("op_"+suffix, "running")
	create := w.provider.created()[0]
	w.want(202, w.callback(create.callback, event{id: "e", said: said{task: create.task, state: "failed", code: "timeout"}}))
	version := func(status string) float64 {
		t.Helper()
		r := w.want(200, c.do(http.MethodGet, "/tasks/task_"+suffix, ""))
		if r.at("status") != status {
			t.Errorf("%s, want %s", r.body, status)
		}
		v, _ := r.fields["version"].(float64)
		return v
	}
	before := version("failed")
	w.want(200, w.call(http.MethodPost, "/v1/operations/op_"+suffix+"/resolve", `{"decision":"succeeded","from":"failed","note":"the file is there","charge":{"amount":"0.5","currency":"USD"}}`))
	if after := version("succeeded"); after <= before {
		t.Errorf("version %v after %v", after, before)
	}
	r := c.record(task)
	if r.at("data.state") != "succeeded" || r.at("data.cost") != "0.500000000" || r.at("data.settled") != "true" || r.at("data.errorCode") != "" {
		t.Errorf("%s", r.body)
	}
	w.eventually("no two callbacks", func() bool { return len(l.all()) == 2 })
	states := map[string]bool{}
	for _, got := range l.all() {
		w.verified("media-v2", c.webhookSecret, got)
		states[got.fields.at("data.state")] = true
	}
	if !states["failed"] || !states["succeeded"] {
		t.Errorf("told of %v", states)
	}
}
