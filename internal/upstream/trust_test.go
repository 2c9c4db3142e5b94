package upstream

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// A hint needs what its description has a place for and nothing more: no
// signature, no event id, no state (1-product C6).
func TestHints(t *testing.T) {
	strict := strings.Replace(specOf(t, "sim-unsigned"), "trust: hint\n  fields: {task: /task}",
		"trust: hint\n  type: /type\n  types: {task.updated: state, task.progress: progress}\n  fields: {task: /task, state: /state}", 1)
	tokenOnly := strings.Replace(specOf(t, "sim-unsigned"), "trust: hint\n  fields: {task: /task}", "trust: hint\n  fields: {request_id: /request_id}", 1)
	for _, tc := range []struct {
		name, spec, body string
		want             rejected
		task             string
	}{
		{name: "task alone", spec: specOf(t, "sim-unsigned"), body: `{"task":"t","state":"nonsense","cost":"much"}`, task: "t"},
		{name: "no task", spec: specOf(t, "sim-unsigned"), body: `{"id":"t"}`, want: rejected{RejectMalformed, ReasonMissingTask}},
		{name: "no JSON", spec: specOf(t, "sim-unsigned"), body: `task=t`, want: rejected{RejectMalformed, ReasonMalformedJSON}},
		{name: "a task twice", spec: specOf(t, "sim-unsigned"), body: `{"task":"t","task":"u"}`, want: rejected{RejectMalformed, ReasonMalformedJSON}},
		{name: "all that it has a place for", spec: strict, body: `{"type":"task.updated","task":"t","state":"failed"}`, task: "t"},
		{name: "a word of no state", spec: strict, body: `{"type":"task.updated","task":"t","state":"nonsense"}`, want: rejected{RejectUnknownState, ReasonUnknownState}},
		{name: "no state", spec: strict, body: `{"type":"task.updated","task":"t"}`, want: rejected{RejectMalformed, ReasonMissingState}},
		{name: "an unknown type", spec: strict, body: `{"type":"task.sold","task":"t","state":"failed"}`, want: rejected{RejectUnknownType, ReasonUnknownType}},
		{name: "by its address alone", spec: tokenOnly, body: `{}`},
	} {
		spec, err := Parse([]byte(tc.spec))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		u, err := New("up", spec, hinting(t))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		c, rejection := u.ParseCallback(http.Header{}, []byte(tc.body), signedAt)
		got := rejected{}
		if rejection != nil {
			got = rejected{rejection.Kind, rejection.Reason}
		}
		if got != tc.want || rejection == nil && c.Observation.Task != tc.task {
			t.Errorf("%s: task %q, rejected as %+v; want %q, %+v", tc.name, c.Observation.Task, got, tc.task, tc.want)
		}
		if !u.Policy().Callbacks {
			t.Errorf("%s: the provider is asked for no callbacks", tc.name)
		}
	}
}

