package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// Ids are texts, whatever they look like: each event finds its own task, and
// every id comes out as it went in (O-041).
func TestO041NumericIDsStayExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	ids := []string{`9007199254740993`, `9007199254740992`, `18446744073709551615`, `1e3`, `1000`, `"00123"`, `123`}
	ops := make([]string, len(ids))
	for i, id := range ids {
		w.provider.script(func(int, create) *answer {
			return &answer{status: 202, body: map[string]any{"task": json.RawMessage(id), "state": "queued"}}
		}, nil)
		ops[i] = w.submit(fmt.Sprint("k", i))
		if got := w.state(ops[i], "running").at("task_id"); got != strings.Trim(id, `"`) {
			t.Errorf("task %s became %s", id, got)
		}
	}
	for i, id := range ids {
		for _, later := range ops[i:] {
			w.now(later, "running")
		}
		event := fmt.Sprintf(`{"type":"task.updated","task":%s,"state":"succeeded","cost":"1","settled":true,"result":{"n":9007199254740993}}`, id)
		w.want(http.StatusAccepted, w.raw("", fmt.Sprint("e", i), event))
		text := strings.Trim(id, `"`)
		if r := w.now(ops[i], "succeeded"); !strings.Contains(r.body, `{"n":9007199254740993}`) || !strings.Contains(r.body, `"task_id":"`+text+`"`) {
			t.Errorf("digits are lost: %s", r.body)
		}
		if found := w.get("/v1/operations?task_id=" + text).items(); len(found) != 1 || found[0].at("id") != ops[i] {
			t.Errorf("task %s finds %d operations", text, len(found))
		}
		w.told(ops[i], "operation.running", "operation.succeeded")
		for _, d := range w.sink.attempts() {
			if d.op == ops[i] && !strings.Contains(d.body, `"task_id":"`+text+`"`) {
				t.Errorf("told of task %s as %s", id, d.body)
			}
		}
	}
}

// A member that is there twice, or in two letter cases, has no one meaning
// (O-042).
func TestO042SameFieldInTwoLetterCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	op, c := w.running("k")
	bodies := []string{
		`{"id":"evt_%d","type":"ai.task.completed","data":{"task_id":"task-1","version":2,"status":"succeeded","STATUS":"failed","status":"succeeded"}}`,
		`{"id":"evt_%d","type":"ai.task.completed","data":{"task_id":"task-1","version":2,"status":"succeeded","STATUS":"failed"}}`,
		`{"id":"evt_%d","type":"ai.task.completed","data":{"task_id":"task-1","version":2,"status":"succeeded","status":"succeeded"}}`,
		`{"id":"evt_%d","type":"ai.task.completed","data":{"task_id":"task-1","version":2,"status":"succeeded"},"Data":{}}`,
	}
	for i, body := range bodies {
		body = fmt.Sprintf(body, i)
		if r := w.raw(c.callback, fmt.Sprint("evt_", i), body); r.status != http.StatusBadRequest || r.at("reason") != "malformed_json" {
			t.Errorf("%s: answered %d %s", body, r.status, r.at("reason"))
		}
		kept := w.get("/v1/events/" + w.get("/v1/events?verdict=rejected").items()[0].at("id"))
		if raw, _ := base64.StdEncoding.DecodeString(kept.at("body")); string(raw) != body {
			t.Errorf("the bytes that are kept: %s", raw)
		}
	}
	if n := len(w.get("/v1/events?verdict=rejected").items()); n != len(bodies) {
		t.Errorf("%d events are stored, want %d", n, len(bodies))
	}
	w.now(op, "running")
	w.money("100", "1")
}

