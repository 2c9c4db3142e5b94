package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
)

// hour is an end that no test waits for.
const hour = time.Hour

func newTestServer(t *testing.T, p Plan, c Config) *Server {
	t.Helper()
	s, err := NewServer(p, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// call makes one call without a socket and decodes the answer.
func call(t *testing.T, s *Server, method, path, key, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s %s: the answer is not JSON: %s", method, path, w.Body)
	}
	return w.Code, out
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestNativeDialect(t *testing.T) {
	p := planOf(
		Script{Dialect: Native, Start: hour, End: 2 * hour, Settle: 2 * hour},
		Script{Dialect: Native, Cost: 100_000_000},
		Script{Dialect: Native, Final: pawl.Failed, ErrorCode: "gpu_on_fire"},
	)
	s := newTestServer(t, p, Config{})
	status, made := call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{"n":0},"client_ref":"ref-0"}`)
	want(t, "create", status, 202)
	want(t, "state", made["state"], "queued")
	task := made["task"].(string)
	if !strings.HasPrefix(task, "sim-") || made["request_id"] == "" {
		t.Errorf("create answered %v", made)
	}

	status, read := call(t, s, "GET", "/status/"+task, s.Key(), "")
	want(t, "read", status, 200)
	want(t, "task", read["task"], task)
	want(t, "state", read["state"], "queued")
	want(t, "settled", read["settled"], false)
	want(t, "estimate", read["cost"], "0.150000000")
	want(t, "currency", read["currency"], "USD")

	status, found := call(t, s, "GET", "/lookup?client_ref=ref-0", s.Key(), "")
	want(t, "lookup", status, 200)
	want(t, "found", found["task"], task)
	status, _ = call(t, s, "GET", "/lookup?client_ref=nobody", s.Key(), "")
	want(t, "lookup of nothing", status, 404)
	status, missing := call(t, s, "GET", "/status/sim-none", s.Key(), "")
	want(t, "unknown task", status, 404)
	want(t, "code", missing["error"].(map[string]any)["code"], "unknown_task")
	status, _ = call(t, s, "GET", "/status/"+task, "wrong", "")
	want(t, "wrong key", status, 401)

	_, made = call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{"n":1}}`)
	_, read = call(t, s, "GET", "/status/"+made["task"].(string), s.Key(), "")
	want(t, "state", read["state"], "succeeded")
	want(t, "charge", read["cost"], "0.100000000")
	want(t, "settled", read["settled"], true)
	if read["result"].(map[string]any)["url"] == "" {
		t.Error("a success without a link")
	}
	_, made = call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{"n":2}}`)
	_, read = call(t, s, "GET", "/status/"+made["task"].(string), s.Key(), "")
	want(t, "state", read["state"], "failed")
	want(t, "charge", read["cost"], "0.000000000")
	want(t, "code", read["error"].(map[string]any)["code"], "gpu_on_fire")
	status, _ = call(t, s, "POST", "/cancel/"+made["task"].(string), s.Key(), "")
	want(t, "cancel after the end", status, 409)
}

func TestNativeCancel(t *testing.T) {
	s := newTestServer(t, planOf(Script{Dialect: Native, End: hour, Settle: hour, Cost: 7}), Config{})
	_, made := call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{"n":0}}`)
	for range 2 { // twice is as good as once
		status, answer := call(t, s, "POST", "/cancel/"+made["task"].(string), s.Key(), "")
		want(t, "cancel", status, 202)
		want(t, "state", answer["state"], "canceled")
		want(t, "a quarter of the price", answer["cost"], "0.037500000")
		want(t, "settled", answer["settled"], true)
	}
	got := s.Snapshot().Operations[0].Tasks[0]
	want(t, "books", got.State+" "+got.Cost, "canceled 0.037500000")
}

func TestNativeCreateIsNotIdempotent(t *testing.T) {
	s := newTestServer(t, planOf(Script{Dialect: Native, End: hour, Settle: hour}), Config{})
	body := `{"model":"m","input":{"n":0},"client_ref":"r"}`
	_, a := call(t, s, "POST", "/generate", s.Key(), body)
	_, b := call(t, s, "POST", "/generate", s.Key(), body)
	if a["task"] == b["task"] {
		t.Error("two creates made one task")
	}
	o := s.Snapshot().Operations[0]
	want(t, "creates", len(o.Creates), 2)
	want(t, "tasks", len(o.Tasks), 2)
	want(t, "reference", o.Creates[1].ClientRef, "r")
	want(t, "known before anything was asked", o.Tasks[0].Known, false)
	call(t, s, "GET", "/status/"+o.Tasks[0].ID, s.Key(), "")
	want(t, "known after a read", s.Snapshot().Operations[0].Tasks[0].Known, true)
}