func specOf(t *testing.T, preset string) string {
	t.Helper()
	data, err := presets.ReadFile("presets/" + preset + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func hinting(t *testing.T) config.Upstream {
	s := config.DefaultUpstream()
	s.BaseURL, s.Key = "https://up.example.com", secret(t, "k")
	return s
}

// A signed provider may be taken as hinting; where there are keys, its
// signature must still be good.
func TestHintsOfASignedProvider(t *testing.T) {
	spec, _ := Preset("sim")
	settings := hinting(t)
	settings.Trust = config.TrustHint
	body := []byte(`{"type":"task.updated","task":"t","state":"succeeded"}`)
	u, err := New("up", spec, settings)
	if err != nil {
		t.Fatal(err)
	}
	if _, rejection := u.ParseCallback(http.Header{}, body, signedAt); rejection != nil {
		t.Errorf("without keys: %+v", rejection)
	}
	settings.WebhookKeys = []config.DatedSecret{{Key: secret(t, testKeys["sim"])}}
	if u, err = New("up", spec, settings); err != nil {
		t.Fatal(err)
	}
	if _, rejection := u.ParseCallback(http.Header{}, body, signedAt); rejection == nil || rejection.Kind != RejectSignature {
		t.Errorf("unsigned, with keys: %+v", rejection)
	}
	if c, rejection := u.ParseCallback(signed(t, u, "e", body), body, signedAt); rejection != nil || c.Observation.Task != "t" {
		t.Errorf("signed, with keys: %+v", rejection)
	}
}

// Settings about callbacks must fit the description.
func TestTrustSettings(t *testing.T) {
	blind := strings.ReplaceAll(specOf(t, "sim"), "\nread:\n  method: GET\n  path: /status/{task}\n", "\n")
	silent, _, _ := strings.Cut(specOf(t, "sim"), "callback:")
	for _, tc := range []struct {
		name, spec, key string
		change          func(*config.Upstream)
	}{
		{"signed without signatures", specOf(t, "sim-unsigned"), "trust", func(s *config.Upstream) { s.Trust = config.TrustSigned }},
		{"keys without signatures", specOf(t, "sim-unsigned"), "webhook_keys[0]", func(s *config.Upstream) {
			s.WebhookKeys = []config.DatedSecret{{Key: secret(t, testKeys["sim"])}}
		}},
		{"a hint and nothing to read", blind, "trust", func(s *config.Upstream) { s.Trust = config.TrustHint }},
		{"confirmed by what", blind, "confirm", func(s *config.Upstream) { s.Confirm = config.ConfirmPoll }},
		{"trust in nothing", silent, "trust", func(s *config.Upstream) { s.Trust = config.TrustHint }},
		{"confirming nothing", silent, "confirm", func(s *config.Upstream) { s.Confirm = config.ConfirmPoll }},
		{"a rate of nothing", silent, "callback_rate", func(s *config.Upstream) { s.CallbackRate = 1 }},
	} {
		spec, err := Parse([]byte(tc.spec))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		settings := hinting(t)
		tc.change(&settings)
		_, err = New("up", spec, settings)
		if wrong, ok := err.(*settingError); !ok || wrong.key != tc.key {
			t.Errorf("%s: %v, want a problem with %s", tc.name, err, tc.key)
		}
	}
	for name, change := range map[string][2]string{
		"a hint without a read":       {"read:\n  method: GET\n  path: /status/{task}", ""},
		"another word":                {"trust: hint", "trust: maybe"},
		"signed, and without scheme":  {"trust: hint", "trust: signed"},
		"an event key and its digest": {"trust: hint", "trust: hint\n  event: {from: [/id], digest: true}"},
	} {
		if _, err := Parse([]byte(strings.Replace(specOf(t, "sim-unsigned"), change[0], change[1], 1))); err == nil || !strings.Contains(err.Error(), "callback.") {
			t.Errorf("%s: %v, want a problem with the callback", name, err)
		}
	}
}

// A stored callback reads as the description of today has it, with the event
// id that its signature covered and without asking its age (1-product C10).
func TestReread(t *testing.T) {
	body := `{"type":"task.sold","task":"t","state":"archived"}`
	kept := func(name, value string) string {
		text, _ := json.Marshal(map[string]string{name: value})
		return string(text)
	}
	sim := specOf(t, "sim")
	mended := strings.Replace(strings.Replace(sim, "task.progress: progress", "task.progress: progress, task.sold: state", 1), "succeeded: succeeded", "succeeded: succeeded\n  archived: succeeded", 1)
	for _, tc := range []struct {
		name, spec string
		event      ledger.Event
		body       string
		preset     pawl.Verdict
		key        string
	}{
		{"as it was", sim, ledger.Event{ExternalID: "e1"}, body, pawl.UnknownType, "e1"},
		{"mended", mended, ledger.Event{ExternalID: "e1"}, body, 0, "e1"},
		{"its id was in a header only", mended, ledger.Event{Headers: kept("webhook-id", "msg_1")}, body, 0, "msg_1"},
		{"its id is lost", mended, ledger.Event{}, body, pawl.Rejected, ""},
		{"payload version 3", specOf(t, "media-v2"), ledger.Event{Headers: kept("x-webhook-payload-version", "3")},
			`{"request_id":"w","data":{"taskId":"t","state":"succeeded"}}`, pawl.Rejected, "w"},
		{"payload version 2", specOf(t, "media-v2"), ledger.Event{Headers: kept("x-webhook-payload-version", "2")},
			`{"request_id":"w","data":{"taskId":"t","state":"succeeded"}}`, 0, "w"},
	} {
		spec, err := Parse([]byte(tc.spec))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		u, err := New("up", spec, hinting(t))
		if err != nil {
			t.Fatal(err)
		}
		c := u.Reread(tc.event, []byte(tc.body))
		if c.Preset != tc.preset || c.Event != tc.key || c.Up.Name != "up" {
			t.Errorf("%s: verdict %s (%s), key %q; want %s, %q", tc.name, c.Preset, c.Reason, c.Event, tc.preset, tc.key)
		}
		if tc.preset == 0 && (c.Obs.Task != "t" || c.Obs.State != pawl.Succeeded) {
			t.Errorf("%s: %+v", tc.name, c.Obs)
		}
	}
}
