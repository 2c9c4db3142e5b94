package exercise

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/upstream"
)

// TestCapture: what identifies, orders and prices a task stays, and nothing
// else of a body; what was read is told by a read; and the whole can be played.
func TestCapture(t *testing.T) {
	const (
		progress = `{"code":200,"msg":"canary-msg","request_id":"whd_1","data":{"taskId":"job_1","state":"processing","note":["canary-note",7]}}`
		success  = `{"code":200,"msg":"canary-msg","request_id":"whd_2","data":{"taskId":"job_1","state":"succeeded","cost":"0.25","settled":true,"result":{"url":"https://canary.example.com/x?sig=1","canary":3.5},"errorMessage":null}}`
	)
	text, left, err := Capture(t.Context(), Captured{
		Description: upstream.PresetText("media-v2"), Task: "job_1",
		Seen: []Seen{
			{Event: "whd_1", Body: []byte(progress), Verdict: pawl.Applied, State: pawl.Running},
			{Verdict: pawl.Stale, State: pawl.Running},
			{Event: "whd_2", Body: []byte(success), Verdict: pawl.Applied, State: pawl.Succeeded},
			{Event: "whd_2", Body: []byte(success), Verdict: pawl.Duplicate, State: pawl.Succeeded},
		},
	})
	if err != nil || left != 0 {
		t.Fatalf("%d left out, error %v", left, err)
	}
	for _, secret := range []string{"canary-", "canary.example", "3.5"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in the fixture:\n%s", secret, text)
		}
	}
	f, err := ParseFixture(text)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"code":200,"msg":"replaced","request_id":"whd_2","data":{"taskId":"job_1","state":"succeeded","cost":"0.25","settled":true,"result":{"url":"replaced","canary":0},"errorMessage":null}}`
	body := f.Steps[2].Event.Body
	if err := body.Compact(); err != nil || string(body) != want {
		t.Errorf("body %s, error %v", body, err)
	}
	if err := f.Steps[1].Read.Body.Compact(); err != nil || string(f.Steps[1].Read.Body) != `{"data":{"state":"processing","taskId":"job_1"}}` {
		t.Errorf("read %s, error %v", f.Steps[1].Read.Body, err)
	}
	if f.Steps[3].Expect != (Expect{Status: 200, Verdict: "duplicate", State: "succeeded"}) {
		t.Errorf("the repeat expects %+v", f.Steps[3].Expect)
	}
}

// TestCaptureRefuses says what an operation lacks.
func TestCaptureRefuses(t *testing.T) {
	end := Seen{Event: "e", Body: []byte(`{"request_id":"e","data":{"taskId":"t","state":"succeeded"}}`), Verdict: pawl.Applied, State: pawl.Succeeded}
	for want, c := range map[string]Captured{
		"a read ended it":     {Description: upstream.PresetText("media-v2"), Task: "t", Seen: []Seen{{Verdict: pawl.Applied, State: pawl.Succeeded}}},
		"applied and to end":  {Description: upstream.PresetText("media-v2"), Task: "t", Seen: []Seen{{Event: "e", Body: end.Body, Verdict: pawl.Rejected, State: pawl.Running}}},
		"before any callback": {Description: upstream.PresetText("media-v2"), Task: "t", Seen: []Seen{{Verdict: pawl.Applied, State: pawl.Succeeded}, end}},
		"is no JSON":          {Description: upstream.PresetText("media-v2"), Task: "t", Seen: []Seen{{Event: "e", Body: []byte("x"), Verdict: pawl.Rejected, State: pawl.Running}, end}},
		"must not be empty":   {Description: upstream.PresetText("media-v2"), Task: "t"},
		"upstream: parse":     {Description: []byte("name: x"), Task: "t", Seen: []Seen{end}},
		"a task of its own":   {Description: upstream.PresetText("media-v2"), Seen: []Seen{end}},
	} {
		if _, _, err := Capture(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestCapturePlays: whatever happened, what is captured of it can be played. A
// read that came before its callback made that stale; one that the ledger knows
// nothing of did so too, and then the callback is left out.
func TestCapturePlays(t *testing.T) {
	body := func(id, rest string) []byte {
		return []byte(`{"code":200,"request_id":"` + id + `","data":{"taskId":"job_1",` + rest + `}}`)
	}
	event := func(id, rest string, v pawl.Verdict, state pawl.State) Seen {
		return Seen{Event: id, Body: body(id, rest), Verdict: v, State: state}
	}
	const processing, success = `"state":"processing"`, `"state":"succeeded","result":{"url":"x"}`
	readFirst := Seen{Verdict: pawl.Applied, State: pawl.Running}
	for _, tc := range []struct {
		name string
		seen []Seen
		left int
	}{
		{"the read came first", []Seen{readFirst, event("e1", processing, pawl.Stale, pawl.Running), event("e2", success, pawl.Applied, pawl.Succeeded)}, 0},
		{"twice the same, then one of another word", []Seen{
			event("e1", processing, pawl.Stale, pawl.Running), event("e2", `"state":"queued"`, pawl.Stale, pawl.Running),
			event("e3", success, pawl.Applied, pawl.Succeeded),
		}, 1},
		{"a review before the end", []Seen{event("e1", `"state":"thinking"`, pawl.UnknownState, pawl.Running), event("e2", success, pawl.Applied, pawl.Succeeded)}, 0},
		{"a read after the end", []Seen{event("e1", success, pawl.Applied, pawl.Succeeded), {Verdict: pawl.Applied, State: pawl.Succeeded}}, 1},
	} {
		text, left, err := Capture(t.Context(), Captured{Description: upstream.PresetText("media-v2"), Task: "job_1", Seen: tc.seen})
		if err != nil || left != tc.left {
			t.Errorf("%s: %d left out, want %d; error %v", tc.name, left, tc.left, err)
			continue
		}
		dir := t.TempDir()
		fixture := filepath.Join(dir, "mine.json")
		if err := os.WriteFile(fixture, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		if err := Run(t.Context(), Options{Out: filepath.Join(dir, "out"), Fixture: fixture, Log: &log}); err != nil {
			t.Errorf("%s: %v\n%s\n%s", tc.name, err, &log, text)
		}
	}
}
