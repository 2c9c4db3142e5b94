package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// process is a real "pawl serve" in a folder of its own, with the admin key
// testKey.
type process struct {
	*testing.T
	dir, api, admin string
	cmd             *exec.Cmd
	client          *http.Client
}

// serveIn starts pawl with the configuration pawl.yaml of the folder, and
// stops it with the test.
func serveIn(t *testing.T, dir string) *process {
	t.Helper()
	program, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, dir: dir, cmd: exec.Command(program, "serve", "--config", "pawl.yaml", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "PAWL_ADMIN_KEY="+testKey)
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("serve ended with %v\n%s", err, p.log())
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var ready struct{ API, Admin string }
	if err != nil || json.Unmarshal(line, &ready) != nil {
		t.Fatalf("not ready: %v\n%s", err, p.log())
	}
	p.api, p.admin = ready.API, ready.Admin
	p.client = &http.Client{Transport: checked(t, p.api)}
	return p
}

func (p *process) log() string {
	text, err := os.ReadFile(filepath.Join(p.dir, "serve.log"))
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

func (p *process) write(name, text string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// hangup sends SIGHUP and waits until the log has one more line that says so.
func (p *process) hangup(line string) {
	p.Helper()
	before := strings.Count(p.log(), line)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		p.Fatal(err)
	}
	p.until("the log does not say "+line, func() bool { return strings.Count(p.log(), line) > before })
}

func (p *process) until(what string, holds func() bool) {
	p.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%s\n%s", what, p.log())
		}
	}
}

// call calls the API; it gives the status and the answer's members.
func (p *process) call(method, path, body string, header ...string) (int, map[string]any) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, p.api+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	var fields map[string]any
	text, _ := io.ReadAll(res.Body)
	_ = json.Unmarshal(text, &fields)
	if res.Header.Get("Retry-After") != "" && fields != nil {
		fields["retry_after"] = res.Header.Get("Retry-After")
	}
	return res.StatusCode, fields
}

// taskService is a provider of the dialect body-timestamp that takes every
// task and calls back when it is told to.
type taskService struct {
	url string

	mu    sync.Mutex
	tasks []task
}

type task struct{ id, callback string }

func newTaskService(t *testing.T) *taskService {
	s := new(taskService)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// ServeHTTP implements [http.Handler].
func (s *taskService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Callback string `json:"callback_url"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	s.mu.Lock()
	id := fmt.Sprint("task-", len(s.tasks)+1)
	s.tasks = append(s.tasks, task{id, in.Callback})
	s.mu.Unlock()
	reply(w, http.StatusAccepted, `{"task_id":"`+id+`","status":"pending"}`)
}

func (s *taskService) all() []task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]task(nil), s.tasks...)
}

// callBack tells of a version of a task, signed with the secret, and gives the
// status of the answer.
func callBack(t task, version int, secret string) (int, error) {
	scheme, _ := webhook.Lookup("body-timestamp")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		return 0, err
	}
	id := fmt.Sprintf("evt-%s-%d", t.id, version)
	body := []byte(fmt.Sprintf(`{"id":%q,"type":"ai.task.progress","created_at":"2026-01-01T00:00:00Z","data":{"task_id":%q,"status":"running","version":%d}}`, id, t.id, version))
	header, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: body}, key)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, t.callback, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Body.Close()
}

// A webhook key is rotated by SIGHUP in a real process under load: not one
// callback is refused, no connection is, and the process stays the same
// (1-product I7).
func TestHangupRotatesUnderLoad(t *testing.T) {
	provider := newTaskService(t)
	p := &process{T: t, dir: t.TempDir()}
	settings := func(keys string) string {
		return fmt.Sprintf("data: data\negress: {allow: [127.0.0.0/8]}\nupstreams:\n  tasks: {preset: body-timestamp, base_url: %q, key: \"${file:key}\", webhook_keys: [%s], read: {first: 1h, max: 1h}}\n", provider.url, keys)
	}
	p.write("key", "provider-key\n")
	p.write("old", "the old secret\n")
	p.write("new", "the new secret\n")
	p.write("pawl.yaml", settings(`"${file:old}"`))
	p = serveIn(t, p.dir)
	for i := range 16 {
		if status, answer := p.call("POST", "/v1/operations", `{"upstream":"tasks","model":"m","input":{}}`, "Idempotency-Key", fmt.Sprint("job-", i)); status != http.StatusAccepted {
			t.Fatal(status, answer)
		}
	}
	p.until("not all tasks were created", func() bool { return len(provider.all()) == 16 })

	var secret atomic.Value
	secret.Store("the old secret")
	var sent atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for _, task := range provider.all() {
		load.Go(func() {
			for version := 2; ; version++ {
				select {
				case <-stop:
					return
				default:
				}
				status, err := callBack(task, version, secret.Load().(string))
				if err != nil || status >= 300 {
					t.Errorf("a callback was refused: %d %v", status, err)
					return
				}
				sent.Add(1)
			}
		})
	}
	flow := func(n int64) {
		t.Helper()
		at := sent.Load()
		p.until("the load has stopped", func() bool { return sent.Load() >= at+n || t.Failed() })
	}
	const done, refused = "the configuration was reloaded", "the configuration was not reloaded"
	flow(200)
	p.write("pawl.yaml", settings(`"${file:old}", "${file:new}"`))
	p.hangup(done)
	flow(200)
	secret.Store("the new secret")
	flow(200)
	// A fault in between changes nothing.
	p.write("pawl.yaml", settings(`"${file:absent}"`))
	p.hangup(refused)
	if !strings.Contains(p.log(), `pawl.yaml:4: upstreams.tasks.webhook_keys[0]: the file \"absent\" cannot be read`) {
		t.Errorf("the log does not tell file, line and remedy:\n%s", p.log())
	}
	flow(200)
	p.write("pawl.yaml", settings(`"${file:new}"`))
	p.hangup(done)
	flow(200)
	close(stop)
	load.Wait()
	if status, err := callBack(provider.all()[0], 1_000_000, "the old secret"); status != http.StatusUnauthorized {
		t.Errorf("the old key is still taken: %d %v", status, err)
	}
	// The same key of the configuration, another content of its file.
	p.write("new", "the newest secret\n")
	p.hangup(done)
	if status, err := callBack(provider.all()[0], 1_000_001, "the newest secret"); status >= 300 {
		t.Errorf("the file of the secret was not read again: %d %v", status, err)
	}
	if strings.Contains(p.log(), "secret") && strings.Contains(p.log(), "the new secret") {
		t.Error("the log holds a secret")
	}
	t.Logf("%d callbacks during the rotation", sent.Load())
}
