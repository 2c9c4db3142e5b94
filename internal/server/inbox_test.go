package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/config"
)

// A generic event is stored and acknowledged at once, handed to the endpoints of
// its tenant whose types it has, and its state is shown all the way (7-rules R20,
// R21; seed 003).
func TestGenericEventIsHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	lone := w.took("evt_0")
	w.inbox(lone, "received")
	w.sink.script(func(n int, _ delivery) (int, string) { return map[bool]int{true: 500, false: 200}[n == 1], "" })
	w.endpoint("types", []string{"invoice.paid"}, "policy", map[string]any{"schedule": []string{"0s", "300ms"}})
	other := new(tape)
	w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": w.serve(other), "types": []string{"payments.invoice.voided"}}))

	r := w.want(http.StatusAccepted, w.paid("evt_1"))
	if r.at("verdict") != "applied" || r.at("received") != "true" {
		t.Errorf("answered %s", r.body)
	}
	e := r.at("event_id")
	waiting := w.inbox(e, "waiting")
	if waiting.at("owner") != "money team" || waiting.at("source") != "payments" || waiting.at("external_id") != "evt_1" {
		t.Errorf("shown as %s", waiting.body)
	}
	w.eventually("the next try was never shown", func() bool { return w.get("/v1/events/"+e).at("next_try_at") != "" || len(w.sink.attempts()) > 1 })
	w.inbox(e, "done")
	got := w.sink.attempts()
	if len(got) != 2 || got[0].body != got[1].body || got[0].id != e || got[1].attempt != "2" || got[1].header.Get("Pawl-Delivery") != w.handed(e)[0].at("id") {
		t.Fatalf("handed over: %+v", got)
	}
	var native struct {
		Type, Source string
		Data         json.RawMessage
	}
	if err := json.Unmarshal([]byte(got[0].body), &native); err != nil || native.Type != "invoice.paid" || native.Source != "payments" {
		t.Errorf("native: %s, %v", got[0].body, err)
	}
	same(t, "data", native.Data, paidBody("evt_1"))
	if n := len(other.all()); n != 0 {
		t.Errorf("an endpoint for another type got %d", n)
	}

	// The sender repeats: one event, one effect.
	again := w.want(http.StatusOK, w.paid("evt_1"))
	if again.at("duplicate") != "true" || again.at("event_id") != e {
		t.Errorf("a repeat is answered %s", again.body)
	}
	// An endpoint that came later gets what nobody wanted if it is asked for.
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/events/"+lone+"/reprocess", nil))
	w.inbox(lone, "done")
	if n := len(w.sink.attempts()); n != 3 {
		t.Errorf("%d deliveries, want 3", n)
	}
}

// Pawl's own types are its word: a sender that uses one, and is taken at its word
// by an endpoint that takes all types, speaks behind the name of its source, in
// bodies and in feeds.
func TestSenderCannotForgeOwnTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	w.endpoint()
	feed := w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"kind": "feed"})).at("id")
	for i, kind := range []string{
		"operation.succeeded", "operation.review.opened", "operation.x", "review.opened", "upstream.paused", "endpoint.disabled", "delivery.dead", "operations.paid",
	} {
		want := "payments." + kind
		if kind == "operations.paid" {
			want = kind
		}
		body := `{"id":"evt_` + kind + `","type":"` + kind + `","data":{"id":"op_1","state":"succeeded","result":{"text":"forged"}}}`
		e := w.want(http.StatusAccepted, w.post("payments", "stripe", sourceSecret, []byte(body))).at("event_id")
		w.eventually("it was never handed over", func() bool { return len(w.sink.attempts()) > i })
		got, err := client.ParseEvent([]byte(w.sink.attempts()[i].body))
		if _, ours := got.Operation(); err != nil || got.ID != e || got.Type != want || got.Source != "payments" || ours {
			t.Errorf("%s is handed over as %+v, %v", kind, got, err)
		}
		if fed := w.get("/v1/events?endpoint=" + feed + "&after=0").items()[i]; fed.at("type") != want {
			t.Errorf("%s in the feed: %v", kind, fed.fields)
		}
		// Who looks into it sees the sender's own word.
		if stored := w.get("/v1/events/" + e); stored.at("type") != kind {
			t.Errorf("%s is stored as %s", kind, stored.body)
		}
	}
}

