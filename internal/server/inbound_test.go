package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/upstream"
)

// A source holds so many parked events and then answers 503; what it refuses
// leaves nothing, and a match makes room (7-rules R18, 1-product C5).
func TestOrphanLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(_ *config.Config, u *config.Upstream) { u.OrphanLimit = 3 })
	send := func(n int) reply {
		return w.callback("", event{id: fmt.Sprint("e", n), said: done(fmt.Sprint("task-", n))})
	}
	for n := 1; n <= 3; n++ {
		w.want(http.StatusAccepted, send(n))
	}
	over := w.want(http.StatusServiceUnavailable, send(4))
	if over.at("reason") != "too_many_orphans" || over.header.Get("Retry-After") != "60" {
		t.Errorf("answered %s, Retry-After %q", over.body, over.header.Get("Retry-After"))
	}
	w.want(http.StatusOK, send(2)) // a repeat is no further one
	w.stored("", "orphan unknown_task", "orphan unknown_task", "orphan unknown_task")
	if got := w.get("/v1/sources/up").at("parked"); got != "3" {
		t.Errorf("%s are parked, want 3", got)
	}
	if got := w.metric(`pawl_inbound_unstored_total{reason="too_many_orphans",source="up"}`); got != "1" {
		t.Errorf("%s refusals were counted", got)
	}
	op := w.submit("k") // the provider makes task-1 of it
	w.state(op, "succeeded")
	w.want(http.StatusAccepted, send(4))
	w.want(http.StatusServiceUnavailable, send(5))
}

// A source that is held to a rate gets 429 above it, and what is refused leaves
// nothing (2-contracts §1).
func TestCallbackRate(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		_, c := w.running("k")
		progress := func(n int) reply {
			return w.callback(c.callback, event{id: fmt.Sprint("e", n), said: said{task: c.task, state: "processing", progress: fmt.Sprintf("0.%d", n)}})
		}
		w.pass(time.Minute)
		w.want(http.StatusAccepted, progress(1))
		w.want(http.StatusAccepted, progress(2))
		if r := w.want(http.StatusTooManyRequests, progress(3)); r.header.Get("Retry-After") != "1" || r.at("reason") != "rate_limited" {
			w.Errorf("answered %s, Retry-After %q", r.body, r.header.Get("Retry-After"))
		}
		// A forger does not use up what the provider may send.
		forged := w.provider.sign("e9", []byte("{}"), time.Now())
		for range 10 {
			w.want(http.StatusUnauthorized, w.hook(c.callback, []byte(`{"x":1}`), forged))
		}
		w.pass(time.Second)
		w.want(http.StatusAccepted, progress(3))
		w.stored("", "applied progress", "applied progress", "applied progress")
	}, func(_ *config.Config, u *config.Upstream) { u.CallbackRate = 2 })
}

// What cannot be verified is counted by reason and leaves a bounded sample that
// tells nothing of what was sent (1-product C4).
func TestRejectsAreVisible(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		_, c := w.running("k")
		body := []byte(`{"secret":"canary"}`)
		header := w.provider.sign("evt_1", body, time.Now())
		header.Set("Webhook-Signature", "v1,"+strings.Repeat("A", 43)+"=")
		for range 40 {
			w.want(http.StatusUnauthorized, w.hook(c.callback, body, header))
			w.pass(500 * time.Millisecond)
		}
		stale := w.provider.sign("evt_2", body, time.Now().Add(-time.Hour))
		w.want(http.StatusUnauthorized, w.hook(c.callback, body, stale))
		w.want(http.StatusNotFound, w.hook("/hooks/up/nonsense", body, header))
		w.want(http.StatusUnsupportedMediaType, w.hook(c.callback, body, http.Header{"Content-Type": {"text/plain"}}))
		w.want(http.StatusRequestEntityTooLarge, w.hook(c.callback, bytes.Repeat([]byte(" "), 4<<20+1), header))
		w.want(http.StatusNotFound, w.hook("/hooks/nobody", body, header))

		up := w.get("/v1/sources/up")
		for reason, n := range map[string]string{"no_match": "40", "stale_timestamp": "1", "unknown_token": "1", "content_type": "1", "too_large": "1"} {
			if got := up.at("counts.unstored." + reason); got != n {
				w.Errorf("%s: counted %s, want %s", reason, got, n)
			}
			if got := w.metric(fmt.Sprintf(`pawl_inbound_unstored_total{reason=%q,source="up"}`, reason)); got != n {
				w.Errorf("%s: the metric says %s, want %s", reason, got, n)
			}
		}
		if got := up.at("counts.verdicts.refused"); got != "44" {
			w.Errorf("%s refusals, want 44", got)
		}
		samples := up.list("samples")
		if len(samples) != 9 { // five of the forty, and one of each other reason
			w.Errorf("%d samples, want 9: %s", len(samples), up.body)
		}
		sum := sha256.Sum256(body)
		for _, s := range samples {
			if s.at("reason") != "no_match" {
				continue
			}
			if s.at("status") != "401" || s.at("size") != fmt.Sprint(len(body)) || s.at("digest") != hex.EncodeToString(sum[:]) ||
				s.at("headers") != "[Webhook-Id Webhook-Timestamp Webhook-Signature]" {
				w.Errorf("sample %v", s.fields)
			}
		}
		if strings.Contains(up.body, "canary") || strings.Contains(up.body, "AAAA") || strings.Contains(up.body, "evt_1") {
			w.Errorf("something that was sent is shown: %s", up.body)
		}
		if got := w.get("/v1/sources/unknown").at("counts.unstored.unknown_source"); got != "1" {
			w.Errorf("%s requests to unknown sources, want 1", got)
		}
		w.stored("")
	})
}

