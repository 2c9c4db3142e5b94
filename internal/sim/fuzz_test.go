package sim

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

func FuzzCreateBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","input":{"n":0}}`, `{"input":{"n":-1}}`, `{"input":{"n":1e400}}`, `{"input":[]}`, `[]`, `{`, ``,
		`{"callback_url":"http://"}`, `{"model":1}`,
	} {
		f.Add(seed)
	}
	s, err := NewServer(planOf(Script{Dialect: BodyTimestamp}), Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "callback_url") {
			return // it would be called
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/tasks", strings.NewReader(body)))
		if w.Code != 202 && w.Code != 400 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("status %d, body %s", w.Code, w.Body)
		}
	})
}

func FuzzParseDelivery(f *testing.F) {
	for _, seed := range []string{
		eventBody("evt_1", "op_1", "running", 2, 1), `{"request_id":"whd_1","data":{"taskId":"job_1"}}`,
		`{"id":"evt_1","data":{"task_id":"t","status":"running","version":2}}`, `{"data":null}`, `{"id":7}`, `[]`, ``,
	} {
		f.Add("", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		d, ok := parseDelivery(id, httptest.NewRequest("POST", "/hook", nil), body)
		if ok && (d.event == "" || !json.Valid(body)) {
			t.Errorf("%q taken as event %q", body, d.event)
		}
	})
}
