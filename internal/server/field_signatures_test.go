package server

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// stored is the raw body of an event as the API gives it.
func (w *world) storedBody(event string) []byte {
	w.Helper()
	body, err := base64.StdEncoding.DecodeString(w.get("/v1/events/" + event).at("body"))
	if err != nil {
		w.Fatal(err)
	}
	return body
}

// signedAs is how the source "payments" signs a body now.
func signedAs(t *testing.T, body []byte) http.Header {
	t.Helper()
	scheme, _ := webhook.Lookup("stripe")
	key, err := scheme.ParseKey(sourceSecret)
	if err != nil {
		t.Fatal(err)
	}
	h, err := scheme.Sign(webhook.Message{Timestamp: time.Now().Unix(), Body: body}, key)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The signature is over the bytes: any spelling of JSON is taken as it came and kept
// so, and one changed byte is another body.
func TestO025BodyReencodedBeforeChecking(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ", event: digest"))
	body := []byte("{ \"b\":1.0, \"a\":\"x\\/y\",\"a2\":\"\\u00e9\" }\n")
	e := w.want(http.StatusAccepted, w.post("payments", "stripe", sourceSecret, body)).at("event_id")
	same(t, "stored", w.storedBody(e), body)
	h := signedAs(t, body)
	for _, changed := range []string{strings.TrimSuffix(string(body), "\n"), strings.Replace(string(body), "1.0", "1", 1), strings.Replace(string(body), "\\/", "/", 1)} {
		if r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments", []byte(changed), h); r.status != http.StatusUnauthorized || r.at("reason") != "no_match" {
			t.Errorf("%q: %d %s", changed, r.status, r.body)
		}
	}
}

// Text beyond ASCII is taken in whatever spelling it came.
func TestO026NonASCIIText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	for i, text := range []string{"Plaça 🎬", `Pla\u00e7a \ud83c\udfac`, "a\u2028b"} {
		body := []byte(`{"id":"evt_` + string(rune('a'+i)) + `","type":"t","text":"` + text + `"}`)
		e := w.want(http.StatusAccepted, w.post("payments", "stripe", sourceSecret, body)).at("event_id")
		same(t, "stored", w.storedBody(e), body)
	}
}

// What is verified and cannot be read is never a silent 2xx: a source that takes
// forms hands them over, and one that does not says so.
func TestO028FormEncoded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{
		"forms": "scheme: stripe, content_types: [application/x-www-form-urlencoded]", "json": "scheme: stripe",
	}))
	taken := new(tape)
	w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": w.serve(taken), "secret": sinkSecret, "content": "original"}))
	body := []byte("payload=%7B%22job%22%3A%22P-5%22%7D")
	const form = "application/x-www-form-urlencoded"
	e := w.want(http.StatusAccepted, w.post("forms", "stripe", sourceSecret, body, "Content-Type", form)).at("event_id")
	w.inbox(e, "done")
	same(t, "stored", w.storedBody(e), body)
	same(t, "handed over", taken.all()[0].body, body)
	if r := w.post("json", "stripe", sourceSecret, body, "Content-Type", form); r.status != http.StatusUnsupportedMediaType || r.at("reason") != "content_type" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := w.post("json", "stripe", sourceSecret, body); r.status != http.StatusBadRequest || r.at("reason") != "malformed_json" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if rows := w.get("/v1/events?source=json&verdict=rejected").items(); len(rows) != 1 {
		t.Errorf("%d rejected events are shown", len(rows))
	}
}

// Any signature of a known version by any active secret is enough; others are
// passed over, and there is a bound.
func TestO029SeveralSignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	scheme, _ := webhook.Lookup("stripe")
	key, err := scheme.ParseKey(sourceSecret)
	if err != nil {
		t.Fatal(err)
	}
	const junk = "00000000000000000000000000000000000000000000000000000000000000ff"
	for i, tt := range []struct {
		spell  func(timestamp, good string) string
		status int
	}{
		{func(ts, good string) string { return ts + ",v1=" + junk + "," + good }, http.StatusAccepted},
		{func(ts, good string) string { return ts + "," + good + ",v0=" + junk }, http.StatusAccepted},
		{func(ts, good string) string { return ts + ",v2=" + junk + "," + good + ",v1=" + junk }, http.StatusAccepted},
		{func(ts, good string) string { return ts + "," + strings.Replace(good, "v1=", "v0=", 1) }, http.StatusUnauthorized},
		{func(ts, good string) string { return ts + strings.Repeat(",v1="+junk, 200) + "," + good }, http.StatusUnauthorized},
		{func(ts, good string) string { return ts + "," + ts + "," + good }, http.StatusUnauthorized},
	} {
		body := paidBody("evt_" + string(rune('a'+i)))
		h, err := scheme.Sign(webhook.Message{Timestamp: time.Now().Unix(), Body: body}, key)
		if err != nil {
			t.Fatal(err)
		}
		timestamp, good, _ := strings.Cut(h.Get("Stripe-Signature"), ",")
		h.Set("Stripe-Signature", tt.spell(timestamp, good))
		if r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments", body, h); r.status != tt.status {
			t.Errorf("%d: %d %s", i, r.status, r.body)
		}
	}
}