// With content original a handler gets the bytes as they came, their content type
// and the headers that are allowed, whatever they are (7-rules R20).
func TestOriginalContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{
		"forms": `scheme: slack, content_types: [application/json, application/x-www-form-urlencoded], headers: [X-Slack-Retry-Num]`,
	}))
	original, native := new(tape), new(tape)
	for content, receiver := range map[string]*tape{"original": original, "native": native} {
		w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": w.serve(receiver), "secret": sinkSecret, "content": content}))
	}
	const form = "application/x-www-form-urlencoded; charset=utf-8"
	bodies := []struct{ contentType, body string }{
		{"application/json", " {\"type\":\"event_callback\",\n\t\"event_id\":\"Ev1\", \"n\": 1.0e2}\r\n"},
		{form, "token=x&text=a%20b+c&euro=%e2%82%ac"},
		{form, "raw=\x00\xff\xfe"},
		{"application/json", `{"event_id":"Ev2","text":"` + strings.Repeat("é", 1<<20) + `"}`},
	}
	for i, b := range bodies {
		e := w.want(http.StatusAccepted, w.post("forms", "slack", sourceSecret, []byte(b.body), "Content-Type", b.contentType, "X-Slack-Retry-Num", "2", "X-Other", "no")).at("event_id")
		w.inbox(e, "done")
		got := original.all()[i]
		w.genuine(got, e)
		same(t, "the original", got.body, []byte(b.body))
		h := got.header
		if h.Get("Content-Type") != b.contentType || h.Get("X-Slack-Retry-Num") != "2" || h.Get("X-Other") != "" || h.Get("X-Slack-Signature") != "" || h.Get("Pawl-Delivery") == "" {
			t.Errorf("headers of %d: %v", i, h)
		}
		w.genuine(native.all()[i], e)
	}
	var wrapped struct {
		Type        string
		Data        []byte
		ContentType string `json:"content_type"`
	}
	if err := json.Unmarshal(native.all()[2].body, &wrapped); err != nil || string(wrapped.Data) != bodies[2].body || wrapped.ContentType != form || wrapped.Type != "event" {
		t.Errorf("wrapped: %+v, %v", wrapped, err)
	}
	// 2 MiB do not fit into a wrapped event: it says where the rest is.
	if large := native.all()[3].body; len(large) > 1<<10 || !strings.Contains(string(large), `"data":{"href":"/v1/events/evt_`) {
		t.Errorf("a large event is wrapped as %.200s", large)
	}
	if r := w.post("forms", "slack", sourceSecret, []byte("<a/>"), "Content-Type", "text/xml"); r.status != http.StatusUnsupportedMediaType || r.header.Get("Accept") != "application/json, application/x-www-form-urlencoded" {
		t.Errorf("another content type: %d, %v", r.status, r.header)
	}
}

