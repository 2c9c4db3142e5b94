package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// inbound gives "verdict reason" of the stored inbound events, newest first.
func (w *world) inbound(query string) []string {
	w.Helper()
	var all []string
	for _, e := range w.get("/v1/events?direction=inbound" + query).items() {
		all = append(all, strings.TrimSpace(e.at("verdict")+" "+e.at("reason")))
	}
	return all
}

func (w *world) stored(query string, want ...string) {
	w.Helper()
	if got := w.inbound(query); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("stored events%s: %v, want %v", query, got, want)
	}
}

func done(task string) said {
	return said{task: task, state: "succeeded", cost: "0.6", settled: true, version: 2, result: `{"ok":true}`}
}

// An event of a task that nobody knows is parked, and matched as soon as the
// create's answer teaches the task (1-product C5).
func TestOrphanIsMatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	reached, open := w.provider.gate()
	op := w.submit("k")
	<-reached
	first := w.want(http.StatusAccepted, w.callback("", event{id: "e-progress", said: said{task: "task-1", state: "processing", progress: "0.5"}}))
	second := w.want(http.StatusAccepted, w.callback("", event{id: "e-end", said: done("task-1")}))
	if first.at("verdict") != "orphan" || second.at("verdict") != "orphan" {
		t.Errorf("answered %s and %s", first.body, second.body)
	}
	w.want(http.StatusOK, w.callback("", event{id: "e-end", said: done("task-1")}))
	w.now(op, "pending")
	w.stored("", "orphan unknown_task", "orphan unknown_task")
	open()
	w.state(op, "succeeded")
	w.told(op, "operation.running", "operation.succeeded")
	w.money("99.4", "0")
	w.stored("", "applied state", "applied progress")
	lines := slices.DeleteFunc(w.timeline(op), func(l string) bool { return l == "attempt" || strings.HasPrefix(l, "money") })
	if want := []string{
		"submitted", "create", "accepted", "event operation.running", "callback applied matched: progress",
		"callback applied matched: state", "event operation.succeeded",
	}; !slices.Equal(lines, want) {
		t.Errorf("timeline %q, want %q", lines, want)
	}
}

// A source may refuse what it cannot match (1-product C5).
func TestOrphanIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", func(_ *config.Config, u *config.Upstream) { u.Orphans = config.OrphansReject })
	e := event{id: "whd_1", said: done("task-1")}
	if r := w.want(http.StatusBadRequest, w.callback("", e)); r.at("reason") != "unknown_task" {
		t.Errorf("answered %s", r.body)
	}
	w.stored("", "rejected unknown_task")
	op, _ := w.running("k")
	w.want(http.StatusAccepted, w.callback("", e)) // its key was left free
	w.now(op, "succeeded")
}

// A parked event becomes a review after the grace time (1-product C5).
func TestOrphanOverdue(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		e := w.want(http.StatusAccepted, w.callback("", event{id: "whd_1", said: done("nobody")})).at("event_id")
		w.pass(14 * time.Second)
		if n := len(w.get("/v1/reviews?open=true").items()); n != 0 {
			w.Errorf("%d reviews within the grace time", n)
		}
		w.pass(20 * time.Second)
		open := w.get("/v1/reviews?open=true").items()
		if len(open) != 1 || open[0].at("reason") != "orphan" || open[0].at("event_id") != e || open[0].at("owner") != "media team" {
			w.Fatalf("reviews: %v", open)
		}
		resolve := func(decision string) reply {
			return w.call(http.MethodPost, "/v1/reviews/"+open[0].at("id")+"/resolve", map[string]string{"decision": decision})
		}
		w.want(http.StatusBadRequest, resolve("created"))
		w.want(http.StatusOK, resolve("discard"))
		w.want(http.StatusConflict, resolve("discard"))
	}, func(_ *config.Config, u *config.Upstream) { u.Grace = 15 * time.Second })
}

// What is not signed well changes and stores nothing but a counter (1-product
// C1, C2).
func TestForgedCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	version := w.operation(op).at("version")
	body := w.provider.render(event{id: "whd_1", said: done(c.task)})
	signed := func(at time.Time, change func(http.Header)) http.Header {
		h := w.provider.sign("whd_1", body, at)
		change(h)
		return h
	}
	now, none := time.Now(), func(http.Header) {}
	forged := map[string]http.Header{
		"other bytes":     signed(now, func(h http.Header) { h.Set("X-Webhook-Signature", "AAAA"+h.Get("X-Webhook-Signature")[4:]) }),
		"no signature":    signed(now, func(h http.Header) { h.Del("X-Webhook-Signature") }),
		"other timestamp": signed(now, func(h http.Header) { h.Set("X-Webhook-Timestamp", fmt.Sprint(now.Unix()-1)) }),
		"stale":           signed(now.Add(-302*time.Second), none),
		"future":          signed(now.Add(310*time.Second), none),
	}
	for name, h := range forged {
		if r := w.hook(c.callback, body, h); r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: answered %d %s", name, r.status, r.body)
		}
	}
	w.stored("")
	if r := w.now(op, "running"); r.at("version") != version {
		t.Errorf("the version went from %s to %s", version, r.at("version"))
	}
	if got := w.metric(`pawl_inbound_events_total{source="up",verdict="refused"}`); got != fmt.Sprint(len(forged)) {
		t.Errorf("%s refusals were counted, want %d", got, len(forged))
	}
	w.want(http.StatusAccepted, w.hook(c.callback, body, signed(now, none)))
	w.now(op, "succeeded")
}