// list is a list of objects at a name.
func (r reply) list(name string) (all []reply) {
	items, _ := r.fields[name].([]any)
	for _, v := range items {
		m, _ := v.(map[string]any)
		all = append(all, reply{fields: m})
	}
	return all
}

// mend puts another description of the upstream in force, as a newer version of
// the program would.
func (w *world) mend(change func(*upstream.Spec)) {
	w.Helper()
	settings := w.cfg.Upstreams["up"]
	spec, ok := upstream.Preset(settings.Preset)
	if !ok {
		w.Fatal("no such preset")
	}
	change(&spec)
	up, err := upstream.New("up", spec, settings)
	if err != nil {
		w.Fatal(err)
	}
	w.node.upstreams.Swap(upstream.Set{"up": up})
}

// Stored events of a type or with a word that nobody knew are judged anew once
// the description is mended: in the order received, under the same rules, each
// beside its first verdict (1-product C10).
func TestReprocess(t *testing.T) {
	inVirtualTime(t, "body-timestamp", func(w *world) {
		w.endpoint()
		op, c := w.running("k")
		second, d := w.running("k2")
		send := func(id, kind string, s said) string {
			w.Helper()
			w.pass(time.Second)
			return w.callback(c.callback, event{id: id, kind: kind, said: s}).at("event_id")
		}
		first := send("e1", "ai.task.moved", said{task: c.task, state: "running", version: 2})
		send("e2", "ai.task.moved", done(c.task)) // version 2 as well
		send("e3", "", said{task: c.task, state: "archived", version: 3, result: `{"ok":true}`})
		w.want(http.StatusBadRequest, w.callback(d.callback, event{id: "e4", said: said{task: d.task, state: "archived", version: 2}}))
		w.pass(time.Second)
		from := time.Now().UTC().Format(time.RFC3339)
		w.stored("", "unknown_state unknown_state", "unknown_state unknown_state", "unknown_type unknown_type", "unknown_type unknown_type")
		review := w.get("/v1/reviews").items()
		if len(review) != 1 || review[0].at("reason") != "unknown_type" || review[0].at("decisions") != "[reprocess discard]" {
			w.Fatalf("reviews %v", review)
		}

		w.pass(30 * time.Minute) // whether it was fresh was asked at its receipt
		again := func(body string) reply {
			w.Helper()
			return w.want(http.StatusOK, w.call(http.MethodPost, "/v1/events/reprocess", body))
		}
		if r := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/events/"+first+"/reprocess", "{}")); r.at("reprocessed.verdict") != "unknown_type" {
			w.Errorf("before it is mended: %s", r.body)
		}
		w.mend(func(s *upstream.Spec) {
			s.Callback.Types["ai.task.moved"] = upstream.EventState
		})
		dry := again(`{"dry_run":true}`)
		if dry.at("matched") != "4" || dry.at("verdicts.applied") != "2" || dry.at("verdicts.unknown_state") != "2" || dry.at("next") != "" {
			w.Errorf("dry run: %s", dry.body)
		}
		w.now(op, "running")
		if n := len(w.get("/v1/audit").items()); n != len(w.get("/v1/audit").items()) {
			w.Errorf("%d audits", n)
		}
		got := again(`{"filter":{"verdict":"unknown_type","source":"up"},"limit":1}`)
		if got.at("matched") != "1" || got.list("items")[0].at("event_id") != first || got.list("items")[0].at("verdict") != "applied" || got.at("next") == "" {
			w.Errorf("the first: %s", got.body)
		}
		if n := len(w.get("/v1/reviews").items()); n != 1 {
			w.Errorf("%d reviews with one left to know", n)
		}
		got = again(fmt.Sprintf(`{"filter":{"verdict":"unknown_type","source":"up"},"after":%q}`, got.at("next")))
		if got.at("matched") != "1" || got.list("items")[0].at("verdict") != "stale" || got.list("items")[0].at("reason") != "old_version" {
			w.Errorf("the second, of the same version: %s", got.body)
		}
		if n := len(w.get("/v1/reviews").items()); n != 0 {
			w.Errorf("%d reviews with nothing left", n)
		}

		w.mend(func(s *upstream.Spec) {
			s.Callback.Types["ai.task.moved"] = upstream.EventState
			s.States["archived"] = s.States["succeeded"]
		})
		if r := again(fmt.Sprintf(`{"filter":{"from":%q}}`, from)); r.at("matched") != "0" {
			w.Errorf("received later than all of them: %s", r.body)
		}
		if r := again(fmt.Sprintf(`{"filter":{"until":%q,"task_id":%q}}`, from, d.task)); r.at("matched") != "1" || r.at("verdicts.applied") != "1" {
			w.Errorf("one task's: %s", r.body)
		}
		w.now(second, "succeeded")
		w.now(op, "running")
		if r := again(`{}`); r.at("matched") != "1" || r.at("verdicts.applied") != "1" {
			w.Errorf("what is left: %s", r.body)
		}
		w.now(op, "succeeded")
		if r := again(`{}`); r.at("matched") != "0" {
			w.Errorf("once more: %s", r.body)
		}
		if r := again(`{"filter":{"verdict":"unknown_state"}}`); r.at("verdicts.duplicate") != "2" {
			w.Errorf("those that were judged before, by name: %s", r.body)
		}
		w.stored("", "unknown_state unknown_state", "unknown_state unknown_state", "unknown_type unknown_type", "unknown_type unknown_type")
		shown := w.get("/v1/events/" + first)
		if shown.at("verdict") != "unknown_type" || shown.at("reprocessed.verdict") != "applied" || shown.at("reprocessed.actor") == "" || shown.at("reprocessed.at") == "" {
			w.Errorf("beside each other: %s", shown.body)
		}
		w.line(op, "callback applied reprocessed: progress", 1)
		w.line(op, "callback applied reprocessed: state", 1)
		w.told(op, "operation.running", "operation.succeeded")
		w.want(http.StatusOK, w.callback(c.callback, event{id: "e3", said: said{task: c.task, state: "archived", version: 3, result: `{"ok":true}`}})) // a duplicate now
		audits := 0
		for _, a := range w.get("/v1/audit").items() {
			if a.at("action") == "event.reprocess" {
				audits++
			}
		}
		if audits != 5 {
			w.Errorf("%d audited judgments, want 5", audits)
		}
	})
}