// Delivered is not done: a receiver that does not report in time gets the event
// again under its id, and after the second time a person decides (1-product C9,
// 7-rules R21).
func TestCompletionOverdueTwice(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		ep := w.endpoint("types", []string{"invoice.paid"}, "complete_within", "10m", "owner", "handlers")
		e := w.took("evt_1")
		w.pass(9 * time.Minute)
		if d := w.handed(e)[0]; d.at("state") != "delivered" || d.at("overdue") != "" || w.get("/v1/events/"+e).at("state") != "waiting" {
			w.Errorf("within its time: %v", d.fields)
		}
		w.pass(2 * time.Minute)
		got := w.sink.attempts()
		if len(got) != 2 || got[0].id != got[1].id || got[0].body != got[1].body || got[1].attempt != "2" {
			w.Fatalf("overdue once: %d attempts", len(got))
		}
		if d := w.handed(e)[0]; d.at("overdue") != "1" || d.at("state") != "delivered" || d.at("complete_by") == "" {
			w.Errorf("overdue once: %v", d.fields)
		}
		w.pass(11 * time.Minute)
		if n := len(w.sink.attempts()); n != 2 || w.get("/v1/events/"+e).at("state") != "review" {
			w.Errorf("overdue twice: %d attempts, %s", n, w.get("/v1/events/"+e).body)
		}
		reviews := w.get("/v1/reviews?open=true").items()
		if len(reviews) != 1 || reviews[0].at("reason") != "completion_overdue" || reviews[0].at("event_id") != e || reviews[0].at("owner") != "handlers" ||
			reviews[0].at("endpoint_id") != ep.at("id") || reviews[0].at("delivery_id") != w.handed(e)[0].at("id") {
			w.Fatalf("reviews: %v", reviews)
		}
		w.pass(time.Hour)
		if n := len(w.sink.attempts()); n != 2 {
			w.Errorf("%d attempts without a decision", n)
		}
		// Sent once more by a decision; the report then comes before the answer.
		w.sink.script(func(_ int, d delivery) (int, string) {
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/deliveries/"+d.header.Get("Pawl-Delivery")+"/complete", nil))
			return http.StatusInternalServerError, ""
		})
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+reviews[0].at("id")+"/resolve", map[string]string{"decision": "retry"}))
		w.pass(time.Minute)
		if d := w.handed(e)[0]; d.at("state") != "delivered" || d.at("completed_at") == "" || w.get("/v1/events/"+e).at("state") != "done" {
			w.Errorf("reported before it answered: %v", d.fields)
		}
		w.pass(time.Hour)
		if n := len(w.sink.attempts()); n != 3 {
			w.Errorf("%d attempts, want 3", n)
		}
	}, payments(t, ""))
}

// A report that comes late is a report: it answers the review. What a person
// discards is over.
func TestCompletionAfterTheReview(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint("types", []string{"invoice.paid"}, "complete_within", "1m")
		late, dropped := w.took("evt_1"), w.took("evt_2")
		w.pass(5 * time.Minute)
		reviews := w.get("/v1/reviews?open=true").items()
		if len(reviews) != 2 || w.get("/v1/events/"+late).at("state") != "review" {
			w.Fatalf("reviews: %v", reviews)
		}
		d := w.handed(late)[0]
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/deliveries/"+d.at("id")+"/complete", nil))
		w.inbox(late, "done")
		open := w.get("/v1/reviews?open=true").items()
		if len(open) != 1 || open[0].at("event_id") != dropped {
			w.Fatalf("open reviews: %v", open)
		}
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+open[0].at("id")+"/resolve", map[string]string{"decision": "discard"}))
		w.inbox(dropped, "done")
		if d := w.handed(dropped)[0]; d.at("discarded") != "true" || d.at("completed_at") != "" {
			w.Errorf("discarded: %v", d.fields)
		}
		w.want(http.StatusConflict, w.call(http.MethodPost, "/v1/reviews/"+open[0].at("id")+"/resolve", map[string]string{"decision": "retry"}))
	}, payments(t, ""))
}

// A repeat of an event whose work is unfinished makes it due now, at most once a
// minute; one that is done stays done (7-rules R22).
func TestRepeatMakesWorkDue(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		status := http.StatusServiceUnavailable
		w.sink.script(func(int, delivery) (int, string) { return status, "" })
		w.endpoint("types", []string{"invoice.paid"}, "policy", map[string]any{"schedule": []string{"0s", "6h", "6h", "6h"}})
		e := w.took("evt_1")
		w.pass(time.Second)
		expect := func(what string, attempts int) {
			w.Helper()
			if n := len(w.sink.attempts()); n != attempts {
				w.Errorf("%s: %d attempts, want %d", what, n, attempts)
			}
		}
		repeat := func() {
			w.Helper()
			if r := w.want(http.StatusOK, w.paid("evt_1")); r.at("duplicate") != "true" {
				w.Errorf("answered %s", r.body)
			}
			w.pass(time.Second)
		}
		expect("received", 1)
		repeat()
		expect("a repeat", 2)
		for range 5 {
			repeat()
		}
		expect("more repeats within a minute", 2)
		w.pass(time.Minute)
		status = http.StatusOK
		repeat()
		expect("a repeat a minute later", 3)
		w.inbox(e, "done")
		w.pass(time.Minute)
		repeat()
		expect("a repeat of what is done", 3)
	}, payments(t, ""))
}

