package sim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

// What the simulator does with a cancel, and what its books say of it.
func TestCancelFaults(t *testing.T) {
	long := func(f Fault, times int) Script {
		return Script{Dialect: Native, End: hour, Settle: hour, Trouble: Trouble{Cancel: f, CancelTimes: times}}
	}
	cases := []struct {
		script  Script
		answers []int // 0 for none
		state   string
	}{
		{long("", 0), []int{202, 202}, "canceled"},
		{long(CancelLost, 1), []int{0, 202}, "canceled"},
		{long(CancelFailed, 2), []int{503, 503, 202}, "canceled"},
		{long(CancelRefused, 1), []int{409, 409, 409}, "running"},
		{long(CancelIgnored, 2), []int{202, 202}, "running"},
		{Script{Dialect: Native}, []int{409}, "succeeded"},
	}
	scripts := make([]Script, len(cases))
	for i, c := range cases {
		scripts[i] = c.script
	}
	s := newTestServer(t, planOf(scripts...), Config{})
	for n, c := range cases {
		_, made := call(t, s, "POST", "/generate", s.Key(), fmt.Sprintf(`{"model":"m","input":{"n":%d}}`, n))
		for i, status := range c.answers {
			want(t, fmt.Sprintf("case %d, cancel %d", n, i), cancelOf(s, made["task"].(string)), status)
		}
		page := s.Snapshot().Operations[n]
		want(t, fmt.Sprintf("case %d, state", n), page.Tasks[0].State, c.state)
		want(t, fmt.Sprintf("case %d, counted", n), page.Cancels, len(c.answers))
	}
}

// cancelOf is the status of a cancel, 0 where the connection was closed.
func cancelOf(s *Server, task string) (status int) {
	defer func() {
		if recover() == http.ErrAbortHandler {
			status = 0
		}
	}()
	r := httptest.NewRequest("POST", "/cancel/"+task, nil)
	r.Header.Set("Authorization", "Bearer "+s.Key())
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

func TestTroubles(t *testing.T) {
	s := newTestServer(t, NewScripts(Options{Currency: "USD"},
		Script{Dialect: Native, Final: pawl.Succeeded, Cost: 2, Trouble: Trouble{Currency: "EUR", Result: ResultMissing}},
		Script{Dialect: Native, Final: pawl.Succeeded, Reads: ReadUnknownState, ReadTimes: 1},
		Script{Dialect: Native, Final: pawl.Succeeded, Reads: ReadNotFound, ReadTimes: 1},
		Script{Dialect: Native, Final: pawl.Succeeded, Create: CreateOther, CreateTimes: 1},
	), Config{})
	task := func(n int) string {
		_, made := call(t, s, "POST", "/generate", s.Key(), fmt.Sprintf(`{"model":"m","input":{"n":%d}}`, n))
		return made["task"].(string)
	}
	read := func(task string) (int, map[string]any) {
		return call(t, s, "GET", "/status/"+task, s.Key(), "")
	}
	_, odd := read(task(0))
	want(t, "currency", odd["currency"], "EUR")
	want(t, "cost", odd["cost"], "0.000000002")
	want(t, "result", odd["result"], nil)
	melts := task(1)
	_, first := read(melts)
	_, second := read(melts)
	want(t, "words", fmt.Sprint(first["state"], " ", second["state"]), "melted succeeded")
	lost := task(2)
	missing, _ := read(lost)
	found, _ := read(lost)
	want(t, "statuses", fmt.Sprint(missing, " ", found), "404 200")
	other := task(3)
	if status, _ := read(other); status != 404 || !strings.HasSuffix(other, "-second") {
		t.Errorf("the create's answer names %s, which is read with %d", other, status)
	}
	if real := s.Snapshot().Operations[3].Tasks[0].ID; other != real+"-second" {
		t.Errorf("the task is %s, and the answer names %s", real, other)
	}
}

// Callbacks by hand: an address without a token, an unknown type, and the same
// event with another end.
func TestCallbacksByHand(t *testing.T) {
	script := Script{Dialect: Native, Callbacks: []Callback{
		{Event: "end", Kind: TellsEnd, Fault: CallbackNoToken},
		{Event: "odd", Kind: TellsRunning, Fault: CallbackUnknownType},
		{Event: "end", Kind: TellsEnd, Fault: CallbackDiffers},
	}}
	got, _, _ := play(t, script, Config{}, nil)
	if len(got) != 3 {
		t.Fatalf("%d callbacks", len(got))
	}
	var ids []string
	for _, a := range got {
		if a.reason != nil {
			t.Errorf("not well signed: %v", a.reason)
		}
		switch {
		case strings.Contains(a.body, `"type":"task.melted"`):
			want(t, "the odd one", strings.Contains(a.body, `"state":"processing"`), true)
			continue
		case strings.Contains(a.body, `"state":"failed"`):
			want(t, "path", a.path, "/hook")
		default:
			want(t, "path without the token", a.path, "/")
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(a.body, `{"id":"`), `"`)
		ids = append(ids, id)
	}
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("one event with two ends: %v", ids)
	}
}
