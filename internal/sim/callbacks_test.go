package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/webhook"
)

// arrival is one callback as the test's own endpoint judged it.
type arrival struct {
	path   string
	reason error // nil: verified
	body   string
	at     time.Time
}

// endpoint verifies with the webhook package and answers 2xx to what verifies.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []arrival
	answer   func(arrival, int) int // status for a verified arrival, its number from 0
}

func newEndpoint(t *testing.T, s func() *Server, d Dialect) *endpoint {
	e := &endpoint{answer: func(arrival, int) int { return 200 }}
	scheme, ok := webhook.Lookup(d.Scheme())
	if !ok {
		t.Fatalf("no scheme %s", d.Scheme())
	}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key, err := scheme.ParseKey(s().Secret(d))
		if err == nil {
			_, err = scheme.Verify(webhook.Request{Header: r.Header, Body: body}, time.Now(), key)
		}
		a := arrival{r.URL.Path, err, string(body), time.Now()}
		e.mu.Lock()
		n := len(e.arrivals)
		e.arrivals = append(e.arrivals, a)
		e.mu.Unlock()
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(e.answer(a, n))
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) seen() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.arrivals)
}

// play runs one script to the end of its callbacks.
func play(t *testing.T, script Script, c Config, answer func(arrival, int) int) ([]arrival, Operation, time.Time) {
	t.Helper()
	var s *Server
	e := newEndpoint(t, func() *Server { return s }, script.Dialect)
	if answer != nil {
		e.answer = answer
	}
	c.Backoff = time.Millisecond
	s = newTestServer(t, planOf(script), c)
	made := createOn(t, s, script.Dialect, 0, e.URL+"/hook")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return e.seen(), s.Snapshot().Operations[0], made
}

// createOn makes a task and returns when it was answered.
func createOn(t *testing.T, s *Server, d Dialect, n int, callback string) time.Time {
	t.Helper()
	path := map[Dialect]string{Native: "/generate", MediaV2: "/api/v1/jobs/createTask", BodyTimestamp: "/tasks"}[d]
	body := fmt.Sprintf(`{"model":"m","input":{"n":%d},"callback_url":%q,"callBackUrl":%q}`, n, callback, callback)
	status, _ := call(t, s, "POST", path, s.Key(), body, "Idempotency-Key", fmt.Sprint("key-", n))
	if status/100 != 2 {
		t.Fatalf("create: status %d", status)
	}
	return time.Now()
}

func TestCallbacksVerify(t *testing.T) {
	bodies := map[Dialect]string{ // field names of the brief, 2-contracts §2 and §3
		Native:        `{"id":"evt_…","type":"task.updated","task":"…","state":"succeeded","cost":"0.000000001","currency":"USD","settled":true,"result":{…}}`,
		MediaV2:       `{"code":200,"msg":"success","data":{"taskId","model","state":"succeeded","cost","settled","result","createTime","completeTime"},"request_id":"whd_…"}`,
		BodyTimestamp: `{"id":"evt_…","type":"ai.task.completed","created_at":"…","data":{"task_id","status":"succeeded","version":3,"result"}}`,
	}
	for _, d := range Dialects() {
		t.Run(string(d), func(t *testing.T) {
			script := Script{Dialect: d, Cost: 1, Callbacks: []Callback{
				{Event: "running", Kind: TellsRunning}, {Event: "end", Kind: TellsEnd, At: time.Second},
				{Event: "end", Kind: TellsEnd, At: time.Second, Fault: CallbackDuplicate},
			}}
			got, o, _ := play(t, script, Config{Speed: 50}, nil)
			if len(got) != 3 {
				t.Fatalf("%d callbacks arrived, want 3", len(got))
			}
			for i, a := range got {
				if a.reason != nil || a.path != "/hook" {
					t.Errorf("callback %d at %s: %v", i, a.path, a.reason)
				}
			}
			if got[1].body != got[2].body {
				t.Error("a duplicate has other bytes")
			}
			sameFields(t, got[1].body, bodies[d])
			want(t, "known after an acknowledged callback", o.Tasks[0].Known, true)
			for _, a := range o.Callbacks {
				want(t, "status in the books", a.Status, 200)
			}
		})
	}
}