// The decision "reprocess" of a review of unknown types judges all of them; what
// is unknown still asks again.
func TestReprocessByReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	op, c := w.running("k")
	for i, kind := range []string{"task.moved", "task.sold", "task.moved"} {
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: fmt.Sprint("e", i), kind: kind, said: said{task: c.task, state: "processing", progress: fmt.Sprintf("0.%d", i+1)}}))
	}
	w.mend(func(s *upstream.Spec) { s.Callback.Types["task.moved"] = upstream.EventState })
	decide := func() reply {
		t.Helper()
		id := w.get("/v1/reviews").items()[0].at("id")
		return w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+id+"/resolve", `{"decision":"reprocess"}`))
	}
	if r := decide(); r.at("closed_at") == "" || r.at("decision") != "reprocess" {
		t.Errorf("decided: %s", r.body)
	}
	w.line(op, "callback applied reprocessed: progress", 2)
	if n := len(w.get("/v1/reviews").items()); n != 1 {
		t.Fatalf("%d reviews with one type unknown, want 1", n)
	}
	w.mend(func(s *upstream.Spec) {
		s.Callback.Types["task.moved"], s.Callback.Types["task.sold"] = upstream.EventState, upstream.EventProgress
	})
	if r := decide(); r.at("closed_at") == "" || r.at("decision") != "reprocess" {
		t.Errorf("decided again: %s", r.body)
	}
	if n := len(w.get("/v1/reviews").items()); n != 0 {
		t.Errorf("%d reviews at the end", n)
	}
}

