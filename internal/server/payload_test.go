package server

import (
	"encoding/base64"
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

// A body that lacks what an event needs, or has no one meaning, is kept and
// changes nothing (7-rules §1, line 4).
func TestMalformedBodies(t *testing.T) {
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
