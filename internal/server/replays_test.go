package server

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// publish publishes n events of the tenant's own.
func (w *world) publish(n int) {
	w.Helper()
	for i := range n {
		w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/events", fmt.Sprintf(`{"id":"own-%d","type":"order.paid","data":{"n":%d}}`, i, i)))
	}
}

// inState waits until n deliveries are in a state, and gives them.
func (w *world) inState(state string, n int) (rows []reply) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d deliveries were never %s", n, state), func() bool {
		rows = w.get("/v1/deliveries?page_size=500&state=" + state).items()
		return len(rows) == n
	})
	return rows
}

// replay begins a replay.
func (w *world) replay(key, body string) reply {
	w.Helper()
	return w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/replays", body, "Idempotency-Key", key))
}

// replayed waits for a replay's state.
func (w *world) replayed(id, state string) (r reply) {
	w.Helper()
	w.eventually("the replay was never "+state, func() bool {
		r = w.get("/v1/replays/" + id)
		return r.at("state") == state
	})
	return r
}

// refusing makes the receiver refuse everything, or take it again.
func (w *world) refusing(yes bool) {
	w.sink.script(func(int, delivery) (int, string) {
		if yes {
			return http.StatusUnauthorized, ""
		}
		return http.StatusOK, ""
	})
}

// Dead letters are replayed by filter: counted first, paced, each once, under
// their own ids; the request is repeatable (1-product H6, 7-rules R52).
func TestReplayDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ep := w.endpoint().at("id")
	w.refusing(true)
	w.publish(30)
	w.inState("dead", 30)
	w.refusing(false)
	if r := w.replay("dry", `{"filter":{"endpoint":"`+ep+`","state":"dead"},"dry_run":true}`); r.at("state") != "done" || r.at("total") != "30" || r.at("done") != "0" {
		t.Errorf("dry run: %s", r.body)
	}
	if n := len(w.sink.attempts()); n != 30 {
		t.Errorf("the dry run sent something: %d attempts", n)
	}
	w.want(http.StatusBadRequest, w.call(http.MethodPost, "/v1/replays", `{}`))
	body := `{"filter":{"endpoint":"` + ep + `"},"rate":1000}`
	r := w.replay("k", body)
	again := w.replay("k", body)
	if again.at("id") != r.at("id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("repeated: %s", again.body)
	}
	w.want(http.StatusUnprocessableEntity, w.call(http.MethodPost, "/v1/replays", `{}`, "Idempotency-Key", "k"))
	got := w.replayed(r.at("id"), "done")
	if got.at("total") != "30" || got.at("done") != "30" || got.at("outcomes.due") != "30" || got.at("finished_at") == "" {
		t.Errorf("replay: %s", got.body)
	}
	w.inState("delivered", 30)
	bodies := map[string][]string{}
	for _, a := range w.sink.attempts() {
		bodies[a.id] = append(bodies[a.id], a.body)
	}
	for id, sent := range bodies {
		if len(sent) != 2 || sent[0] != sent[1] {
			t.Errorf("%s was sent %d times, or in two forms", id, len(sent))
		}
	}
	if n := w.metric(`pawl_replayed_total{what="deliveries"}`); n != "30" {
		t.Errorf("metric: %s", n)
	}
	if list := w.get("/v1/replays").items(); len(list) != 2 || list[0].at("id") != r.at("id") {
		t.Errorf("list: %v", list)
	}
	for _, act := range []string{"pause", "resume", "cancel"} {
		if r := w.call(http.MethodPost, "/v1/replays/"+r.at("id")+"/"+act, nil); r.status != http.StatusConflict || !strings.Contains(r.body, "replay_finished") {
			t.Errorf("%s of a finished one: %d %s", act, r.status, r.body)
		}
	}
}

