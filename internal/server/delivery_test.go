package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/webhook"
)

// quickly is a policy whose retries come soon.
var quickly = map[string]any{"schedule": []string{"0s", "100ms", "100ms", "100ms", "100ms"}}

// deliveries gives the deliveries of an operation, oldest first, once they are
// all in a state.
func (w *world) deliveries(op string, n int, state string) []reply {
	w.Helper()
	var rows []reply
	w.eventually(fmt.Sprintf("%d deliveries were never %s", n, state), func() bool {
		rows = w.get("/v1/deliveries?operation=" + op + "&state=" + state).items()
		return len(rows) == n
	})
	slices.Reverse(rows)
	return rows
}

// finish ends a running operation with a success.
func (w *world) finish(op string, c create) {
	w.Helper()
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "end-" + c.task, said: done(c.task)}))
	w.now(op, "succeeded")
}

// A paused endpoint is sent nothing, and when it is enabled everything from the
// oldest on (7-rules R36).
func TestEndpointPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ep := w.endpoint().at("id")
	post := func(action string) reply {
		r := w.get("/v1/endpoints/" + ep)
		return w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/"+action, nil, "If-Match", r.header.Get("ETag")))
	}
	post("pause")
	op, c := w.running("k")
	w.finish(op, c)
	w.deliveries(op, 2, "pending")
	if n := len(w.sink.attempts()); n != 0 {
		t.Errorf("%d attempts at a paused endpoint", n)
	}
	post("enable")
	w.told(op, "operation.running", "operation.succeeded")
	for i, d := range w.sink.attempts() {
		if d.sequence < 1 || d.sequence > 2 || d.attempt != "1" {
			t.Errorf("attempt %d: sequence %d, number %s", i, d.sequence, d.attempt)
		}
	}
	w.deliveries(op, 2, "delivered")
}

// 410 is a dead letter and disables the endpoint (7-rules §5).
func TestEndpointGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ep := w.endpoint().at("id")
	w.sink.script(func(int, delivery) (int, string) { return http.StatusGone, "" })
	op, c := w.running("k")
	dead := w.deliveries(op, 1, "dead")
	if dead[0].at("reason") != "gone" || dead[0].at("last_status") != "410" {
		t.Errorf("dead: %v", dead[0].fields)
	}
	if r := w.get("/v1/endpoints/" + ep); r.at("disabled") != "true" || r.at("disabled_reason") != "answered_410" {
		t.Errorf("endpoint: %s", r.body)
	}
	if open := w.get("/v1/reviews?open=true").items(); len(open) != 1 || open[0].at("reason") != "dead_letter" || open[0].at("endpoint_id") != ep {
		t.Errorf("reviews: %v", open)
	}
	w.finish(op, c)
	w.deliveries(op, 1, "pending")
	if n := len(w.sink.attempts()); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	w.want(http.StatusConflict, w.call(http.MethodPost, "/v1/deliveries/"+dead[0].at("id")+"/retry", nil))
}

// 401 is a dead letter at once; sent again by hand it is the same event, byte
// for byte (7-rules §5, R37).
func TestDeadLetterIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	w.sink.script(func(n int, _ delivery) (int, string) {
		if n == 1 {
			return http.StatusUnauthorized, ""
		}
		return http.StatusOK, ""
	})
	op, _ := w.running("k")
	dead := w.deliveries(op, 1, "dead")[0]
	if dead.at("attempts") != "1" || dead.at("reason") != "refused_by_endpoint" {
		t.Errorf("dead: %v", dead.fields)
	}
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/deliveries/"+dead.at("id")+"/retry", nil))
	w.deliveries(op, 1, "delivered")
	got := w.sink.attempts()
	if len(got) != 2 || got[0].id != got[1].id || got[0].body != got[1].body || got[1].attempt != "2" {
		t.Errorf("attempts: %+v", got)
	}
	attempts := w.get("/v1/deliveries/" + dead.at("id") + "/attempts").items()
	if len(attempts) != 2 || attempts[0].at("status") != "401" || attempts[1].at("replay") != "true" || attempts[1].at("actor") == "" && attempts[1].at("status") != "200" {
		t.Errorf("attempts: %v", attempts)
	}
}

// While a secret is rotated both sign, each verifies alone; after the overlap
// only the new one (1-product H2, 7-rules R39).
func TestSecretRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	ep := w.endpoint().at("id")
	rotate := func(body string) string {
		etag := w.get("/v1/endpoints/" + ep).header.Get("ETag")
		return w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/rotate-secret", body, "If-Match", etag)).at("secret")
	}
	second := rotate(`{}`)
	w.sink.mu.Lock()
	w.sink.secrets = []string{sinkSecret, second}
	w.sink.mu.Unlock()
	a, ca := w.running("a")
	w.finish(a, ca)
	w.told(a, "operation.running", "operation.succeeded")

	third := rotate(`{"overlap":"0s"}`)
	w.sink.mu.Lock()
	w.sink.secrets = []string{third}
	w.sink.mu.Unlock()
	b, _ := w.running("b")
	w.told(b, "operation.running")
	last := w.sink.attempts()[len(w.sink.attempts())-1]
	scheme, _ := webhook.Lookup("standard-webhooks")
	for _, old := range []string{sinkSecret, second} {
		key, err := scheme.ParseKey(old)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scheme.Verify(webhook.Request{Header: last.header, Body: []byte(last.body)}, time.Now(), key); err == nil {
			t.Error("a secret still signs after its overlap")
		}
	}
}

