package exercise

import (
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
	text, err := Capture(Captured{
		Description: upstream.PresetText("media-v2"), Task: "job_1",
		Seen: []Seen{
			{Event: "whd_1", Body: []byte(progress), Verdict: pawl.Applied, State: pawl.Running},
			{Verdict: pawl.Stale, State: pawl.Running},
			{Event: "whd_2", Body: []byte(success), Verdict: pawl.Applied, State: pawl.Succeeded},
			{Event: "whd_2", Body: []byte(success), Verdict: pawl.Duplicate, State: pawl.Succeeded},
		},
	})
	if err != nil {
		t.Fatal(err)
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
		"applied and to end": {Description: upstream.PresetText("media-v2"), Task: "t", Seen: []Seen{{Verdict: pawl.Applied, State: pawl.Succeeded}}},
		"is no JSON":         {Description: upstream.PresetText("media-v2"), Task: "t", Seen: []Seen{{Event: "e", Body: []byte("x"), Verdict: pawl.Rejected, State: pawl.Running}, end}},
		"must not be empty":  {Description: upstream.PresetText("media-v2"), Task: "t"},
		"upstream: parse":    {Description: []byte("name: x"), Task: "t", Seen: []Seen{end}},
		"a task of its own":  {Description: upstream.PresetText("media-v2"), Seen: []Seen{end}},
	} {
		if _, err := Capture(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