// sameFields compares the top-level fields and the state words with a sketch.
func sameFields(t *testing.T, body, sketch string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	if data, ok := fields["data"].(map[string]any); ok {
		for k, v := range data {
			fields["data."+k] = v
		}
	}
	for k := range fields {
		if !strings.Contains(sketch, `"`+strings.TrimPrefix(k, "data.")+`"`) {
			t.Errorf("field %s of %s is not in the contract", k, body)
		}
	}
	for _, word := range []string{`"succeeded"`, `"type":"task.updated"`, `"type":"ai.task.completed"`, `"version":3`, `"settled":true`} {
		if strings.Contains(sketch, word) && !strings.Contains(body, word) {
			t.Errorf("%s lacks %s", body, word)
		}
	}
}

func TestCallbackFaults(t *testing.T) {
	end := Callback{Event: "end", Kind: TellsEnd}
	spoiled := func(f Fault, event string, kind CallbackKind) Callback {
		return Callback{Event: event, Kind: kind, Fault: f, At: 10 * time.Millisecond}
	}
	tests := []struct {
		callback Callback
		reasons  []error // of its arrivals
		shows    string  // in its body
		status   int     // in the books
	}{
		{spoiled(CallbackDropped, "running", TellsRunning), nil, "", 0},
		{spoiled(CallbackCorrupted, "running", TellsRunning), []error{webhook.ReasonNoMatch, nil}, "", 200},
		{spoiled(CallbackBadSignature, "end", TellsEnd), []error{webhook.ReasonNoMatch}, `"failed"`, 401},
		{spoiled(CallbackStale, "end", TellsEnd), []error{webhook.ReasonStaleTimestamp}, `"succeeded"`, 401},
		{spoiled(CallbackUnknownState, "unknown-state", TellsEnd), []error{nil}, `"melted"`, 200},
		{spoiled(CallbackUnknownTask, "unknown-task", TellsEnd), []error{nil}, `-unknown"`, 200},
		{spoiled(CallbackLate, "late", TellsRunning), []error{nil}, `"version":2`, 200},
		{spoiled(CallbackConflict, "conflict", TellsEnd), []error{nil}, `"failed"`, 200},
	}
	for _, test := range tests {
		t.Run(string(test.callback.Fault), func(t *testing.T) {
			script := Script{Dialect: BodyTimestamp, Callbacks: []Callback{end, test.callback}}
			got, o, _ := play(t, script, Config{}, nil)
			plain := slices.IndexFunc(got, func(a arrival) bool {
				return a.reason == nil && strings.Contains(a.body, `-end"`)
			})
			if plain < 0 || len(got) != 1+len(test.reasons) {
				t.Fatalf("arrivals %v, want the end and %d more", got, len(test.reasons))
			}
			got = slices.Delete(got, plain, plain+1)
			for i, reason := range test.reasons {
				a := got[i]
				if !errors.Is(a.reason, reason) {
					t.Errorf("attempt %d: %v, want %v", i+1, a.reason, reason)
				}
				if !strings.Contains(a.body, test.shows) {
					t.Errorf("the body %s lacks %s", a.body, test.shows)
				}
			}
			var statuses []int
			for _, a := range o.Callbacks {
				if a.Fault == test.callback.Fault {
					statuses = append(statuses, a.Status)
				}
			}
			if len(statuses) == 0 || statuses[len(statuses)-1] != test.status {
				t.Errorf("statuses %v in the books, want %d last", statuses, test.status)
			}
		})
	}
}

func TestRepeatsHaveTheSameBytes(t *testing.T) {
	for _, d := range Dialects() {
		s := newTestServer(t, planOf(Script{Dialect: d}), Config{})
		createOn(t, s, d, 0, "")
		made := s.book.order[0]
		genuine := made.body(Callback{Event: "end", Kind: TellsEnd}, "")
		made.body(Callback{Event: "end", Kind: TellsEnd, Fault: CallbackBadSignature}, "")
		again := made.body(Callback{Event: "end", Kind: TellsEnd, Fault: CallbackDuplicate, At: hour}, "")
		if !bytes.Equal(genuine, again) {
			t.Errorf("%s: first %s, then %s", d, genuine, again)
		}
	}
}