// Parked events, and those that a source refused to park, find their operation
// when a person has them judged anew.
func TestReprocessOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(_ *config.Config, u *config.Upstream) { u.Orphans = config.OrphansReject })
	w.want(http.StatusBadRequest, w.callback("", event{id: "e1", said: done("task-1")}))
	op, _ := w.running("k")
	e := w.get("/v1/events?direction=inbound").items()[0].at("id")
	r := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/events/"+e+"/reprocess", "{}"))
	if r.at("verdict") != "rejected" || r.at("reprocessed.verdict") != "applied" || r.at("operation_id") != op {
		t.Errorf("answered %s", r.body)
	}
	w.now(op, "succeeded")
	out := w.get("/v1/events?direction=outbound").items()[0].at("id")
	for id, want := range map[string]struct {
		status int
		reason string
	}{
		out:                              {http.StatusConflict, "not_inbound"},
		"evt_00000000000000000000000001": {http.StatusNotFound, "not_found"},
	} {
		if r := w.call(http.MethodPost, "/v1/events/"+id+"/reprocess", "{}"); r.status != want.status || r.at("reason") != want.reason {
			t.Errorf("%s: answered %s", id, r.body)
		}
	}
	w.node.upstreams.Swap(upstream.Set{})
	if r := w.call(http.MethodPost, "/v1/events/"+e+"/reprocess", "{}"); r.status != http.StatusConflict || r.at("reason") != "source_unknown" {
		t.Errorf("without its source: %s", r.body)
	}
	if r := w.call(http.MethodPost, "/v1/events/reprocess", `{"filter":{"verdict":"rejected"}}`); r.status != http.StatusOK || r.list("items")[0].at("reason") != "source_unknown" {
		t.Errorf("many, without their source: %s", r.body)
	}
}

// A tenant's own event goes to its endpoints under its own id, in their streams
// with everything else, once (2-contracts §1, 7-rules R49).
func TestPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	w.endpoint("types", []string{"order.paid"})
	w.endpoint("types", []string{"order.lost"})
	dialect := w.endpoint("scheme", "media-v2").at("id")
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+dialect+"/pause", "{}", "If-Match", `"1"`))
	publish := func(status int, body string, headers ...string) reply {
		t.Helper()
		return w.want(status, w.call(http.MethodPost, "/v1/events", body, headers...))
	}
	const order = `{"id":"order-7","type":"order.paid","data":{"total":1.10,"html":"<&>","big":9007199254740993}}`
	first := publish(http.StatusAccepted, order)
	if first.at("external_id") != "order-7" || first.at("direction") != "outbound" || first.at("data.html") != "<&>" || first.header.Get("Location") != "/v1/events/"+first.at("id") {
		t.Errorf("answered %s", first.body)
	}
	w.eventually("the event is not delivered twice", func() bool { return len(w.sink.attempts()) == 2 })
	for _, d := range w.sink.attempts() {
		var body struct {
			ID, Type string
			Sequence int64
			Data     json.RawMessage
		}
		if err := json.Unmarshal([]byte(d.body), &body); err != nil {
			t.Fatal(err)
		}
		if d.header.Get("webhook-id") != "order-7" || body.ID != "order-7" || body.Type != "order.paid" || body.Sequence != 1 ||
			string(body.Data) != `{"total":1.10,"html":"<&>","big":9007199254740993}` {
			t.Errorf("delivered %s with %v", d.body, d.header)
		}
	}
	if n := len(w.get("/v1/deliveries?endpoint=" + dialect).items()); n != 0 {
		t.Errorf("%d deliveries to a dialect that has no word for it", n)
	}

	again := publish(http.StatusAccepted, `{"type":"order.paid","id":"order-7","data":{"big":9007199254740993,"html":"<&>","total":1.1}}`)
	if again.at("id") != first.at("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same again: %s", again.body)
	}
	if r := publish(http.StatusConflict, `{"id":"order-7","type":"order.paid","data":{"total":2}}`); r.at("reason") != "event_id_taken" {
		t.Errorf("another event of that id: %s", r.body)
	}
	keyed := publish(http.StatusAccepted, `{"type":"order.paid","data":{}}`, "Idempotency-Key", "k")
	if r := publish(http.StatusAccepted, `{"type":"order.paid","data":{}}`, "Idempotency-Key", "k"); r.at("id") != keyed.at("id") || keyed.at("external_id") != "" {
		t.Errorf("under one key: %s, %s", keyed.body, r.body)
	}
	publish(http.StatusUnprocessableEntity, `{"type":"order.paid","data":2}`, "Idempotency-Key", "k")
	for _, body := range []string{
		`{"id":"a.b","type":"x","data":1}`, `{"id":"","type":"","data":1}`, `{"id":"ü","type":"x","data":1}`,
		`{"id":"` + strings.Repeat("a", 256) + `","type":"x","data":1}`, `{"type":"operation.succeeded","data":1}`,
		`{"type":"review.opened","data":1}`, `{"type":"a..b","data":1}`, `{"type":"a,b","data":1}`, `{"type":"x"}`, `{"data":1}`,
		`{"type":"` + strings.Repeat("a", 129) + `","data":1}`,
	} {
		publish(http.StatusBadRequest, body)
	}
	publish(http.StatusAccepted, `{"id":"`+strings.Repeat("a", 255)+`","type":"`+strings.Repeat("a", 128)+`","data":{}}`)

	op, _ := w.running("k2") // its events follow in the same streams
	w.told(op, "operation.running")
	w.eventually("everything is delivered", func() bool { return len(w.sink.attempts()) == 6 })
	if got := len(w.get("/v1/events?type=order.paid").items()); got != 2 {
		t.Errorf("%d events of the type are listed, want 2", got)
	}
	if r := w.get("/v1/events/" + first.at("id")); r.at("data.big") == "" || r.at("type") != "order.paid" {
		t.Errorf("read back: %s", r.body)
	}
}