// A NUL in a text of the provider loses no event: its bytes are kept, and what
// is shown has a visible character in its place (O-043).
func TestO043NULInText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	op, c := w.running("k")
	body := `{"type":"task.updated","task":"task-1","state":"failed","error":{"code":"oom","message":"out of\u0000memory"},"result":{"a\u0000b":"\u0000"}}`
	w.want(http.StatusAccepted, w.raw(c.callback, "e1", body))
	if r := w.now(op, "failed"); r.at("error.message") != "out of␀memory" {
		t.Errorf("message %q", r.at("error.message"))
	}
	w.told(op, "operation.running", "operation.failed")
	if told := w.sink.attempts(); !strings.Contains(told[len(told)-1].body, `"out of␀memory"`) {
		t.Errorf("told %s", told[len(told)-1].body)
	}
	kept := w.get("/v1/events/" + w.get("/v1/events?direction=inbound").items()[0].at("id"))
	if raw, _ := base64.StdEncoding.DecodeString(kept.at("body")); string(raw) != body {
		t.Errorf("the bytes that are kept: %s", raw)
	}
	// A result is passed on as it came.
	op, c = w.running("k2")
	w.want(http.StatusAccepted, w.raw(c.callback, "e2", `{"type":"task.updated","task":"task-2","state":"succeeded","cost":"1","settled":true,"result":{"text":"a\u0000b"}}`))
	if r := w.now(op, "succeeded"); r.at("result.text") != "a\x00b" {
		t.Errorf("result %s", r.body)
	}
	w.told(op, "operation.running", "operation.succeeded")
}

// A body that never ends costs at most the limit, a hundred at once no more than
// a few; the limit itself is accepted (2-contracts §1, O-044).
func TestO044HugeBodies(t *testing.T) {
	w := newWorld(t, "media-v2") // alone: it measures memory
	op, c := w.running("k")
	body := w.provider.render(event{id: "whd_1", said: done(c.task)})
	padded := append(body, bytes.Repeat([]byte(" "), 4<<20-len(body))...)
	over := append(bytes.Clone(padded), ' ')
	if r := w.hook(c.callback, over, w.provider.sign("whd_1", over, time.Now())); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("one byte over the limit: answered %d %s", r.status, r.body)
	}
	w.now(op, "running")

	var peak atomic.Uint64
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var refused atomic.Int64
	var forgers sync.WaitGroup
	goOn := make(chan struct{})
	for range 100 {
		forgers.Go(func() {
			if sent, status := w.endless(2<<30, goOn); status == http.StatusRequestEntityTooLarge && sent < 64<<20 {
				refused.Add(1)
			} else {
				t.Errorf("after %d bytes the answer is %d", sent, status)
			}
		})
	}
	// The others are served while every forger has sent nearly what is allowed.
	time.Sleep(time.Second)
	for i := range 20 {
		progress := event{id: fmt.Sprint("whd_p", i), said: said{task: c.task, state: "processing", cost: fmt.Sprint("0.", i+1)}}
		if r := w.callback(c.callback, progress); r.status != http.StatusAccepted || r.took > 5*time.Second {
			t.Errorf("a small callback is answered %d after %s", r.status, r.took)
		}
	}
	time.Sleep(time.Second)
	close(goOn)
	forgers.Wait()
	close(stop)
	<-watched
	grown := int64(peak.Load()) - int64(before.HeapAlloc)
	t.Logf("%d of 100 refused, the heap grew by up to %d MiB", refused.Load(), grown>>20)
	if most := int64(256 << 20); grown > most {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, most>>20)
	}
	w.now(op, "running")
	w.want(http.StatusAccepted, w.hook(c.callback, padded, w.provider.sign("whd_1", padded, time.Now())))
	w.now(op, "succeeded")
}

// endless sends a forged callback in chunks, of which it does not say how many
// there are, until it is answered; it gives what was sent and the status. It
// pauses just below the limit.
func (w *world) endless(most int64, goOn <-chan struct{}) (sent int64, status int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.node.APIURL(), "http://"))
	if err != nil {
		return 0, 0
	}
	defer conn.Close()
	answered := make(chan int, 1)
	go func() {
		answer := make([]byte, len("HTTP/1.1 413"))
		_, _ = io.ReadFull(conn, answer)
		_, _ = fmt.Sscanf(string(answer), "HTTP/1.1 %d", &status)
		answered <- status
	}()
	fmt.Fprintf(conn, "POST /hooks/up HTTP/1.1\r\nHost: pawl\r\nContent-Type: application/json\r\nX-Webhook-Signature: AAAA\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := append([]byte("10000\r\n"), append(bytes.Repeat([]byte("x"), 64<<10), "\r\n"...)...)
	for sent < most {
		if sent > 7<<19 {
			<-goOn
		}
		n, err := conn.Write(chunk)
		sent += int64(n)
		if err != nil || len(answered) > 0 {
			break
		}
	}
	return sent, <-answered
}

