package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// blocks are the fenced blocks of one kind in a page, in their order.
func blocks(t *testing.T, page, kind string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for {
		_, after, ok := strings.Cut(rest, "\n```"+kind+"\n")
		if !ok {
			return found
		}
		var block string
		block, rest, _ = strings.Cut(after, "\n```\n")
		found = append(found, block+"\n")
	}
}

// The walk-through of docs/workers.md works to the letter: its configuration, its
// worker, its customer. It needs bash and curl, which .ci/run installs.
func TestWalkThroughOfOwnWorkers(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl", "grep", "sed"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the walk-through of docs/workers.md cannot be run: %v; install %s", err, program)
		}
	}
	const page = "../../docs/workers.md"
	yaml, shell := blocks(t, page, "yaml"), blocks(t, page, "sh")
	if len(yaml) != 1 || len(shell) != 2 {
		t.Fatalf("%d blocks of yaml and %d of sh, want the configuration, the worker and the customer", len(yaml), len(shell))
	}
	if lines := strings.Count(strings.TrimSpace(shell[0]), "\n"); lines > 27 {
		t.Errorf("the worker has %d lines, which are not about twenty", lines)
	}
	documented, err := config.Parse("workers.yaml", []byte(yaml[0]), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "sim", func(c *config.Config, _ *config.Upstream) { c.Upstreams["shout"] = documented.Upstreams["shout"] })
	secret := func(name string, scopes ...string) string {
		return w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/keys", map[string]any{"tenant": "default", "name": name, "scopes": scopes})).at("secret")
	}
	dir := t.TempDir()
	env := append(os.Environ(), "no_proxy=127.0.0.1", "PAWL_SERVER="+w.node.APIURL(), "PAWL_KEY="+secret("worker", "operate"), "CUSTOMER_KEY="+secret("customer", "submit", "read"))
	bash := func(ctx context.Context, name, text string) *exec.Cmd {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, "bash", path)
		cmd.Env = env
		return cmd
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	worker := bash(ctx, "worker.sh", shell[0])
	var said bytes.Buffer
	worker.Stdout, worker.Stderr = &said, &said
	// It has children that wait; all of them end with the test.
	worker.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	worker.Cancel = func() error { return syscall.Kill(-worker.Process.Pid, syscall.SIGKILL) }
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := bash(ctx, "customer.sh", shell[1]).CombinedOutput()
	stop()
	_ = worker.Wait() // It never ends by itself.
	var op struct {
		ID, State string
		Result    json.RawMessage
	}
	if err != nil || json.Unmarshal(text, &op) != nil || op.State != "succeeded" || string(op.Result) != `{"text":"HOLD FAST"}` {
		t.Errorf("the customer got %s, %v; the worker said %s", text, err, said.String())
	}
	w.line(op.ID, "work completed", 1)
	if shown := w.operation(op.ID); shown.at("progress") != "0.9" {
		t.Errorf("progress %s, want 0.9", shown.at("progress"))
	}
}