// One text is another key in each scheme, and none is guessed.
func TestO030SecretPrefixAndEncoding(t *testing.T) {
	t.Parallel()
	const text = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	quoted := `, secrets: ["` + text + `"]`
	w := newWorld(t, "sim", sources(t, map[string]string{"raw": "scheme: stripe" + quoted, "decoded": "scheme: standard-webhooks, event: /id" + quoted}))
	w.want(http.StatusAccepted, w.post("raw", "stripe", text, paidBody("evt_1")))
	w.want(http.StatusAccepted, w.post("decoded", "standard-webhooks", text, paidBody("evt_1")))
	w.want(http.StatusUnauthorized, w.post("raw", "standard-webhooks", text, paidBody("evt_2")))
	w.want(http.StatusUnauthorized, w.post("decoded", "stripe", text, paidBody("evt_2")))
	// The decoded bytes are no secret of the other one.
	w.want(http.StatusUnauthorized, w.post("raw", "stripe", "0123456789abcdef0123456789abcdef", paidBody("evt_2")))
}

// A captured request has no second effect: it is stale, or where no time is signed
// its key is taken for good.
func TestO033NoFreshnessAtAll(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		capture := func(source, scheme string) http.Header {
			w.Helper()
			s, _ := webhook.Lookup(scheme)
			key, err := s.ParseKey(sourceSecret)
			if err != nil {
				w.Fatal(err)
			}
			h, err := s.Sign(webhook.Message{ID: "m1", Timestamp: time.Now().Unix(), Body: paidBody("evt_1")}, key)
			if err != nil {
				w.Fatal(err)
			}
			w.want(http.StatusAccepted, w.send(http.MethodPost, w.node.APIURL()+"/hooks/"+source, paidBody("evt_1"), h))
			return h
		}
		dated, dateless := capture("payments", "stripe"), capture("code", "github")
		w.pass(10 * time.Minute)
		if r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments", paidBody("evt_1"), dated); r.status != http.StatusUnauthorized || r.at("reason") != "stale_timestamp" {
			w.Errorf("stripe: %d %s", r.status, r.body)
		}
		dateless.Set("X-GitHub-Delivery", "another")
		if r := w.want(http.StatusOK, w.send(http.MethodPost, w.node.APIURL()+"/hooks/code", paidBody("evt_1"), dateless)); r.at("duplicate") != "true" {
			w.Errorf("github: %s", r.body)
		}
		if n := len(w.sink.attempts()); n != 2 {
			w.Errorf("%d deliveries, want one of each source", n)
		}
	}, sources(t, map[string]string{"payments": "scheme: stripe", "code": "scheme: github"}))
}

// A header that is not there is never good, whatever else is.
func TestO035MissingHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{"payments": "scheme: stripe", "code": "scheme: github"}))
	for source, headers := range map[string][]http.Header{
		"payments": {{}, {"Stripe-Signature": {""}}, {"Stripe-Signature": {"t=,v1="}}, {"Stripe-Signature": {"v1"}}, {"Stripe_signature": {"t=1,v1=00"}}},
		"code":     {{}, {"X-Hub-Signature-256": {""}}, {"X-Hub-Signature-256": {"sha256="}}, {"X-Hub-Signature": {"sha1=c95ca6ff52feb963cbd18165a05a36641ae8bd72"}}},
	} {
		for _, h := range headers {
			if r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/"+source, paidBody("evt_1"), h); r.status != http.StatusUnauthorized {
				t.Errorf("%s %v: %d %s", source, h, r.status, r.body)
			}
		}
	}
	if rows := w.get("/v1/events?direction=inbound").items(); len(rows) != 0 {
		t.Errorf("%d events are stored", len(rows))
	}
	if r := w.get("/v1/sources/payments"); r.at("counts.verdicts.refused") != "5" {
		t.Errorf("counted: %s", r.body)
	}
}

// A signature of any length and spelling is refused alike, and nothing breaks.
func TestO036OddSignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", sources(t, map[string]string{"code": "scheme: github"}))
	said := map[string]bool{}
	for _, signature := range []string{"", "a", strings.Repeat("a", 63), strings.Repeat("z", 64), strings.Repeat("a", 65), strings.Repeat("a", 10_000), "====", strings.Repeat("A", 64)} {
		r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/code", paidBody("evt_1"), http.Header{"X-Hub-Signature-256": {"sha256=" + signature}})
		if r.status != http.StatusUnauthorized {
			t.Errorf("%d characters: %d", len(signature), r.status)
		}
		said[r.body] = true
	}
	if len(said) != 1 {
		t.Errorf("%d different answers: %v", len(said), said)
	}
	w.want(http.StatusAccepted, w.post("code", "github", sourceSecret, paidBody("evt_1")))
}