func TestMediaV2Dialect(t *testing.T) {
	p := planOf(
		Script{Dialect: MediaV2, Settles: SettleByRead, Settle: hour, Cost: 1},
		Script{Dialect: MediaV2, Final: pawl.Expired, ErrorCode: "timeout"},
	)
	s := newTestServer(t, p, Config{})
	const create, read = "/api/v1/jobs/createTask", "/api/v1/jobs/recordInfo?taskId="
	status, made := call(t, s, "POST", create, s.Key(), `{"model":"kling","input":{"n":0}}`, "Idempotency-Key", "k0")
	want(t, "create", status, 200)
	want(t, "code", made["code"], 200)
	want(t, "msg", made["msg"], "success")
	task := made["data"].(map[string]any)["taskId"].(string)
	if !strings.HasPrefix(task, "job_") || made["request_id"] == "" {
		t.Errorf("create answered %v", made)
	}
	_, got := call(t, s, "GET", read+task, s.Key(), "")
	data := got["data"].(map[string]any)
	for field, value := range map[string]any{
		"taskId": task, "model": "kling", "state": "succeeded", "settled": false, "cost": "0.150000000",
	} {
		want(t, field, data[field], value)
	}
	_, made = call(t, s, "POST", create, s.Key(), `{"model":"kling","input":{"n":1}}`, "Idempotency-Key", "k1")
	_, got = call(t, s, "GET", read+made["data"].(map[string]any)["taskId"].(string), s.Key(), "")
	data = got["data"].(map[string]any)
	want(t, "state", data["state"], "expired")
	want(t, "errorCode", data["errorCode"], "timeout")
	want(t, "cost as a number", data["cost"], 0.0)
	for name, test := range map[string]struct {
		method, path, key string
		status            int
	}{
		"unknown task": {"GET", read + "job_none", s.Key(), 404},
		"wrong key":    {"GET", read + task, "wrong", 401},
		"no key":       {"POST", create, s.Key(), 400},
	} {
		status, answer := call(t, s, test.method, test.path, test.key, `{"model":"m","input":{}}`)
		want(t, name, status, test.status)
		want(t, name+" in the envelope", answer["code"], test.status)
	}
}

func TestMediaV2Idempotency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, planOf(Script{Dialect: MediaV2, End: hour, Settle: hour}), Config{Keys: []string{"a", "b"}})
		create := func(key, body string) (int, map[string]any) {
			return call(t, s, "POST", "/api/v1/jobs/createTask", key, body, "Idempotency-Key", "k")
		}
		const body = `{"model":"m","input":{"n":0},"callBackUrl":"http://127.0.0.1:1/"}`
		_, first := create("a", body)
		time.Sleep(24*time.Hour - time.Second)
		status, again := create("a", `{"callBackUrl":"http://127.0.0.1:1/","model":"m","input":{ "n": 0 }}`)
		want(t, "repeat", status, 200)
		want(t, "task", again["data"], first["data"])
		status, sibling := create("b", body)
		want(t, "sibling key", status, 409)
		if sibling["data"] != nil {
			t.Errorf("a sibling key was told %v", sibling["data"])
		}
		status, _ = create("a", strings.Replace(body, `"m"`, `"m2"`, 1))
		want(t, "other model", status, 422)
		time.Sleep(time.Second)
		_, later := create("a", body)
		if fmt.Sprint(later["data"]) == fmt.Sprint(first["data"]) {
			t.Error("after 24 h the key still names the old task")
		}
		o := s.Snapshot().Operations[0]
		want(t, "creates", len(o.Creates), 5)
		want(t, "tasks", len(o.Tasks), 2)
		want(t, "replayed", o.Creates[1].Replayed, true)
	})
}

func TestBodyTimestampDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := planOf(Script{Dialect: BodyTimestamp, Start: time.Second, End: 2 * time.Second, Settle: 2 * time.Second})
		s := newTestServer(t, p, Config{})
		status, made := call(t, s, "POST", "/tasks", "", `{"model":"m","input":{"n":0}}`)
		want(t, "create", status, 202)
		want(t, "status", made["status"], "pending")
		path := "/tasks/" + made["task_id"].(string)
		for i, state := range []string{"pending", "running", "succeeded"} {
			status, read := call(t, s, "GET", path, "", "")
			want(t, "read", status, 200)
			want(t, "status", read["status"], state)
			want(t, "version", read["version"], i+1)
			time.Sleep(time.Second)
		}
		status, missing := call(t, s, "GET", "/tasks/none", "", "")
		want(t, "unknown task", status, 404)
		want(t, "error", missing["error"], "task not found")
	})
}

func TestWrongDialectIsRefused(t *testing.T) {
	s := newTestServer(t, planOf(Script{Dialect: MediaV2}), Config{})
	status, _ := call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{"n":0}}`)
	want(t, "create", status, 400)
	status, _ = call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{},"callback_url":"file:///etc/passwd"}`)
	want(t, "callback address", status, 400)
}

func TestOperationWithoutNumber(t *testing.T) {
	s := newTestServer(t, planOf(), Config{})
	for range 2 {
		status, _ := call(t, s, "POST", "/generate", s.Key(), `{"model":"m","input":{"prompt":"x"},"client_ref":"r"}`)
		want(t, "create", status, 202)
	}
	got := s.Snapshot().Operations
	want(t, "operations", len(got), 1)
	want(t, "number", got[0].N, -1)
	want(t, "creates", len(got[0].Creates), 2)
}

func TestReadFaults(t *testing.T) {
	script := func(f Fault, times int) Script {
		return Script{Dialect: BodyTimestamp, Reads: f, ReadTimes: times}
	}
	s := newTestServer(t, planOf(script(ReadFailed, 2), script(ReadFlapping, 2), script(ReadWrongTask, 1)), Config{})
	wants := [][]string{
		{"500 <nil>", "500 <nil>", "200 succeeded"},
		{"200 running", "200 succeeded", "200 succeeded"},
		{"200 succeeded", "200 succeeded"},
	}
	for n, answers := range wants {
		_, made := call(t, s, "POST", "/tasks", "", fmt.Sprintf(`{"model":"m","input":{"n":%d}}`, n))
		task := made["task_id"].(string)
		for i, answer := range answers {
			status, read := call(t, s, "GET", "/tasks/"+task, "", "")
			want(t, fmt.Sprintf("operation %d, read %d", n, i), fmt.Sprint(status, " ", read["status"]), answer)
			wrong := n == 2 && i == 0
			if status == 200 && (read["task_id"] != task) != wrong {
				t.Errorf("operation %d, read %d names task %v of %s", n, i, read["task_id"], task)
			}
		}
	}
}

func TestCreateFaults(t *testing.T) {
	tests := []struct {
		fault    Fault
		statuses []int // 0: no answer
		tasks    int
	}{
		{CreateLost, []int{0, 202}, 2},
		{CreateSlow, []int{0, 202}, 2},
		{CreateRefused, []int{400, 400}, 0},
		{CreateLimited, []int{429, 202}, 1},
		{CreateFailedBefore, []int{503, 202}, 1},
		{CreateFailedAfter, []int{503, 202}, 2},
	}
	for _, test := range tests {
		t.Run(string(test.fault), func(t *testing.T) {
			script := Script{Dialect: BodyTimestamp, Create: test.fault, CreateTimes: 1, End: hour, Settle: hour}
			s := newTestServer(t, planOf(script), Config{Hold: time.Millisecond})
			base, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			for i, status := range test.statuses {
				answer, err := http.Post(base+"/tasks", "application/json", strings.NewReader(`{"model":"m","input":{"n":0}}`))
				got := 0
				if err == nil {
					got = answer.StatusCode
					if got == 429 {
						want(t, "Retry-After", answer.Header.Get("Retry-After"), "1")
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
				want(t, fmt.Sprintf("create %d", i), got, status)
			}
			o := s.Snapshot().Operations[0]
			want(t, "tasks", len(o.Tasks), test.tasks)
			want(t, "creates", len(o.Creates), 2)
			want(t, "status in the books", o.Creates[0].Status, test.statuses[0])
		})
	}
}