// An event has 256 KiB as it is sent, and not one byte more (2-contracts §1).
func TestPublishLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	const most = 256 << 10
	// What is around the data: names, the id, the type, a time of 27 characters
	// and a sequence of 19 digits.
	around := len(`{"id":"e","type":"x","timestamp":"","sequence":,"data":{"d":""}}`) + 27 + 19
	body := func(size int) string {
		return fmt.Sprintf(`{"id":"e","type":"x","data":{"d":%q}}`, strings.Repeat("d", size-around))
	}
	if r := w.call(http.MethodPost, "/v1/events", body(most+1)); r.status != http.StatusRequestEntityTooLarge || r.at("reason") != "content_too_large" {
		t.Errorf("one byte more: answered %d %.200s", r.status, r.body)
	}
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/events", body(most)))
	w.eventually("it is delivered", func() bool { return len(w.sink.attempts()) == 1 })
	if got := len(w.sink.attempts()[0].body); got > most || got < most-19 {
		t.Errorf("%d bytes were sent", got)
	}
}

// Events are found by what they are and when they came (2-contracts §1).
func TestEventLists(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		_, c := w.running("k")
		w.pass(time.Minute)
		from := time.Now().UTC()
		w.want(http.StatusAccepted, w.callback("", event{id: "e1", said: said{task: "other", state: "processing"}}))
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e2", kind: "task.odd", said: done(c.task)}))
		w.pass(time.Minute)
		until := time.Now().UTC()
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e3", said: done(c.task)}))
		stamp := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }
		for query, want := range map[string]int{
			"": 5, "direction=inbound": 3, "direction=outbound": 2, "source=up": 3, "verdict=orphan": 1, "verdict=unknown_type": 1,
			"task_id=other": 1, "task_id=" + c.task: 2, "type=task.odd": 1, "type=operation.succeeded": 1,
			"from=" + stamp(from): 4, "until=" + stamp(until): 3, "from=" + stamp(from) + "&until=" + stamp(until): 2,
			"verdict=orphan&from=" + stamp(until): 0, "until=1969-12-31T23:59:59Z": 0, "from=1969-12-31T23:59:59Z": 5,
		} {
			if got := len(w.get("/v1/events?" + query).items()); got != want {
				w.Errorf("%q finds %d events, want %d", query, got, want)
			}
		}
		for _, query := range []string{"from=yesterday", "until=2026-01-31", "verdict=lost", "direction=up"} {
			w.want(http.StatusBadRequest, w.call(http.MethodGet, "/v1/events?"+query, nil))
		}
	})
}

// A callback may have 64 levels, and not one more (2-contracts §1).
func TestCallbackDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	_, c := w.running("k")
	body := func(levels int) string {
		inner := strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1)
		return fmt.Sprintf(`{"type":"task.progress","task":%q,"progress":0.5,"extra":%s}`, c.task, inner)
	}
	if r := w.raw(c.callback, "e65", body(65)); r.status != http.StatusBadRequest || r.at("reason") != "malformed_json" {
		t.Errorf("65 levels: answered %d %s", r.status, r.body)
	}
	w.want(http.StatusAccepted, w.raw(c.callback, "e64", body(64)))
}
