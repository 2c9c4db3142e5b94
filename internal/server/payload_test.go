package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends a body as it is, signed.
func (w *world) raw(address, id, body string) reply {
	w.Helper()
	return w.hook(address, []byte(body), w.provider.sign(id, []byte(body), time.Now()))
}

// Ids are texts, whatever they look like (O-041).
func TestO041TaskIDsAreTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	for i, id := range []string{`9007199254740993`, `9007199254740992`, `18446744073709551615`, `"00123"`, `123`} {
		w.provider.script(func(int, create) *answer {
			return &answer{status: 202, body: map[string]any{"task": json.RawMessage(id), "state": "queued"}}
		}, nil)
		op := w.submit(fmt.Sprint("k", i))
		if got := w.state(op, "running").at("task_id"); got != strings.Trim(id, `"`) {
			t.Errorf("task %s became %s", id, got)
		}
		event := fmt.Sprintf(`{"type":"task.updated","task":%s,"state":"succeeded","cost":"1","settled":true,"result":{"n":9007199254740993}}`, id)
		w.want(http.StatusAccepted, w.raw("", fmt.Sprint("e", i), event))
		if r := w.now(op, "succeeded"); !strings.Contains(r.body, `{"n":9007199254740993}`) {
			t.Errorf("the result lost digits: %s", r.body)
		}
	}
}

// A body with a name twice has no one meaning (O-042); nor have others that
// lack what an event needs.
func TestO042MalformedBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	op, c := w.running("k")
	for i, tc := range []struct{ body, reason string }{
		{`{"type":"task.updated","task":"task-1","state":"succeeded","STATE":"failed","state":"succeeded"}`, "malformed_json"},
		{`{"type":"task.updated","task":"task-1","state":"succeeded"} {}`, "malformed_json"},
		{`{"type":"task.updated","task":"task-1"`, "malformed_json"},
		{`{"type":"task.updated","state":"succeeded"}`, "missing_task"},
		{`{"type":"task.updated","task":"task-1"}`, "missing_state"},
		{`{"task":"task-1","state":"succeeded"}`, "missing_type"},
		{`{"type":"task.updated","task":"task-1","state":"succeeded","cost":"much"}`, "bad_cost"},
		{strings.Repeat(`[`, 65) + strings.Repeat(`]`, 65), "malformed_json"},
	} {
		if r := w.raw(c.callback, fmt.Sprint("e", i), tc.body); r.status != http.StatusBadRequest || r.at("reason") != tc.reason {
			t.Errorf("%.80s: answered %d %s, want 400 %s", tc.body, r.status, r.at("reason"), tc.reason)
		}
	}
	w.now(op, "running")
	events := w.get("/v1/events?verdict=rejected").items()
	if len(events) != 8 {
		t.Fatalf("%d events are stored, want 8", len(events))
	}
	one := w.get("/v1/events/" + events[7].at("id"))
	if body, _ := base64.StdEncoding.DecodeString(one.at("body")); !strings.Contains(string(body), `"STATE":"failed"`) {
		t.Errorf("the bytes that are kept: %s", body)
	}
	if strings.Contains(one.at("headers"), "webhook-signature") {
		t.Error("a signature is kept")
	}
	w.finish(op, c)
}

// NUL in a text of the provider is kept from nobody (O-043).
func TestO043NUL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	op, c := w.running("k")
	w.want(http.StatusAccepted, w.raw(c.callback, "e1", `{"type":"task.updated","task":"task-1","state":"failed","error":{"code":"oom","message":"out of\u0000memory"}}`))
	r := w.now(op, "failed")
	if message := r.at("error.message"); !strings.Contains(message, "out of") || !strings.Contains(message, "memory") || strings.Contains(message, "\x00") {
		t.Errorf("message %q", message)
	}
	w.told(op, "operation.running", "operation.failed")
}

// The envelope says success, the task inside failed (O-046).
func TestO046EnvelopeAndTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", reading(20*time.Millisecond, 50*time.Millisecond, time.Hour))
	op, c := w.running("k")
	w.provider.say(said{task: c.task, state: "failed", code: "invalid_request", message: "pixel size invalid"})
	if r := w.state(op, "failed"); r.at("error.code") != "invalid_request" || r.at("error.message") != "pixel size invalid" {
		t.Errorf("error %s", r.at("error"))
	}
	w.money("100", "0")
}

// What passes the door passes the store and the way out (O-047, O-048).
func TestO047LargeResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	for i, size := range []int{64 << 10, 127 << 10, 129 << 10, 250 << 10} {
		op, c := w.running(fmt.Sprint("k", i))
		end := done(c.task)
		end.result = fmt.Sprintf(`{"log":%q}`, strings.Repeat("x", size))
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e-" + c.task, said: end}))
		w.told(op, "operation.running", "operation.succeeded")
		if got := len(w.operation(op).at("result.log")); got != size {
			t.Errorf("the result has %d bytes, want %d", got, size)
		}
	}
	op, c := w.running("huge")
	end := done(c.task)
	end.result = fmt.Sprintf(`{"log":%q}`, strings.Repeat("x", 3<<20))
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e-huge", said: end}))
	if r := w.now(op, "succeeded"); len(r.at("result.log")) != 3<<20 {
		t.Errorf("the result has %d bytes", len(r.at("result.log")))
	}
}

// The state is the state, with or without a result (O-054).
func TestO054StateWithoutResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	for state, s := range map[string]said{
		"failed":    {state: "failed"},
		"canceled":  {state: "canceled"},
		"expired":   {state: "expired"},
		"succeeded": {state: "succeeded", cost: "1", settled: true},
	} {
		op, c := w.running("k-" + state)
		s.task = c.task
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e-" + c.task, said: s}))
		w.now(op, state)
		if found := w.get("/v1/operations?state=" + state).items(); len(found) != 1 || found[0].at("id") != op {
			t.Errorf("%s: the list has %d operations", state, len(found))
		}
		if state == "succeeded" {
			w.review(op, "no_result")
		} else {
			w.review(op)
		}
	}
}