// An event that names another task than its address is refused and recorded,
// and its key is left free (1-product C7).
func TestCallbackNamesAnotherTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.endpoint()
	a, ca := w.running("a")
	b, cb := w.running("b")
	e := event{id: "whd_1", said: done(cb.task)}
	if r := w.want(http.StatusBadRequest, w.callback(ca.callback, e)); r.at("reason") != "task_mismatch" {
		t.Errorf("answered %s", r.body)
	}
	w.want(http.StatusBadRequest, w.callback(ca.callback, event{id: "whd_2", said: done("nobody")}))
	w.now(a, "running")
	w.now(b, "running")
	w.money("100", "2")
	w.line(a, "callback rejected task_mismatch", 2)
	w.want(http.StatusAccepted, w.callback(cb.callback, e))
	w.now(b, "succeeded")
	w.stored("&operation="+a, "rejected task_mismatch", "rejected task_mismatch")
	w.told(a, "operation.running")
	w.money("99.4", "1")
}

// The first end stays; another one is a conflict for a person (1-product D2,
// O-051).
func TestO051ConflictingEnd(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"media-v2", "body-timestamp"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dialect)
			w.endpoint()
			op, c := w.running("k")
			end := done(c.task)
			end.cost = "1"
			w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: end}))
			failed := event{id: "e2", said: said{task: c.task, state: "failed", code: "timeout", version: 3}}
			r := w.want(http.StatusOK, w.callback(c.callback, failed))
			if r.at("conflict") != "true" || r.at("received") != "true" {
				t.Errorf("answered %s", r.body)
			}
			if r := w.now(op, "succeeded"); r.at("error") != "" {
				t.Errorf("the first end got an error: %s", r.body)
			}
			w.review(op, "conflict")
			w.money("99", "0")
			w.line(op, "callback conflict conflict", 1)
			w.told(op, "operation.running", "operation.succeeded", "operation.review.opened")
			w.want(http.StatusOK, w.callback(c.callback, failed)) // a duplicate now
			id := w.get("/v1/reviews?open=true").items()[0].at("id")
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+id+"/resolve", `{"decision":"keep","note":"asked them"}`))
			w.review(op)
			w.told(op, "operation.running", "operation.succeeded", "operation.review.opened", "operation.review.closed")
		})
	}
}

// A state word that nobody knows is refused and kept, and leaves the key free
// (2-contracts §1, 7-rules R15).
func TestUnknownStateInCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	version := w.operation(op).at("version")
	odd := event{id: "whd_1", said: said{task: c.task, state: "PAUSED_FOR_REVIEW"}}
	for range 2 {
		if r := w.want(http.StatusBadRequest, w.callback(c.callback, odd)); r.at("reason") != "unknown_state" {
			t.Errorf("answered %s", r.body)
		}
	}
	w.stored("", "unknown_state unknown_state", "unknown_state unknown_state")
	w.line(op, "callback unknown_state unknown_state", 2)
	if r := w.now(op, "running"); r.at("version") != version {
		t.Errorf("the version rose to %s", r.at("version"))
	}
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "whd_1", said: done(c.task)}))
	w.now(op, "succeeded")
}

// What comes late changes nothing: by version where there is one, by rank
// otherwise (1-product D2, O-049, O-050).
func TestO049O050LateState(t *testing.T) {
	t.Parallel()
	for dialect, late := range map[string]said{
		"media-v2":       {state: "processing"},
		"body-timestamp": {state: "running", version: 1},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dialect)
			w.endpoint()
			op, c := w.running("k")
			w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e2", said: done(c.task)}))
			version := w.operation(op).at("version")
			late.task = c.task
			if r := w.want(http.StatusOK, w.callback(c.callback, event{id: "e1", said: late})); r.at("stale") != "true" {
				t.Errorf("answered %s", r.body)
			}
			if r := w.now(op, "succeeded"); r.at("version") != version || r.at("upstream_state") != "succeeded" {
				t.Errorf("version %s, upstream_state %s", r.at("version"), r.at("upstream_state"))
			}
			w.line(op, "callback stale finished", 1)
			w.told(op, "operation.running", "operation.succeeded")
		})
	}
	t.Run("O-050", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "media-v2")
		for n, order := range [][]string{{"processing", "failed"}, {"failed", "processing"}} {
			op, c := w.running(fmt.Sprint("k", n))
			for i, state := range order {
				w.callback(c.callback, event{id: fmt.Sprintf("e%d-%d", n, i), said: said{task: c.task, state: state}})
			}
			w.now(op, "failed")
		}
		w.money("100", "0")
	})
	t.Run("old version while running", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "body-timestamp")
		op, c := w.running("k")
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e5", kind: "ai.task.updated", said: said{task: c.task, state: "running", version: 5}}))
		if r := w.want(http.StatusOK, w.callback(c.callback, event{id: "e4", said: said{task: c.task, state: "failed", version: 4}})); r.at("stale") != "true" {
			t.Errorf("answered %s", r.body)
		}
		w.now(op, "running")
		w.line(op, "callback stale old_version", 1)
	})
}