// A replay that is cut by a crash goes on where it was: each dead letter is sent
// again once by it.
func TestReplayOverACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	w.refusing(true)
	w.publish(12)
	w.inState("dead", 12)
	w.refusing(false)
	id := w.replay("k", `{"rate":4}`).at("id")
	w.inState("delivered", 4)
	w.kill()
	w.start()
	got := w.replayed(id, "done")
	if got.at("total") != "12" || got.at("done") != "12" || got.at("outcomes.due") != "12" {
		t.Errorf("replay: %s", got.body)
	}
	for _, d := range w.inState("delivered", 12) {
		attempts := w.get("/v1/deliveries/" + d.at("id") + "/attempts").items()
		if len(attempts) != 2 || attempts[1].at("replay") != "true" || !strings.HasPrefix(attempts[1].at("actor"), "key_") {
			t.Errorf("attempts of %s: %v", d.at("id"), attempts)
		}
	}
}

// A replay keeps its rate, and a person may pause it, let it go on and end it.
func TestReplayIsPacedAndStopped(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		w.refusing(true)
		w.publish(40)
		w.pass(5 * time.Second)
		w.inState("dead", 40)
		w.refusing(false)
		id := w.replay("k", `{"rate":2}`).at("id")
		act := func(word string) {
			w.Helper()
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/replays/"+id+"/"+word, nil))
		}
		w.pass(4500 * time.Millisecond)
		// Two at once, then two a second; the count comes first.
		if n := len(w.get("/v1/deliveries?state=delivered").items()); n < 8 || n > 10 {
			w.Errorf("%d in 4.5 s at 2 a second", n)
		}
		act("pause")
		held := w.get("/v1/replays/" + id)
		w.pass(time.Hour)
		if r := w.get("/v1/replays/" + id); r.at("state") != "paused" || r.at("done") != held.at("done") {
			w.Errorf("paused: %s", r.body)
		}
		act("resume")
		w.pass(3 * time.Second)
		act("cancel")
		ended := w.get("/v1/replays/" + id)
		w.pass(time.Hour)
		if r := w.get("/v1/replays/" + id); r.at("state") != "canceled" || r.at("done") != ended.at("done") || r.at("done") == held.at("done") {
			w.Errorf("canceled: %s, before %s", r.body, held.body)
		}
	})
}

// A replay of one tenant touches nothing of another, and a time range bounds it.
func TestReplayIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(c *config.Config, _ *config.Upstream) { c.Tenants["other"] = config.Tenant{} })
	w.endpoint()
	w.refusing(true)
	w.publish(3)
	w.inState("dead", 3)
	after := time.Now().UTC().Add(time.Second).Format(time.RFC3339)
	for body, total := range map[string]string{
		`{"dry_run":true}`: "3",
		`{"dry_run":true,"filter":{"until":"2020-01-01T00:00:00Z"}}`:           "0",
		`{"dry_run":true,"filter":{"from":"` + after + `"}}`:                   "0",
		`{"dry_run":true,"filter":{"state":"delivered"}}`:                      "0",
		`{"dry_run":true,"what":"events"}`:                                     "0",
		`{"dry_run":true,"filter":{"event":"evt_01h455vb4pex5vsknk084sn02q"}}`: "0",
	} {
		if r := w.replay(body, body); r.at("total") != total {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	other := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/replays?tenant=other", `{"dry_run":true}`, "Idempotency-Key", "other"))
	if other.at("total") != "0" || other.at("tenant") != "other" {
		t.Errorf("another tenant's: %s", other.body)
	}
}

// A double click sends once; three requests send three times (field case O-082).
func TestO082EachReplayIsItsOwn(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		w.publish(1)
		w.pass(time.Second)
		d := w.inState("delivered", 1)[0].at("id")
		for i := range 3 {
			for range 2 { // the second click of a double click
				w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/deliveries/"+d+"/retry", nil, "Idempotency-Key", fmt.Sprint("click", i)))
			}
			w.pass(time.Minute)
		}
		if n := len(w.sink.attempts()); n != 4 {
			w.Errorf("%d sends, want the first and three replays", n)
		}
		if n := len(w.get("/v1/deliveries/" + d + "/attempts").items()); n != 4 {
			w.Errorf("%d attempts are shown", n)
		}
	})
}