// A repeat also asks anew for a report that has not come, without counting as
// overdue.
func TestRepeatAsksForTheReport(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint("types", []string{"invoice.paid"}, "complete_within", "6h")
		e := w.took("evt_1")
		w.pass(time.Hour)
		w.want(http.StatusOK, w.paid("evt_1"))
		w.pass(time.Second)
		if d := w.handed(e)[0]; len(w.sink.attempts()) != 2 || d.at("overdue") != "" || d.at("state") != "delivered" {
			w.Errorf("%d attempts, %v", len(w.sink.attempts()), d.fields)
		}
	}, payments(t, ""))
}

// An event of a type that its source does not know is answered 202, stored and
// shown, once for a person to decide; it is handed over when the type is known
// (7-rules R14, §2).
func TestUnknownTypesOfSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ", types: [invoice.voided]"))
	w.endpoint()
	first := w.want(http.StatusAccepted, w.paid("evt_1"))
	second := w.want(http.StatusAccepted, w.paid("evt_1")) // its key is free
	if first.at("verdict") != "unknown_type" || second.at("verdict") != "unknown_type" || first.at("event_id") == second.at("event_id") {
		t.Errorf("answered %s and %s", first.body, second.body)
	}
	if r := w.inbox(first.at("event_id"), "review"); r.at("type") != "invoice.paid" {
		t.Errorf("shown as %s", r.body)
	}
	reviews := w.get("/v1/reviews?open=true").items()
	if len(reviews) != 1 || reviews[0].at("reason") != "unknown_type" || reviews[0].at("owner") != "money team" || reviews[0].at("source") != "payments" {
		t.Fatalf("reviews: %v", reviews)
	}
	if r := w.get("/v1/sources/payments"); r.at("unknown_types") != "2" || r.at("kind") != "source" || r.at("owner") != "money team" {
		t.Errorf("the source shows %s", r.body)
	}
	w.mustReload(payments(t, ", types: [invoice.voided, invoice.paid]"))
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/reviews/"+reviews[0].at("id")+"/resolve", map[string]string{"decision": "reprocess"}))
	w.inbox(first.at("event_id"), "done")
	if r := w.get("/v1/events/" + second.at("event_id")); r.at("reprocessed.verdict") != "duplicate" || r.at("state") != "" {
		t.Errorf("its repeat came to %s", r.body)
	}
	if open := w.get("/v1/reviews?open=true").items(); len(open) != 0 || len(w.sink.attempts()) != 1 {
		t.Errorf("%d open reviews, %d deliveries", len(open), len(w.sink.attempts()))
	}
}

// What is verified and not usable is answered 400 and shown; it takes no key and is
// nobody's work. What is not verified leaves a count.
func TestUnusableGenericEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	w.endpoint()
	for _, tt := range []struct{ body, reason string }{
		{`{"id":`, "malformed_json"}, {`{"type":"invoice.paid"}`, "missing_event_id"}, {`{"id":7.5e3,"id":1}`, "malformed_json"},
		{`{"id":"a b","type":"invoice.paid"}`, "missing_event_id"}, {`{"id":{},"type":"invoice.paid"}`, "missing_event_id"},
	} {
		if r := w.post("payments", "stripe", sourceSecret, []byte(tt.body)); r.status != http.StatusBadRequest || r.at("reason") != tt.reason {
			t.Errorf("%s: answered %d %s", tt.body, r.status, r.body)
		}
	}
	if rows := w.get("/v1/events?verdict=rejected").items(); len(rows) != 5 || rows[0].at("state") != "" {
		t.Errorf("stored: %v", rows)
	}
	w.want(http.StatusUnauthorized, w.post("payments", "stripe", nextSecret, paidBody("evt_1")))
	w.want(http.StatusNotFound, w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments/token", nil, nil))
	large := []byte(`{"id":"` + strings.Repeat("x", 4<<20) + `"}`)
	w.want(http.StatusRequestEntityTooLarge, w.post("payments", "stripe", sourceSecret, large))
	if r := w.get("/v1/sources/payments"); r.at("counts.verdicts.refused") != "3" || r.at("counts.verdicts.rejected") != "5" {
		t.Errorf("counted: %s", r.body)
	}
	if n := len(w.sink.attempts()); n != 0 {
		t.Errorf("%d deliveries", n)
	}
}