func TestEarlyCallbackComesBeforeTheAnswer(t *testing.T) {
	script := Script{Dialect: MediaV2, End: hour, Settle: hour, Callbacks: []Callback{
		{Event: "running", Kind: TellsRunning, Fault: CallbackEarly},
	}}
	got, _, made := play(t, script, Config{}, nil)
	if len(got) != 1 || !got[0].at.Before(made) {
		t.Errorf("arrivals %v, create answered at %s", got, made)
	}
}

func TestWrongTaskNamesAnotherOperation(t *testing.T) {
	var s *Server
	e := newEndpoint(t, func() *Server { return s }, Native)
	script := Script{Dialect: Native, Callbacks: []Callback{
		{Event: "end", Kind: TellsEnd}, {Event: "wrong-task", Kind: TellsEnd, Fault: CallbackWrongTask},
	}}
	s = newTestServer(t, planOf(Script{Dialect: Native}, script), Config{})
	createOn(t, s, Native, 0, "")
	createOn(t, s, Native, 1, e.URL)
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	books := s.Snapshot()
	got := e.seen()
	other := books.Operations[0].Tasks[0].ID
	if len(got) != 2 || got[1].reason != nil || !strings.Contains(got[1].body, `"task":"`+other+`"`) {
		t.Errorf("arrivals %v, want a second that verifies and names %s", got, other)
	}
}

// An end that nobody acknowledged must not be overtaken by its contradiction,
// nor a task that nobody knows by another one.
func TestTrapsAreWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, planOf(Script{Dialect: Native, Callbacks: []Callback{
			{Event: "end", Kind: TellsEnd, Fault: CallbackDropped},
			{Event: "conflict", Kind: TellsEnd, Fault: CallbackConflict},
			{Event: "unknown-task", Kind: TellsEnd, Fault: CallbackUnknownTask},
		}}), Config{})
		createOn(t, s, Native, 0, "http://127.0.0.1:1/")
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, a := range s.Snapshot().Operations[0].Callbacks {
			if a.Number != 0 {
				t.Errorf("%s was sent", a.Fault)
			}
		}
	})
}

func TestRefusedCallbackIsRepeated(t *testing.T) {
	script := Script{Dialect: Native, Callbacks: []Callback{{Event: "end", Kind: TellsEnd}}}
	got, o, _ := play(t, script, Config{Attempts: 4}, func(_ arrival, n int) int {
		if n < 2 {
			return 503
		}
		return 204
	})
	want(t, "attempts", len(got), 3)
	var statuses []int
	for _, a := range o.Callbacks {
		statuses = append(statuses, a.Status)
	}
	want(t, "statuses", statuses, []int{503, 503, 204})
	got, _, _ = play(t, script, Config{Attempts: 4}, func(arrival, int) int { return 500 })
	want(t, "bounded attempts", len(got), 4)
	got, _, _ = play(t, script, Config{Attempts: 1}, func(arrival, int) int { return 307 })
	want(t, "redirects are not followed", len(got), 1)
}

// A bubble ends only when every goroutine in it has ended.
func TestCloseEndsAllGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewServer(planOf(Script{Dialect: Native, Callbacks: []Callback{
			{Event: "end", Kind: TellsEnd, At: hour},
		}}), Config{})
		if err != nil {
			t.Fatal(err)
		}
		createOn(t, s, Native, 0, "http://127.0.0.1:1/")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(t.Context()); err == nil {
			t.Error("a closed server with unsent callbacks is said to be idle")
		}
	})
}

func TestCloseEndsRequests(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := NewServer(planOf(Script{Dialect: Native, Create: CreateSlow, CreateTimes: 1, Final: pawl.Succeeded}), Config{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(); err == nil {
		t.Error("a server started twice")
	}
	ended := make(chan error)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		r, _ := http.NewRequest("POST", base+"/generate", bytes.NewBufferString(`{"model":"m","input":{"n":0}}`))
		r.Header.Set("Authorization", "Bearer "+s.Key())
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		ended <- err
	}()
	for len(s.Snapshot().Operations) == 0 {
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a slow create was answered")
	}
	if _, err := client.Get(base + "/books"); err == nil {
		t.Error("a closed server answers")
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}