// A delivery that fails is tried again with the same id and bytes, over a
// restart and a crash in the middle too (1-product H1, H2).
func TestDeliveryOverRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(c *config.Config, _ *config.Upstream) { c.Drain = 500 * time.Millisecond })
	w.endpoint("policy", map[string]any{"schedule": []string{"0s", "1s", "200ms"}})
	w.sink.script(func(int, delivery) (int, string) { return http.StatusServiceUnavailable, "" })
	op, _ := w.running("k")
	w.eventually("no attempt", func() bool { return len(w.sink.attempts()) == 1 })
	w.drain()
	reached, hold := make(chan struct{}), make(chan struct{})
	w.sink.script(func(n int, _ delivery) (int, string) {
		if n == 2 {
			close(reached)
			<-hold
		}
		return http.StatusOK, ""
	})
	w.start()
	<-reached
	w.kill()
	close(hold)
	w.start()
	w.deliveries(op, 1, "delivered")
	got := w.sink.attempts()
	if len(got) != 3 {
		t.Fatalf("%d attempts, want 3", len(got))
	}
	for _, d := range got {
		if d.id != got[0].id || d.body != got[0].body || d.header.Get("webhook-id") != d.id || d.sequence != 1 {
			t.Errorf("attempt %+v differs from the first", d)
		}
	}
}

// Retries follow the schedule, and Retry-After only lengthens it (7-rules §5).
func TestDeliverySchedule(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint("policy", map[string]any{"schedule": []string{"0s", "5s", "10s"}})
		w.sink.script(func(n int, _ delivery) (int, string) {
			switch n {
			case 1:
				return http.StatusServiceUnavailable, "1"
			case 2:
				return http.StatusTooManyRequests, "20"
			}
			return http.StatusOK, ""
		})
		op := w.submit("k")
		w.pass(30 * time.Second)
		got := w.sink.attempts()
		if len(got) != 3 || !near(got[1].at.Sub(got[0].at), 5*time.Second) || !near(got[2].at.Sub(got[1].at), 20*time.Second) {
			w.Errorf("attempts %+v, want three, after 5 and 20 s", got)
		}
		w.told(op, "operation.running")
	})
}

// A callback_url gets the events of its own operations, signed with the API
// key's webhook secret, beside the tenant's endpoints (7-rules R50).
func TestCallbackURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	key := w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/keys", `{"tenant":"default","scopes":["submit","read"]}`))
	mine := newReceiver(key.at("webhook_secret"))
	mine.url = w.serve(mine)
	body := job("a red kite")
	body["callback_url"] = mine.url + "/hooks?job=7"
	body["metadata"] = map[string]string{"order": "7"}
	submit := func(value string) reply {
		return w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", value, "Authorization", "Bearer "+key.at("secret"))
	}
	op := w.want(http.StatusAccepted, submit("k1")).at("id")
	w.state(op, "running")
	w.finish(op, w.provider.created()[0])
	w.running("other") // has no callback_url
	w.told(op, "operation.running", "operation.succeeded")
	w.eventually("the callback address was not told", func() bool {
		return slices.Equal(mine.types(op), []string{"operation.running", "operation.succeeded"})
	})
	w.deliveries(op, 4, "delivered")
	if n := len(mine.attempts()); n != 2 {
		t.Errorf("%d attempts at the callback address, want 2", n)
	}
	for _, v := range mine.refusals() {
		t.Errorf("the callback address refused: %s", v)
	}
	var sent struct {
		Data struct {
			Metadata map[string]string
			Result   map[string]bool
			Cost     struct{ Amount string }
		}
	}
	end := mine.attempts()[1]
	if err := json.Unmarshal([]byte(end.body), &sent); err != nil || sent.Data.Metadata["order"] != "7" || !sent.Data.Result["ok"] || sent.Data.Cost.Amount != "0.600000000" {
		t.Errorf("sent %s", end.body)
	}
	if eps := w.get("/v1/endpoints?kind=callback").items(); len(eps) != 1 {
		t.Errorf("%d callback endpoints, want 1", len(eps))
	}
	for _, forbidden := range []string{w.node.APIURL() + "/x", w.node.AdminURL(), "http://169.254.169.254/latest", "http://10.0.0.1/x", "ftp://example.com/"} {
		body["callback_url"] = forbidden
		if r := submit("k-forbidden"); r.status != http.StatusBadRequest {
			t.Errorf("%s: answered %d", forbidden, r.status)
		}
	}
}