// A secret is replaced while both are in force, and a reload puts sources, their
// secrets and their absence in force at once.
func TestSourcesReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	send := func(secret string, status int) {
		t.Helper()
		w.want(status, w.post("payments", "stripe", secret, paidBody("evt_"+secret+"_"+http.StatusText(status))))
	}
	send(sourceSecret, http.StatusAccepted)
	send(nextSecret, http.StatusUnauthorized)
	w.mustReload(payments(t, `, secrets: ["`+sourceSecret+`", "`+nextSecret+`"]`))
	send(nextSecret, http.StatusAccepted)
	w.want(http.StatusOK, w.post("payments", "stripe", sourceSecret, paidBody("evt_"+sourceSecret+"_"+http.StatusText(http.StatusAccepted))))
	w.mustReload(payments(t, `, secrets: [{key: "`+sourceSecret+`", until: 2020-01-01T00:00:00Z}]`))
	if r := w.post("payments", "stripe", sourceSecret, paidBody("evt_9")); r.status != http.StatusUnauthorized || r.at("reason") != "no_active_key" {
		t.Errorf("a secret that has ended: %d %s", r.status, r.body)
	}
	err := w.reload(sources(t, map[string]string{"payments": `scheme: rot13`}))
	if err == nil || !strings.Contains(err.Error(), "sources.payments.scheme") {
		t.Errorf("an unknown scheme: %v", err)
	}
	w.mustReload(func(c *config.Config, _ *config.Upstream) { c.Sources = nil })
	w.want(http.StatusNotFound, w.post("payments", "stripe", sourceSecret, paidBody("evt_9")))
	w.mustReload(payments(t, ""))
	w.want(http.StatusAccepted, w.post("payments", "stripe", sourceSecret, paidBody("evt_9")))
}

