package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/store"
)

// A callback whose signature is wrong brings credentials that are right: what is
// kept of it names headers, and holds no value of any (field case O-134).
func TestO134RejectedCallbacksKeepNoCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	op, c := w.running("k")
	body := w.provider.render(event{id: "evt_1", said: done(c.task)})
	wrong := w.provider.sign("evt_other", body, time.Now()) // Of another event's id.
	right := w.provider.sign("evt_1", body, time.Now())
	wrong.Set("Webhook-Id", "evt_1")
	secrets := map[string]string{
		"Authorization": "Bearer provider-key", "Proxy-Authorization": "Basic cHJveHk6cHJveHk=", "Cookie": "session=c00kie-of-somebody", "X-Api-Key": "key-of-somebody",
		"X-Unheard-Of": "value-of-somebody", "X-Amz-Security-Token": "token-of-somebody",
	}
	for name, value := range secrets {
		wrong.Set(name, value)
	}
	for _, address := range []string{c.callback, ""} { // With the token, and to the source alone.
		if r := w.hook(address, body, wrong); r.status != http.StatusUnauthorized || r.at("reason") != "no_match" {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	source := w.get("/v1/sources/up")
	samples := source.list("samples")
	if len(samples) == 0 || samples[0].at("headers") != "[Webhook-Id Webhook-Timestamp Webhook-Signature]" || samples[0].at("reason") != "no_match" {
		t.Errorf("samples %v", samples)
	}
	kept := map[string]string{
		"the source": source.body, "the audit": w.get("/v1/audit").body, "the log": w.log.String(),
		"the timeline": w.get("/v1/operations/" + op + "/timeline").body, "the events": w.get("/v1/events?direction=inbound").body,
		"the metrics": w.send(http.MethodGet, w.node.AdminURL()+"/metrics", nil, nil).body,
	}
	secrets["a signature"], secrets["the right signature"] = wrong.Get("Webhook-Signature"), right.Get("Webhook-Signature")
	for where, text := range kept {
		for name, value := range secrets {
			if _, last, ok := strings.Cut(value, " "); ok {
				value = last
			}
			if strings.Contains(text, value) {
				t.Errorf("%s holds the value of %s", where, name)
			}
		}
	}
	w.now(op, "running")
}

// For two hours a provider finishes nothing; then everything succeeds. What is
// late is late and what is unknown is unknown; nothing is ever told or counted as
// failed that did not fail (field case O-136).
func TestO136LatenessIsNoFailure(t *testing.T) {
	const n, unknown = 8, 2
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		w.provider.script(func(i int, _ create) *answer {
			if i%(n/unknown) == 0 { // Made, and not answered.
				return &answer{cut: true}
			}
			return nil
		}, nil)
		w.provider.looking = func(int, string) *answer { return &answer{status: http.StatusServiceUnavailable} }
		w.fill(DefaultTenant, n, 3*time.Hour)
		created := w.tasks(n)
		shown := func(when string, running, unconfirmed, succeeded int) {
			w.pass(20 * time.Second) // The figures are of every 15 s.
			for state, want := range map[string]int{"pending": 0, "running": running, "unconfirmed": unconfirmed, "succeeded": succeeded, "failed": 0, "expired": 0, "canceled": 0} {
				if got := len(w.get("/v1/operations?page_size=200&state=" + state).items()); got != want {
					w.Errorf("%s: %d are %s, want %d", when, got, state, want)
				}
			}
			for state, want := range map[string]int{"running": running, "unconfirmed": unconfirmed} {
				if got := w.metric(fmt.Sprintf("pawl_operations{state=%q}", state)); got != fmt.Sprint(want) {
					w.Errorf("%s: the figure of %s is %q, want %d", when, state, got, want)
				}
			}
			if open := w.get("/v1/reviews").items(); len(open) != 0 {
				w.Errorf("%s: %d reviews: a person is asked what time will tell", when, len(open))
			}
		}
		shown("at the beginning", n-unknown, unknown, 0)
		oldest := w.metric("pawl_oldest_unfinished_operation_timestamp_seconds")
		w.pass(2 * time.Hour)
		shown("after two hours", n-unknown, unknown, 0)
		if got := w.metric("pawl_oldest_unfinished_operation_timestamp_seconds"); got != oldest || got == "0" {
			w.Errorf("the oldest is since %s, was since %s", got, oldest)
		}
		for _, c := range created {
			w.want(http.StatusAccepted, w.callback(c.callback, event{id: "end-" + c.task, said: done(c.task)}))
		}
		shown("at the end", 0, 0, n)
		told := make(map[string]int)
		for _, d := range w.sink.attempts() {
			told[d.kind]++
		}
		if told["operation.succeeded"] != n || told["operation.failed"]+told["operation.expired"]+told["operation.corrected"] != 0 {
			w.Errorf("told %v", told)
		}
		rows, err := w.node.driver.Operations(w.Context(), store.OperationFilter{}, store.Page{Limit: n + 1})
		if err != nil || len(rows) != n {
			w.Fatal(len(rows), err)
		}
		for _, op := range rows {
			for _, line := range w.timeline(op.ID.Text("op")) {
				// A create whose answer was cut has failed, and says that nothing follows.
				line = strings.ReplaceAll(line, "create_failed unknown", "")
				if strings.Contains(line, "failed") || strings.Contains(line, "expired") {
					w.Errorf("%s: %s", op.ID, line)
				}
			}
		}
	})
}
