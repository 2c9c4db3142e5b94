package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

const testSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func newTestReceiver(t *testing.T, c ReceiverConfig) *Receiver {
	t.Helper()
	if c.Secrets == nil {
		c.Secrets = []string{testSecret}
	}
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// deliver signs a body as Standard Webhooks and hands it over; 0 is a cut.
func deliver(t *testing.T, r *Receiver, secret, id, body string, headers ...string) (status int) {
	t.Helper()
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: []byte(body)}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest("POST", "/hook", strings.NewReader(body))
	request.Header = signed
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil {
			want(t, "panic", p, http.ErrAbortHandler)
			status = 0
		}
	}()
	r.ServeHTTP(w, request)
	return w.Code
}

func eventBody(id, operation, state string, version, sequence int) string {
	return fmt.Sprintf(`{"id":%q,"type":"operation.%s","timestamp":"2026-01-01T00:00:00.000000Z","sequence":%d,`+
		`"data":{"id":%q,"state":%q,"version":%d}}`, id, state, sequence, operation, state, version)
}

func TestReceiverKeepsBooks(t *testing.T) {
	r := newTestReceiver(t, ReceiverConfig{})
	running := eventBody("evt_1", "op_1", "running", 2, 1)
	done := eventBody("evt_2", "op_1", "succeeded", 3, 2)
	for _, d := range [][2]string{{"evt_1", running}, {"evt_2", done}, {"evt_1", running}} {
		want(t, "status", deliver(t, r, testSecret, d[0], d[1]), 200)
	}
	other := "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	want(t, "wrong secret", deliver(t, r, other, "evt_3", done), 401)

	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/books", nil))
	var b ReceiverBooks
	if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	want(t, "events", len(b.Events), 2)
	want(t, "count of the first", b.Events[0].Count, 2)
	want(t, "answers to the first", b.Events[0].Statuses, []int{200, 200})
	want(t, "operations", b.Operations, []ReceivedOperation{{Path: "/hook", ID: "op_1", Seen: []Seen{
		{"evt_1", "operation.running", 2, "running", 1}, {"evt_2", "operation.succeeded", 3, "succeeded", 2},
	}}})
	want(t, "refused", b.Refused, map[string]int{"no_match": 1})
	want(t, "violations", len(b.Violations), 0)
}

func TestReceiverFindsViolations(t *testing.T) {
	r := newTestReceiver(t, ReceiverConfig{})
	body := eventBody("evt_1", "op_1", "running", 2, 1)
	deliver(t, r, testSecret, "evt_1", body, "Pawl-Endpoint-Sequence", "1")
	deliver(t, r, testSecret, "evt_1", body+" ")
	deliver(t, r, testSecret, "evt_2", eventBody("evt_2", "op_1", "succeeded", 3, 2), "Pawl-Endpoint-Sequence", "3")
	want(t, "violations", r.Snapshot().Violations, []Violation{
		{"/hook", "evt_1", "body_changed"}, {"/hook", "evt_2", "sequence_differs"},
	})
}

func TestReceiverFaults(t *testing.T) {
	first := map[Fault]int{
		"": 200, ReceiverFailed: 500, ReceiverSlow: 200, ReceiverCut: 0, ReceiverLimited: 429, ReceiverGone: 410,
	}
	config := ReceiverConfig{Seed: 3, Trouble: 80, Gone: true, Hold: time.Millisecond}
	r, twin := newTestReceiver(t, config), newTestReceiver(t, config)
	met := map[Fault]bool{}
	for i := range 100 {
		id := fmt.Sprint("evt_", i)
		body := eventBody(id, "op_1", "running", 2, i+1)
		fault, times := r.fault(id)
		met[fault] = true
		status := deliver(t, r, testSecret, id, body)
		want(t, "first answer of "+id, status, first[fault])
		want(t, "the same seed's answer", deliver(t, twin, testSecret, id, body), status)
		if fault == ReceiverGone {
			want(t, "gone for good", deliver(t, r, testSecret, id, body), 410)
			continue
		}
		for range times {
			status = deliver(t, r, testSecret, id, body)
		}
		want(t, "answer after the fault", status, 200)
	}
	for f := range first {
		if !met[f] {
			t.Errorf("no event of 100 meets %q", f)
		}
	}
	if n := r.Snapshot().Faults[ReceiverFailed]; n == 0 {
		t.Error("faulty answers are not counted")
	}
}

func TestReceiverReadsAllSchemes(t *testing.T) {
	for _, d := range Dialects() {
		t.Run(string(d), func(t *testing.T) {
			script := Script{Dialect: d, Callbacks: []Callback{
				{Event: "end", Kind: TellsEnd}, {Event: "end", Kind: TellsEnd, Fault: CallbackBadSignature},
			}}
			s := newTestServer(t, planOf(script), Config{})
			r := newTestReceiver(t, ReceiverConfig{Scheme: d.Scheme(), Secrets: []string{testSecret, s.Secret(d)}})
			base, err := r.Start()
			if err != nil {
				t.Fatal(err)
			}
			createOn(t, s, d, 0, base+"/in")
			if err := s.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			b := r.Snapshot()
			if len(b.Events) != 1 || b.Events[0].Event != s.Snapshot().Operations[0].Callbacks[0].Event {
				t.Errorf("events %v", b.Events)
			}
			want(t, "refused", b.Refused, map[string]int{"no_match": 1})
		})
	}
}

func TestReceiverNeedsASecret(t *testing.T) {
	for name, c := range map[string]ReceiverConfig{
		"none": {}, "unusable": {Secrets: []string{"whsec_short"}}, "scheme": {Scheme: "nobody", Secrets: []string{testSecret}},
	} {
		if _, err := NewReceiver(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