// GitHub signs neither the delivery's id nor a time: a captured request that comes
// again under another id is the same event (1-product C3).
func TestGitHubReplayUnderAnotherID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{"code": "scheme: github"}))
	w.endpoint()
	body := []byte(`{"ref":"refs/heads/main","after":"abc"}`)
	first := w.want(http.StatusAccepted, w.post("code", "github", sourceSecret, body, "id", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Event", "push"))
	again := w.want(http.StatusOK, w.post("code", "github", sourceSecret, body, "id", "another", "X-GitHub-Event", "push"))
	if again.at("duplicate") != "true" || again.at("event_id") != first.at("event_id") {
		t.Errorf("answered %s", again.body)
	}
	if r := w.inbox(first.at("event_id"), "done"); r.at("type") != "push" || r.at("headers.x-github-delivery") != "72d3162e-cc78-11e3-81ab-4c9367dc0958" {
		t.Errorf("shown as %s", r.body)
	}
	w.want(http.StatusAccepted, w.post("code", "github", sourceSecret, []byte(`{"ref":"refs/heads/main","after":"abd"}`), "X-GitHub-Event", "push"))
}

// Handshakes are answered by sources that are configured for them, as the senders
// want them, and by no other (1-product C8).
func TestHandshakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{
		"chat":  "scheme: slack, handshake: {kind: slack}",
		"plain": "scheme: slack, event: digest",
		"calls": "scheme: zoom, handshake: {kind: zoom}",
		"meta":  "scheme: github, handshake: {kind: hub, verify_token: tok-1}",
		"feed":  `scheme: github, handshake: {kind: hub, topics: ["https://feed.example.com/a"]}`,
		"cloud": "scheme: github, handshake: {kind: cloudevents, origins: [eventemitter.example.com], rate: 100}",
		"open":  `scheme: github, handshake: {kind: cloudevents, origins: ["*"]}`,
	}))
	const challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
	slack := []byte(`{"token":"Jhj5dZrVaK7ZwHHjRyZWjbDl","challenge":"` + challenge + `","type":"url_verification"}`)
	r := w.want(http.StatusOK, w.post("chat", "slack", sourceSecret, slack))
	if r.body != `{"challenge":"`+challenge+`"}` || r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("slack: %v %s", r.header, r.body)
	}
	w.want(http.StatusUnauthorized, w.post("chat", "slack", nextSecret, slack))
	w.want(http.StatusBadRequest, w.post("chat", "slack", sourceSecret, []byte(`{"challenge":"`+strings.Repeat("x", 1025)+`","type":"url_verification"}`)))
	w.want(http.StatusBadRequest, w.post("chat", "slack", sourceSecret, []byte(`{"challenge":{},"type":"url_verification"}`)))
	if r := w.want(http.StatusAccepted, w.post("plain", "slack", sourceSecret, slack)); r.at("verdict") != "applied" {
		t.Errorf("not configured for it: %s", r.body)
	}

	const token = "qgg8vlvZRS6UYooatFL8Aw"
	mac := hmac.New(sha256.New, []byte(sourceSecret))
	mac.Write([]byte(token))
	r = w.want(http.StatusOK, w.post("calls", "zoom", sourceSecret, []byte(`{"payload":{"plainToken":"`+token+`"},"event_ts":1654503849680,"event":"endpoint.url_validation"}`)))
	if r.at("plainToken") != token || r.at("encryptedToken") != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("zoom: %s", r.body)
	}

	for _, tt := range []struct {
		target string
		status int
		body   string
	}{
		{"meta?hub.mode=subscribe&hub.verify_token=tok-1&hub.challenge=1158201444", 200, "1158201444"},
		{"meta?hub.mode=subscribe&hub.verify_token=tok-1&hub.challenge=%3Cscript%3Ealert(1)%3C/script%3E", 200, "<script>alert(1)</script>"},
		{"meta?hub.mode=subscribe&hub.verify_token=tok-2&hub.challenge=1158201444", 404, ""},
		{"meta?hub.mode=subscribe&hub.challenge=1158201444", 404, ""},
		{"meta?hub.mode=subscribe&hub.verify_token=tok-1&hub.verify_token=tok-1&hub.challenge=1", 404, ""},
		{"meta?hub.mode=subscribe&hub.verify_token=tok-1&hub.challenge=a%0Ab", 404, ""},
		{"meta?hub.mode=subscribe&hub.verify_token=tok-1&hub.challenge=" + strings.Repeat("x", 1025), 404, ""},
		{"meta?hub.mode=other&hub.verify_token=tok-1&hub.challenge=1", 404, ""},
		{"meta", 404, ""},
		{"feed?hub.mode=unsubscribe&hub.topic=https://feed.example.com/a&hub.challenge=c-1&hub.lease_seconds=864000", 200, "c-1"},
		{"feed?hub.mode=subscribe&hub.topic=https://feed.example.com/b&hub.challenge=c-1", 404, ""},
		{"feed?hub.mode=denied&hub.topic=https://feed.example.com/a&hub.reason=no", 200, ""},
		{"plain?hub.mode=subscribe&hub.challenge=1", 405, ""},
		{"nobody?hub.mode=subscribe&hub.challenge=1", 405, ""},
		{"up?hub.mode=subscribe&hub.challenge=1", 405, ""},
	} {
		r := w.at(http.MethodGet, tt.target, nil)
		if r.status != tt.status || tt.status == 200 && r.body != tt.body {
			t.Errorf("%.80s: %d %s", tt.target, r.status, r.body)
		}
		if tt.status == 200 && (r.header.Get("Content-Type") != "text/plain; charset=utf-8" || r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Content-Security-Policy") != "default-src 'none'") {
			t.Errorf("%.80s: %v", tt.target, r.header)
		}
		if tt.status == 405 && !strings.Contains(r.header.Get("Allow"), "POST") {
			t.Errorf("%.80s: %v", tt.target, r.header)
		}
	}

	for _, tt := range []struct {
		source, origin, rate string
		status               int
		allowed, allowedRate string
	}{
		{"cloud", "eventemitter.example.com", "", 200, "eventemitter.example.com", "100"},
		{"cloud", "eventemitter.example.com", "120", 200, "eventemitter.example.com", "100"},
		{"cloud", "eventemitter.example.com", "20", 200, "eventemitter.example.com", "20"},
		{"cloud", "other.example.com", "", 403, "", ""},
		{"cloud", "", "", 403, "", ""},
		{"open", "other.example.com", "120", 200, "other.example.com", "120"},
		{"open", "other.example.com", "", 200, "other.example.com", "*"},
		{"open", "a\"b", "", 403, "", ""},
		{"plain", "other.example.com", "", 405, "", ""},
	} {
		h := http.Header{"Webhook-Request-Callback": {"http://127.0.0.1:1/never"}}
		if tt.origin != "" {
			h.Set("WebHook-Request-Origin", tt.origin)
		}
		if tt.rate != "" {
			h.Set("WebHook-Request-Rate", tt.rate)
		}
		r := w.at(http.MethodOptions, tt.source, h)
		if r.status != tt.status || r.header.Get("WebHook-Allowed-Origin") != tt.allowed || r.header.Get("WebHook-Allowed-Rate") != tt.allowedRate || !strings.Contains(r.header.Get("Allow"), "POST") {
			t.Errorf("%s from %q at %q: %d %v", tt.source, tt.origin, tt.rate, r.status, r.header)
		}
	}
	if rows := w.get("/v1/events?direction=inbound").items(); len(rows) != 1 {
		t.Errorf("%d events are stored of handshakes", len(rows)-1)
	}
	if r := w.get("/v1/sources/meta"); r.at("handshake") != "hub" || r.at("counts.verdicts.handshake") != "2" {
		t.Errorf("shown as %s", r.body)
	}
}