// Keys with look-alikes are refused, and none is trimmed, folded or cut into
// another (1-product A2, O-045).
func TestO045LookAlikeKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	submit := func(key string) reply {
		return w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", key)
	}
	for _, key := range []string{
		"caf\u00e9", "cafe\u0301", "CAF\u00c9", "caf\u00e9 ", strings.Repeat("k", 300), strings.Repeat("k", 256), `"cafe "`, "cafe\u00a0", "c afe", "\u0441afe",
	} {
		if r := submit(key); r.status != http.StatusBadRequest || r.at("reason") == "" {
			t.Errorf("%q: answered %d %s", key, r.status, r.body)
		}
	}
	if n := len(w.get("/v1/operations").items()); n != 0 {
		t.Errorf("%d operations", n)
	}
	long := strings.Repeat("k", 254)
	seen := map[string]string{}
	for _, key := range []string{"cafe", "CAFE", "Cafe", long, long + "k", long + "K"} {
		op := w.want(http.StatusAccepted, submit(key)).at("id")
		if other, taken := seen[op]; taken {
			t.Errorf("%.20q and %.20q are one key", key, other)
		}
		seen[op] = key
	}
	w.money("100", "6")
}

// The envelope says success and the task inside failed: three facts, of which
// the task's own decides (O-046).
func TestO046EnvelopeSaysSuccess(t *testing.T) {
	t.Parallel()
	for name, envelope := range map[string]string{"200": `"code":200,"msg":"success"`, "0": `"code":0,"msg":"SUCCEED"`, "0 in words": `"code":"0","msg":"SUCCEED"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "media-v2", reading(20*time.Millisecond, 50*time.Millisecond, time.Hour))
			w.endpoint()
			w.provider.script(nil, func(int, string) *answer {
				return &answer{status: 200, body: json.RawMessage(`{` + envelope + `,"request_id":"r","data":{"taskId":"task-1","state":"failed","settled":false,"errorCode":"invalid_request","errorMessage":"pixel size invalid"}}`)}
			})
			op := w.submit("k")
			if r := w.state(op, "failed"); r.at("error.code") != "invalid_request" || r.at("error.message") != "pixel size invalid" {
				t.Errorf("error %s", r.at("error"))
			}
			w.money("100", "0")
			w.line(op, "money release", 1)
			w.told(op, "operation.running", "operation.failed")
		})
	}
}

// What passes the door passes the store, a retry, a dead letter and its replay,
// and comes out whole (2-contracts §1 limits, O-047).
func TestO047FitsTheDoorAndTheQueueBehindIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint("policy", quickly)
	var mu sync.Mutex
	tries := map[string]int{}
	w.sink.script(func(_ int, d delivery) (int, string) {
		if d.kind != "operation.succeeded" {
			return http.StatusOK, ""
		}
		mu.Lock()
		defer mu.Unlock()
		tries[d.id]++
		switch tries[d.id] {
		case 1:
			return http.StatusServiceUnavailable, "" // again
		case 2:
			return http.StatusUnauthorized, "" // dead
		}
		return http.StatusOK, "" // by hand
	})
	for _, size := range []int{64 << 10, 127 << 10, 129 << 10, 1<<20 - 1, 1 << 20} {
		order := job("a red kite")
		order["metadata"] = map[string]string{"note": strings.Repeat("m", 15<<10)}
		op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", order, "Idempotency-Key", fmt.Sprint("k", size))).at("id")
		task := w.state(op, "running").at("task_id")
		frame := `{"type":"task.updated","task":"` + task + `","state":"succeeded","cost":"1","settled":true,"result":{"log":"%s"}}`
		log := strings.Repeat("<&>é", size)[:size-len(frame)+2]
		log = strings.ToValidUTF8(log, "?")
		body := fmt.Sprintf(frame, log)
		if len(body) != size {
			t.Fatalf("the body has %d bytes, want %d", len(body), size)
		}
		w.want(http.StatusAccepted, w.raw("", "e-"+task, body))
		if r := w.now(op, "succeeded"); r.at("result.log") != log {
			t.Errorf("%d: the result has %d bytes, want %d", size, len(r.at("result.log")), len(log))
		}
		kept := w.get("/v1/events/" + w.get("/v1/events?direction=inbound&operation=" + op).items()[0].at("id"))
		if raw, _ := base64.StdEncoding.DecodeString(kept.at("body")); string(raw) != body {
			t.Errorf("%d: %d bytes are kept", size, len(raw))
		}
		dead := w.deliveries(op, 1, "dead")[0]
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/deliveries/"+dead.at("id")+"/retry", nil))
		w.deliveries(op, 2, "delivered")
		w.wholeThrice(op, log)
	}
}

// wholeThrice: the end of an operation was sent three times with the same bytes,
// with its result or, where that is too large, the address of it.
func (w *world) wholeThrice(op, log string) {
	w.Helper()
	var sent []delivery
	for _, d := range w.sink.attempts() {
		if d.op == op && d.kind == "operation.succeeded" {
			sent = append(sent, d)
		}
	}
	if len(sent) != 3 || sent[0].body != sent[1].body || sent[0].body != sent[2].body || len(sent[0].body) > 256<<10 {
		w.Fatalf("%d attempts of %d bytes", len(sent), len(sent[0].body))
	}
	var told struct {
		Data struct {
			Metadata map[string]string
			Result   struct{ Log, Href string }
		}
	}
	if err := json.Unmarshal([]byte(sent[0].body), &told); err != nil || len(told.Data.Metadata["note"]) != 15<<10 {
		w.Errorf("sent %.200s, %v", sent[0].body, err)
	}
	got := told.Data.Result.Log
	if href := told.Data.Result.Href; href != "" && len(log) > 200<<10 {
		got = w.get(href).at("result.log")
	}
	if got != log {
		w.Errorf("a result of %d bytes is told with %d", len(log), len(got))
	}
}

// Successes are the large ones: all within the limit are taken, and one above it
// is shown with its reason and makes the task be read (1-product C4, C6; O-048).
func TestO048OnlySuccessesAreLarge(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		links := make([]string, 64)
		for i := range links {
			links[i] = fmt.Sprintf("https://cdn.example.com/out/%d.png?sig=%s", i, strings.Repeat("s", 200))
		}
		result := func(size int) string {
			text, _ := json.Marshal(map[string]any{"urls": links, "logs": strings.Repeat("l", size)})
			return string(text)
		}
		for i, c := range []struct {
			state, code string
			size        int
		}{{"failed", "oom", 0}, {"succeeded", "", 400 << 10}, {"succeeded", "", 3 << 20}} {
			op, call := w.running(fmt.Sprint("k", i))
			end := said{task: call.task, state: c.state, code: c.code, message: strings.Repeat("m", 2<<10), cost: "0.6", settled: true}
			if c.size > 0 {
				end.result = result(c.size)
			}
			w.want(http.StatusAccepted, w.callback(call.callback, event{id: fmt.Sprint("e", i), said: end}))
			if r := w.now(op, c.state); len(r.at("result.logs")) != c.size {
				w.Errorf("the result has %d bytes of logs, want %d", len(r.at("result.logs")), c.size)
			}
		}
		w.pass(10 * time.Second)
		if n := len(w.provider.readAt()); n != 0 {
			w.Errorf("%d reads, want none", n)
		}

		op, call := w.running("too-large")
		end := done(call.task)
		w.provider.say(end)
		end.result = result(4 << 20)
		large := event{id: "e-large", said: end}
		// Of an address that names no operation nothing follows.
		w.want(http.StatusRequestEntityTooLarge, w.callback("", large))
		w.pass(10 * time.Second)
		w.now(op, "running")
		w.want(http.StatusRequestEntityTooLarge, w.callback(call.callback, large))
		w.pass(time.Second)
		if r := w.now(op, "succeeded"); r.at("result.ok") != "true" || len(w.provider.readAt()) != 1 {
			w.Errorf("after %d reads: %s", len(w.provider.readAt()), r.body)
		}
		w.line(op, "callback hint read_due", 1)
		up := w.get("/v1/sources/up")
		if got := up.at("counts.unstored.too_large"); got != "2" {
			w.Errorf("%s are shown as too large, want 2", got)
		}
		for _, s := range up.list("samples") {
			if s.at("reason") != "too_large" || s.at("status") != "413" {
				w.Errorf("sample %v", s.fields)
			}
		}
		// Repeats make no flood of reads.
		for range 5 {
			w.want(http.StatusRequestEntityTooLarge, w.callback(call.callback, large))
		}
		w.pass(10 * time.Second)
		if n := len(w.provider.readAt()); n != 1 {
			w.Errorf("%d reads, want 1", n)
		}
	}, func(_ *config.Config, u *config.Upstream) { u.Read.First, u.Read.Max = time.Hour, time.Hour })
}