// 410 disables the endpoint at once; the operator is told, the delivery is final
// and the queue is held (field case O-088).
func TestO088GoneIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ops := newReceiver(sinkSecret)
	ops.url = w.serve(ops)
	w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": ops.url, "secret": sinkSecret, "installation": true, "types": []string{"endpoint.disabled", "delivery.dead"}}))
	ep := w.endpoint().at("id")
	w.sink.script(func(int, delivery) (int, string) { return http.StatusGone, "" })
	w.publish(1) // Alone: what is on the wire at the same moment would be answered 410 as well.
	w.inState("dead", 1)
	w.publish(5)
	w.inState("pending", 4)
	w.inState("dead", 1)
	w.eventually("nobody was told", func() bool { return len(ops.attempts()) == 2 })
	var kinds []string
	for _, a := range ops.attempts() {
		kinds = append(kinds, a.kind)
		if !strings.Contains(a.body, ep) {
			t.Errorf("%s does not name the endpoint: %s", a.kind, a.body)
		}
	}
	if slices.Sort(kinds); !slices.Equal(kinds, []string{"delivery.dead", "endpoint.disabled"}) {
		t.Errorf("told %v", kinds)
	}
}

// A replay has the event's id and bytes, a fresh timestamp and the secret of now;
// it is marked, leaves a success a success, and is refused while the endpoint is
// disabled unless it is forced (field case O-093, 7-rules R37).
func TestO093ReplaySemantics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ep := w.endpoint().at("id")
	w.publish(1)
	d := w.inState("delivered", 1)[0].at("id")
	etag := func() string { return w.get("/v1/endpoints/" + ep).header.Get("ETag") }
	second := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/rotate-secret", `{"overlap":"0s"}`, "If-Match", etag())).at("secret")
	w.sink.mu.Lock()
	w.sink.secrets = []string{second}
	w.sink.mu.Unlock()
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/pause", nil, "If-Match", etag()))
	for path, body := range map[string]string{"/v1/deliveries/" + d + "/retry": `{}`, "/v1/replays": `{"filter":{"endpoint":"` + ep + `","state":"delivered"}}`} {
		if r := w.call(http.MethodPost, path, body, "Idempotency-Key", path); r.status != http.StatusConflict || !strings.Contains(r.body, "endpoint_disabled") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	// One without the endpoint in its filter goes through the rows and says so.
	all := w.replayed(w.replay("all", `{"filter":{"state":"delivered"}}`).at("id"), "done")
	if all.at("outcomes.endpoint_disabled") != "1" {
		t.Errorf("not forced: %s", all.body)
	}
	w.publish(2) // one of which is new: it waits behind the pause
	w.sink.script(func(int, delivery) (int, string) { return http.StatusInternalServerError, "" })
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/deliveries/"+d+"/retry", `{"force":true}`))
	w.eventually("it was not forced", func() bool { return len(w.sink.attempts()) == 2 })
	w.eventually("it was not recorded", func() bool { return w.get("/v1/deliveries/"+d).at("attempts") == "2" })
	w.replayed(w.replay("forced", `{"filter":{"state":"delivered"},"force":true}`).at("id"), "done")
	w.eventually("it was not forced", func() bool { return w.get("/v1/deliveries/"+d).at("attempts") == "3" })
	got := w.sink.attempts()
	if got[0].id != got[1].id || got[0].body != got[1].body || got[1].attempt != "2" || len(got) != 3 {
		t.Errorf("attempts: %+v", got)
	}
	if r := w.get("/v1/deliveries/" + d); r.at("state") != "delivered" || r.at("next_attempt_at") != "" {
		t.Errorf("the success is %s", r.body)
	}
	attempts := w.get("/v1/deliveries/" + d + "/attempts").items()
	if len(attempts) != 3 || attempts[0].at("replay") != "" || attempts[1].at("replay") != "true" || !strings.HasPrefix(attempts[1].at("actor"), "key_") {
		t.Errorf("attempts: %v", attempts)
	}
	waiting := w.inState("pending", 1)[0]
	if r := w.call(http.MethodPost, "/v1/deliveries/"+waiting.at("id")+"/retry", `{"force":true}`); r.status != http.StatusConflict || !strings.Contains(r.body, "never_sent") {
		t.Errorf("what was never sent: %d %s", r.status, r.body)
	}
}

