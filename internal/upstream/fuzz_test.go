package upstream

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/internal/ledger"
)

func FuzzParse(f *testing.F) {
	for _, name := range Presets() {
		f.Add(presetText(f, name))
	}
	f.Add("name: &a x\nversion: *a")
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if spec.check() != nil || spec.Name == "" || len(spec.States) == 0 {
			t.Errorf("an unchecked description was accepted: %+v", spec)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add("media-v2", 200, `{"code":200,"data":{"taskId":"job","state":"succeeded","cost":"0.12","settled":true,"result":{}}}`)
	f.Add("media-v2", 200, `{"code":402,"msg":"no","data":null}`)
	f.Add("body-timestamp", 200, `{"task_id":"job","status":"running","version":2}`)
	f.Add("sim", 202, `{"task":"job","state":"queued","progress":0.5,"error":{"code":"x","message":"https://x/?t"}}`)
	f.Add("sim", 404, `{"error":{"code":"unknown_task","message":"\u0000"}}`)
	now := time.Unix(1790000000, 0)
	f.Fuzz(func(t *testing.T, preset string, status int, body string) {
		if _, ok := Preset(preset); !ok {
			return
		}
		u := testUpstream(t, preset, "https://up.example.com")
		a := answer{status: status, header: http.Header{}, body: []byte(body)}
		created := u.classify(a, now)
		if created.Outcome == 0 || (created.Outcome == ledger.CreateAccepted) != usableID(created.Task) {
			t.Errorf("create: %+v", created)
		}
		if created.Outcome == ledger.CreateAccepted && !success(status) {
			t.Errorf("HTTP %d was accepted", status)
		}
		checkText(t, created.Word, created.Message)
		read := u.readAnswer(a, u.spec.Read.Fields, "job", now)
		if read.Outcome == 0 || read.Outcome == ledger.ReadObserved && (read.Observation.Task != "job" || read.Observation.State == 0 || !success(status)) {
			t.Errorf("read: %+v", read)
		}
		checkObservation(t, read.Observation)
	})
}

func FuzzCallbacks(f *testing.F) {
	f.Add("media-v2", `{"request_id":"whd_1","data":{"taskId":"j","state":"succeeded","cost":1e-9,"settled":true}}`)
	f.Add("body-timestamp", `{"id":"evt_1","type":"ai.task.progress","data":{"task_id":"t","status":"succeeded","version":3}}`)
	f.Add("sim", `{"id":"e","type":"task.updated","task":"s","state":"failed","error":{"code":"x","message":"data:,x"}}`)
	f.Add("sim", `{`)
	f.Fuzz(func(t *testing.T, preset, body string) {
		if _, ok := Preset(preset); !ok {
			return
		}
		u := testUpstream(t, preset, "https://up.example.com")
		c, rejection := u.readCallback(http.Header{}, []byte(body), "evt_h", TrustSigned)
		if rejection == nil && (c.EventID == "" || c.Observation.Task == "" || c.Observation.State == 0 && !c.Observation.ProgressOnly) {
			t.Errorf("an unusable callback was accepted: %+v", c)
		}
		if len(c.EventID) > maxID || len(c.Type) > maxID {
			t.Errorf("long ids: %+v", c)
		}
		checkObservation(t, c.Observation)
		// The same body without a signature says nothing.
		_, rejection = u.ParseCallback(http.Header{}, []byte(body), signedAt)
		if rejection == nil || rejection.Kind != RejectSignature || rejection.EventID+rejection.Task+rejection.Type+rejection.Word != "" {
			t.Errorf("unsigned: %+v", rejection)
		}
	})
}

func checkObservation(t *testing.T, o ledger.Observation) {
	t.Helper()
	if o.Cost < 0 || o.Version < 0 || o.Progress < -1 || o.Progress > 10000 || len(o.CostText) > maxCostText {
		t.Errorf("out of bounds: %+v", o)
	}
	checkText(t, o.Word, o.ErrorMessage)
	checkText(t, o.ErrorWord, o.Currency)
}

func checkText(t *testing.T, word, message string) {
	t.Helper()
	if len(word) > maxWord || len(message) > maxMessage || hasControl(word+message) || !utf8.ValidString(word+message) ||
		strings.Contains(strings.ToLower(message), "https:") {
		t.Errorf("unsafe text: %q %q", word, message)
	}
}