// What is no tenant's own is nobody's to see or to handle: tenants have sources of
// their own (7-rules R51).
func TestSourcesOfTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{"payments": "scheme: stripe, tenant: other", "code": "scheme: github"}))
	w.endpoint()
	e := w.took("evt_1")
	w.inbox(e, "received")
	key := w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/keys", map[string]any{"tenant": "default", "name": "d", "scopes": []string{"read", "operate", "payloads"}})).at("secret")
	bearer := http.Header{"Authorization": {"Bearer " + key}}
	for _, path := range []string{"/v1/events/" + e, "/v1/sources/payments"} {
		if r := w.send(http.MethodGet, w.node.APIURL()+path, nil, bearer); r.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := w.send(http.MethodGet, w.node.APIURL()+"/v1/sources", nil, bearer); !strings.Contains(r.body, `"code"`) || strings.Contains(r.body, `"payments"`) {
		t.Errorf("sees %s", r.body)
	}
	w.want(http.StatusNotFound, w.send(http.MethodPost, w.node.APIURL()+"/v1/events/"+e+"/reprocess", []byte("{}"), http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}}))
	if n := len(w.sink.attempts()); n != 0 {
		t.Errorf("another tenant got %d", n)
	}
}

// What nobody wanted is handed over by filter too, after a dry run that changes
// nothing (1-product C10).
func TestReprocessReceivedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	var all []string
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		all = append(all, w.took(id))
	}
	w.endpoint("types", []string{"invoice.paid"})
	again := func(dry bool) reply {
		t.Helper()
		return w.want(http.StatusOK, w.call(http.MethodPost, "/v1/events/reprocess", map[string]any{"filter": map[string]string{"source": "payments"}, "dry_run": dry}))
	}
	if r := again(true); r.at("matched") != "3" || r.at("verdicts.applied") != "3" {
		t.Errorf("dry run: %s", r.body)
	}
	for _, e := range all {
		if r := w.get("/v1/events/" + e); r.at("state") != "received" || r.at("reprocessed") != "" {
			t.Errorf("a dry run changed %s", r.body)
		}
	}
	if r := again(false); r.at("matched") != "3" {
		t.Errorf("%s", r.body)
	}
	for _, e := range all {
		w.inbox(e, "done")
	}
	if r := again(false); r.at("matched") != "0" || len(w.sink.attempts()) != 3 {
		t.Errorf("once more: %s, %d deliveries", r.body, len(w.sink.attempts()))
	}
}
