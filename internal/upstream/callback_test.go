package upstream

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

// signed gives the header of a callback of the provider.
func signed(t testing.TB, u Upstream, eventID string, body []byte) http.Header {
	t.Helper()
	header, err := u.scheme.Sign(webhook.Message{ID: eventID, Timestamp: signedAt.Unix(), Body: body}, u.keys...)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// rejected is what a case expects instead of a callback.
type rejected struct {
	kind   RejectKind
	reason string
}

func TestParseCallback(t *testing.T) {
	const ev = `{"id":"evt_1","type":"ai.task.completed","data":{"task_id":"t",`
	cases := []struct {
		name, preset, body string
		want               rejected
		event, task        string
		check              func(ledger.Observation) bool
	}{
		{name: "version as a number", preset: "body-timestamp", body: ev + `"status":"running","version":9007199254740993}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return o.HasVersion && o.Version == 9007199254740993 }},
		{name: "version as a string", preset: "body-timestamp", body: ev + `"status":"running","version":"2"}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return o.HasVersion && o.Version == 2 }},
		{name: "version 0", preset: "body-timestamp", body: ev + `"status":"running","version":0}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return o.HasVersion && o.Version == 0 }},
		{name: "no version", preset: "body-timestamp", body: ev + `"status":"running","version":null}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return !o.HasVersion }},
		{name: "half a version", preset: "body-timestamp", body: ev + `"status":"running","version":1.5}}`, want: rejected{RejectMalformed, ReasonBadVersion}, event: "evt_1", task: "t"},
		{name: "negative version", preset: "body-timestamp", body: ev + `"status":"running","version":-1}}`, want: rejected{RejectMalformed, ReasonBadVersion}, event: "evt_1", task: "t"},
		{name: "version beyond 64 bits", preset: "body-timestamp", body: ev + `"status":"running","version":9223372036854775808}}`, want: rejected{RejectMalformed, ReasonBadVersion}, event: "evt_1", task: "t"},
		{name: "version in words", preset: "body-timestamp", body: ev + `"status":"running","version":"two"}}`, want: rejected{RejectMalformed, ReasonBadVersion}, event: "evt_1", task: "t"},
		{name: "unknown word", preset: "body-timestamp", body: ev + `"status":"PAUSED","version":2}}`, want: rejected{RejectUnknownState, ReasonUnknownState}, event: "evt_1", task: "t"},
		{name: "word in another case", preset: "body-timestamp", body: ev + `"status":"Succeeded"}}`, want: rejected{RejectUnknownState, ReasonUnknownState}, event: "evt_1", task: "t"},
		{name: "no state", preset: "body-timestamp", body: ev + `"version":2}}`, want: rejected{RejectMalformed, ReasonMissingState}, event: "evt_1", task: "t"},
		{name: "state is an object", preset: "body-timestamp", body: ev + `"status":{}}}`, want: rejected{RejectMalformed, ReasonMissingState}, event: "evt_1", task: "t"},
		{name: "no event id", preset: "body-timestamp", body: `{"type":"ai.task.completed","data":{"task_id":"t","status":"running"}}`, want: rejected{RejectMalformed, ReasonMissingEvent}, task: "t"},
		{name: "no task", preset: "body-timestamp", body: `{"id":"evt_1","type":"ai.task.completed","data":{"status":"running"}}`, want: rejected{RejectMalformed, ReasonMissingTask}, event: "evt_1"},
		{name: "no type", preset: "body-timestamp", body: `{"id":"evt_1","data":{"task_id":"t","status":"running"}}`, want: rejected{RejectMalformed, ReasonMissingType}, event: "evt_1", task: "t"},
		{name: "unknown type without ids", preset: "body-timestamp", body: `{"type":"ai.account.low"}`, want: rejected{RejectUnknownType, ReasonUnknownType}},
		{name: "unknown type and word", preset: "body-timestamp", body: `{"id":"evt_1","type":"ai.task.paused","data":{"task_id":"t","status":"paused"}}`, want: rejected{RejectUnknownType, ReasonUnknownType}, event: "evt_1", task: "t"},
		{name: "progress with a success (R12)", preset: "body-timestamp", body: `{"id":"evt_1","type":"ai.task.progress","data":{"task_id":"t","status":"succeeded","version":9}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return o.ProgressOnly && o.State == pawl.Succeeded && o.Version == 9 }},
		{name: "progress with an unknown word", preset: "body-timestamp", body: `{"id":"evt_1","type":"ai.task.progress","data":{"task_id":"t","status":"denoising"}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return o.ProgressOnly && o.State == 0 && o.Word == "denoising" }},
		{name: "progress without a word", preset: "body-timestamp", body: `{"id":"evt_1","type":"ai.task.progress","data":{"task_id":"t"}}`, event: "evt_1", task: "t",
			check: func(o ledger.Observation) bool { return o.ProgressOnly && o.State == 0 }},
		{name: "not JSON", preset: "body-timestamp", body: `payload=%7B%7D`, want: rejected{RejectMalformed, ReasonMalformedJSON}},
		{name: "empty", preset: "body-timestamp", body: ``, want: rejected{RejectMalformed, ReasonMalformedJSON}},
		{name: "a name twice", preset: "body-timestamp", body: ev + `"status":"running","status":"succeeded"}}`, want: rejected{RejectMalformed, ReasonMalformedJSON}},
		{name: "data after the value", preset: "body-timestamp", body: ev + `"status":"running"}} {}`, want: rejected{RejectMalformed, ReasonMalformedJSON}},
		{name: "media-v2 state", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"canceled"}}`, want: rejected{RejectUnknownState, ReasonUnknownState}, event: "whd_1", task: "j"},
		{name: "media-v2 without request_id", preset: "media-v2", body: `{"data":{"taskId":"j","state":"queued"}}`, want: rejected{RejectMalformed, ReasonMissingEvent}, task: "j"},
		{name: "cost that is none", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"succeeded","cost":"free"}}`, want: rejected{RejectMalformed, ReasonBadCost}, event: "whd_1", task: "j"},
		{name: "negative cost", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"succeeded","cost":-1}}`, want: rejected{RejectMalformed, ReasonBadCost}, event: "whd_1", task: "j"},
		{name: "settled in words", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"succeeded","settled":"true"}}`, want: rejected{RejectMalformed, ReasonBadSettled}, event: "whd_1", task: "j"},
		// R28: more than nine places are rounded half up, the text is kept.
		{name: "cost finer than 10^-9", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"succeeded","cost":0.1234567895,"settled":true}}`, event: "whd_1", task: "j",
			check: func(o ledger.Observation) bool {
				return o.Cost == 123456790 && o.CostText == "0.1234567895" && o.Settled == ledger.SettledYes
			}},
		{name: "cost with an exponent", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"succeeded","cost":1.5e-1,"settled":false}}`, event: "whd_1", task: "j",
			check: func(o ledger.Observation) bool {
				return o.Cost == 150000000 && o.Settled == ledger.SettledNo && o.Currency == "EUR"
			}},
		// 2-contracts §2: in a callback, request_id names the event; it is no request of ours.
		{name: "media-v2 request_id", preset: "media-v2", body: `{"request_id":"whd_1","data":{"taskId":"j","state":"queued"}}`, event: "whd_1", task: "j",
			check: func(o ledger.Observation) bool { return o.RequestID == "" }},
		{name: "sim in another currency", preset: "sim", body: `{"type":"task.updated","task":"s","state":"failed","cost":"1","currency":"GBP"}`, event: "evt_h", task: "s",
			check: func(o ledger.Observation) bool { return o.Currency == "GBP" && o.ErrorCode == pawl.FailUpstream }},
		{name: "sim progress beyond the end", preset: "sim", body: `{"type":"task.progress","task":"s","state":"processing","progress":1.2}`, event: "evt_h", task: "s",
			check: func(o ledger.Observation) bool { return o.Progress == 10000 && o.ProgressOnly }},
		{name: "sim progress that is none", preset: "sim", body: `{"type":"task.progress","task":"s","state":"processing","progress":"half"}`, event: "evt_h", task: "s",
			check: func(o ledger.Observation) bool { return o.Progress == -1 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := testUpstream(t, c.preset, "https://up.example.com")
			got, rejection := u.ParseCallback(signed(t, u, "evt_h", []byte(c.body)), []byte(c.body), signedAt)
			if c.want.kind != 0 {
				if rejection == nil || rejection.Kind != c.want.kind || rejection.Reason != c.want.reason {
					t.Fatalf("%+v, want %v %s", rejection, c.want.kind, c.want.reason)
				}
				if rejection.EventID != c.event || rejection.Task != c.task || !rejection.Kind.Verified() {
					t.Errorf("evidence %+v, want event %q of task %q", rejection, c.event, c.task)
				}
				return
			}
			if rejection != nil {
				t.Fatalf("rejected: %+v", rejection)
			}
			if got.EventID != c.event || got.Observation.Task != c.task || !c.check(got.Observation) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Whatever is wrong with a body, nothing of it shows while its sender is not
// known: not by the kind, nor by any evidence.
func TestNothingIsReadBeforeTheSignature(t *testing.T) {
	bodies := []string{
		`{"request_id":"whd_1","id":"e","type":"ai.task.completed","task":"s","data":{"taskId":"j","task_id":"j","state":"succeeded","status":"succeeded"}}`,
		`{"request_id":"whd_1","id":"e","type":"nope","data":{"taskId":"j","task_id":"j","state":"nope","status":"nope"}}`,
		`{"data":{"taskId":"j"}}`, `{"id":`, ``, `payload=1`,
	}
	for preset := range testKeys {
		u := testUpstream(t, preset, "https://up.example.com")
		good := []byte(bodies[0])
		for _, body := range bodies {
			header := signed(t, u, "e", good)
			for name, breakIt := range map[string]func(){
				"signed for another body": func() { header = signed(t, u, "e", append([]byte(" "), good...)) },
				"no header":               func() { header = http.Header{} },
				"other payload version":   func() { header = http.Header{"X-Webhook-Payload-Version": {"1"}} },
			} {
				breakIt()
				_, rejection := u.ParseCallback(header, []byte(body), signedAt)
				if rejection == nil || rejection.Kind != RejectSignature {
					t.Fatalf("%s: %s: %s: %+v, want a refused signature", preset, name, body, rejection)
				}
				if *rejection != (Rejection{Kind: RejectSignature, Reason: rejection.Reason}) || rejection.Kind.Verified() {
					t.Errorf("%s: %s: %s: an unverified body was read: %+v", preset, name, body, rejection)
				}
			}
		}
	}
}

func TestStaleCallbacks(t *testing.T) {
	body := []byte(`{"request_id":"whd_1","data":{"taskId":"j","state":"queued"}}`)
	u := testUpstream(t, "media-v2", "https://up.example.com")
	header := signed(t, u, "", body)
	header.Set("X-Webhook-Payload-Version", "2")
	for offset, stale := range map[time.Duration]bool{
		-301 * time.Second: true, -300 * time.Second: false, 0: false, 300 * time.Second: false, 301 * time.Second: true,
	} {
		_, rejection := u.ParseCallback(header, body, signedAt.Add(offset))
		if got := rejection != nil && rejection.Kind == RejectStale; got != stale || rejection != nil && !stale {
			t.Errorf("at %v: %+v, want stale %v", offset, rejection, stale)
		}
	}
}

// R16: only 2 is accepted, and the real sender's other versions are visible.
func TestPayloadVersions(t *testing.T) {
	body := []byte(`{"request_id":"whd_1","data":{"taskId":"j","state":"queued"}}`)
	u := testUpstream(t, "media-v2", "https://up.example.com")
	for version, accepted := range map[string]bool{"2": true, "1": false, "3": false, "02": false, "": false} {
		header := signed(t, u, "", body)
		header.Set("X-Webhook-Payload-Version", version)
		if version == "" {
			header.Del("X-Webhook-Payload-Version")
		}
		_, r := u.ParseCallback(header, body, signedAt)
		if accepted && r != nil {
			t.Errorf("version %q: %+v", version, r)
		}
		if want := (Rejection{RejectMalformed, ReasonPayloadVersion, "whd_1", "", "j", "queued"}); !accepted && (r == nil || *r != want) {
			t.Errorf("version %q: %+v, want %+v", version, r, want)
		}
	}
}

func TestCallbackWithoutKeys(t *testing.T) {
	u := testUpstream(t, "sim", "https://up.example.com")
	header := signed(t, u, "e", nil)
	u.keys = nil
	if _, r := u.ParseCallback(header, nil, signedAt); r == nil || r.Kind != RejectSignature || u.Policy().Callbacks {
		t.Errorf("%+v, want refused and no callbacks promised", r)
	}
}

func TestEventKeys(t *testing.T) {
	key := func(k EventKey, body string) string {
		d, err := readDocument([]byte(body), k.From...)
		if err != nil {
			t.Fatal(err)
		}
		return k.key(d, []byte(body), "signed")
	}
	fields := EventKey{From: []string{"/task", "/state", "/version"}}
	if got := key(fields, `{"task":"a","state":"b","version":3}`); got != "a&b&3" {
		t.Errorf("joined key %q", got)
	}
	if a, b := key(fields, `{"task":"a&b","state":"c","version":1}`), key(fields, `{"task":"a","state":"b&c","version":1}`); a == b {
		t.Errorf("two events share the key %q", a)
	}
	if got := key(fields, `{"task":"a","version":3}`); got != "" {
		t.Errorf("a key from two of three parts: %q", got)
	}
	long := strings.Repeat("x", 200)
	if got := key(EventKey{From: []string{"/a", "/b"}}, `{"a":"`+long+`","b":"`+long+`"}`); len(got) != len("sha256:")+64 {
		t.Errorf("a key of %d bytes", len(got))
	}
	if got := key(EventKey{From: []string{signedID}}, `{}`); got != "signed" {
		t.Errorf("signed id %q", got)
	}
	// SHA-256 of `{"task":"a","sent":,"n":{"sent":1}}`, by sha256sum.
	const stable = "sha256:a0256c32afddddecb7491788d378e6995e7321a1357f71c8bec88c571d06b8f3"
	digest := EventKey{Digest: true, Volatile: []string{"/sent"}}
	for _, body := range []string{`{"task":"a","sent":1,"n":{"sent":1}}`, `{"task":"a","sent":{"at":[2]},"n":{"sent":1}}`} {
		if got := key(digest, body); got != stable {
			t.Errorf("digest of %s: %s, want %s", body, got, stable)
		}
	}
	if got := key(digest, `{"task":"a","sent":1,"n":{"sent":2}}`); got == stable {
		t.Error("a member that is not volatile was dropped")
	}
}