// The same event id with another outcome is a duplicate, and a person is told
// (7-rules §2).
func TestRepeatWithAnotherBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "whd_1", said: done(c.task)}))
	r := w.want(http.StatusOK, w.callback(c.callback, event{id: "whd_1", said: said{task: c.task, state: "failed"}}))
	if r.at("duplicate") != "true" {
		t.Errorf("answered %s", r.body)
	}
	w.now(op, "succeeded")
	w.review(op, "body_differs")
	w.money("99.4", "0")
}

// An event of a type that nobody knows is kept for later (7-rules R14).
func TestUnknownType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	op, c := w.running("k")
	odd := event{id: "evt_1", kind: "ai.task.exploded", said: done(c.task)}
	for range 2 {
		if r := w.want(http.StatusAccepted, w.callback(c.callback, odd)); r.at("verdict") != "unknown_type" {
			t.Errorf("answered %s", r.body)
		}
	}
	w.now(op, "running")
	w.stored("", "unknown_type unknown_type", "unknown_type unknown_type")
	if open := w.get("/v1/reviews?open=true").items(); len(open) != 1 || open[0].at("reason") != "unknown_type" {
		t.Errorf("reviews: %v", open)
	}
	odd.kind = ""
	w.want(http.StatusAccepted, w.callback(c.callback, odd)) // the key is free
	w.now(op, "succeeded")
}

// An event that only shows progress never moves the state (7-rules R12).
func TestProgressNamesAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	op, c := w.running("k")
	e := event{id: "e1", kind: "task.progress", said: done(c.task)}
	e.progress = "0.75"
	w.want(http.StatusAccepted, w.callback(c.callback, e))
	if r := w.now(op, "running"); r.at("progress") != "0.75" {
		t.Errorf("progress %s", r.at("progress"))
	}
	w.line(op, "callback applied progress_names_an_end", 1)
	w.money("100", "1")
}

// The dialect has one payload version (7-rules R16).
func TestPayloadVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	body := w.provider.render(event{id: "whd_1", said: done(c.task)})
	for _, version := range []string{"1", "3", ""} {
		h := w.provider.sign("whd_1", body, time.Now())
		h.Del("X-Webhook-Payload-Version")
		if version != "" {
			h.Set("X-Webhook-Payload-Version", version)
		}
		if r := w.want(http.StatusBadRequest, w.hook(c.callback, body, h)); r.at("reason") != "payload_version" {
			t.Errorf("version %q: answered %s", version, r.body)
		}
	}
	w.now(op, "running")
	w.line(op, "callback rejected payload_version", 3)
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "whd_1", said: done(c.task)}))
	w.now(op, "succeeded")
}

// What cannot be an event of a source is answered without being judged
// (2-contracts §1).
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	_, c := w.running("k")
	body := w.provider.render(event{id: "whd_1", said: done(c.task)})
	h := w.provider.sign("whd_1", body, time.Now())
	token := c.callback[strings.LastIndex(c.callback, "/")+1:]
	flip := map[byte]string{'0': "1"}[token[0]]
	if flip == "" {
		flip = "0"
	}
	for path, reason := range map[string]string{
		"/hooks/nobody":                     "unknown_source",
		"/hooks/nobody/" + token:            "unknown_source",
		"/hooks/up/" + flip + token[1:]:     "unknown_token",
		"/hooks/up/" + token + "0":          "unknown_token",
		"/hooks/up/" + token[:len(token)-1]: "unknown_token",
	} {
		if r := w.hook(path, body, h); r.status != http.StatusNotFound || r.at("reason") != reason {
			t.Errorf("%s: answered %d %s", path, r.status, r.body)
		}
	}
	if r := w.send(http.MethodGet, w.hookURL(c.callback), nil, nil); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "POST" {
		t.Errorf("GET: answered %d, Allow %q", r.status, r.header.Get("Allow"))
	}
	for contentType, status := range map[string]int{
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json;": 202, "": 202, "application/json; charset=utf-8": 202,
	} {
		id := fmt.Sprintf("whd_type_%d", len(contentType))
		body := w.provider.render(event{id: id, said: said{task: c.task, state: "processing", cost: fmt.Sprintf("0.%d", 1+len(contentType))}})
		h := w.provider.sign(id, body, time.Now())
		h.Del("Content-Type")
		if contentType != "" {
			h.Set("Content-Type", contentType)
		}
		if r := w.hook(c.callback, body, h); r.status != status {
			t.Errorf("content type %q: answered %d %s, want %d", contentType, r.status, r.body, status)
		}
	}
	w.stored("&verdict=rejected")
}