// 200 verified events that a fault of the configuration left undone are replayed
// by range after it is mended: each counts once, however often (field case O-094).
func TestO094ReplayingStoredCallbacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ", types: [invoice.sent]"))
	w.endpoint()
	const n = 200
	for i := range n {
		w.want(http.StatusAccepted, w.paid(fmt.Sprint("evt_", i)))
	}
	w.mustReload(func(c *config.Config, _ *config.Upstream) {
		src := c.Sources["payments"]
		src.Types = append(slices.Clone(src.Types), "invoice.paid")
		c.Sources = map[string]config.Source{"payments": src}
	})
	body := `{"what":"events","rate":1000,"filter":{"source":"payments","verdict":"unknown_type","from":"2020-01-01T00:00:00Z"}}`
	first := w.replayed(w.replay("first", body).at("id"), "done")
	if first.at("total") != "200" || first.at("done") != "200" || first.at("outcomes.applied") != "200" {
		t.Errorf("first: %s", first.body)
	}
	second := w.replayed(w.replay("second", body).at("id"), "done")
	if second.at("done") != "200" || second.at("outcomes.duplicate") != "200" {
		t.Errorf("second: %s", second.body)
	}
	w.inState("delivered", n)
	sent := map[string]int{}
	for _, a := range w.sink.attempts() {
		sent[a.header.Get("webhook-id")]++
	}
	if len(sent) != n || len(w.sink.attempts()) != n {
		t.Errorf("%d events in %d attempts, want 200 in 200", len(sent), len(w.sink.attempts()))
	}
	one := w.get("/v1/events?source=payments&page_size=1").items()[0]
	if one.at("verdict") != "unknown_type" || one.at("reprocessed.verdict") != "applied" || !strings.HasPrefix(one.at("reprocessed.actor"), "key_") {
		t.Errorf("an event: %v", one.fields)
	}
}

// No secret is in anything that is sent: deliveries, tests, replays and
// notifications (field case O-133).
func TestO133NoSecretIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ep := w.endpoint("types", []string{"order.paid"}).at("id")
	w.endpoint("installation", true)
	w.publish(2)
	d := w.inState("delivered", 2)[0].at("id")
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/test", `{"type":"order.paid"}`))
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/deliveries/"+d+"/retry", nil))
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/pause", `{"reason":"tried"}`))
	w.eventually("not all were sent", func() bool { return len(w.sink.attempts()) == 5 })
	for _, a := range w.sink.attempts() {
		head, err := json.Marshal(a.header)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{sinkSecret, hookSecret, adminKey, "provider-key"} {
			for _, form := range formsOf(secret) {
				if strings.Contains(string(head)+a.body, form) {
					t.Errorf("%s of %s holds a secret", a.kind, a.id)
				}
			}
		}
	}
}

// formsOf are the forms in which a secret would betray itself: as it is, without
// its prefix, decoded, and each of these in base64 and hex.
func formsOf(secret string) []string {
	plain := []string{secret, strings.TrimPrefix(secret, "whsec_")}
	if raw, err := base64.StdEncoding.DecodeString(plain[1]); err == nil {
		plain = append(plain, string(raw))
	}
	forms := slices.Clone(plain)
	for _, p := range plain {
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(p)), base64.RawURLEncoding.EncodeToString([]byte(p)), hex.EncodeToString([]byte(p)))
	}
	return forms
}
