package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testKey has the shape of a key and must never be printed.
const testKey = "pawl_sk_0123456789abcdefghijklmnopqrstuvwxyz"

// world is a command's surroundings in a test.
type world struct {
	env     map[string]string
	stdin   io.Reader
	now     time.Time
	signals chan os.Signal
	ctx     context.Context
}

// newWorld has a key, a folder for state, and the server at url.
func newWorld(t *testing.T, url string) *world {
	return &world{
		env:   map[string]string{"PAWL_KEY": testKey, "PAWL_SERVER": url, "PAWL_STATE_DIR": t.TempDir()},
		stdin: strings.NewReader(""), now: time.Date(2026, 5, 28, 20, 26, 40, 0, time.UTC), ctx: t.Context(),
	}
}

// result is what a command left behind.
type result struct {
	status         int
	stdout, stderr string
}

func (w *world) run(args ...string) result {
	var stdout, stderr bytes.Buffer
	status := Main(w.ctx, args, Env{
		Stdin: w.stdin, Stdout: &stdout, Stderr: &stderr, Now: func() time.Time { return w.now }, Signals: w.signals,
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
	})
	return result{status, stdout.String(), stderr.String()}
}

// want fails unless the status is right and both outputs hold the given texts.
func (r result) want(t *testing.T, status int, stdout, stderr string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Fatalf("status %d, want %d\nstdout %q, want %q\nstderr %q, want %q", r.status, status, r.stdout, stdout, r.stderr, stderr)
	}
	if strings.Contains(r.stdout+r.stderr, testKey) {
		t.Fatal("the API key was printed")
	}
}

// fake is a server of the API. What a request does to the test's variables is seen
// by those that come after it, on other connections too.
func fake(t *testing.T, h http.HandlerFunc) string {
	var turn atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn.Add(1)
		defer turn.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// gone is the address of a server that does not answer any more.
func gone(t *testing.T) string {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

func reply(w http.ResponseWriter, status int, body string) {
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   string
		status int
		stderr string
	}{
		{"nothing", "", ExitUsage, "Usage: pawl <command>"},
		{"unknown command", "frob", ExitUsage, "unexpected argument"},
		{"unknown command of a group", "review decide rev_1 retry", ExitUsage, "unexpected argument decide: pawl review has list, show, assign, note, resolve\n"},
		{"group alone", "review", ExitUsage, "pawl: expected one of list, show, assign, note, resolve\nRun \"pawl review --help\" for help.\n"},
		{"missing flags", "op submit", ExitUsage, "missing flags: --input, --model, --upstream\n"},
		{"unknown flag", "op list --nope", ExitUsage, "unknown flag"},
		{"missing id", "op get", ExitUsage, "expected"},
		{"unknown decision", "op resolve op_1 maybe", ExitUsage, "must be one of"},
		{"created without task", "op resolve op_1 created", ExitUsage, "--task"},
		{"task without created", "op resolve op_1 failed --task t", ExitUsage, "--task"},
		{"nothing to update", "endpoint update ep_1", ExitUsage, "nothing to change"},
		{"bad amount", "account credit acct_1 1.2345678901:USD", ExitUsage, "nine decimal places"},
		{"no currency", "account credit acct_1 1.20", ExitUsage, "currency"},
		{"bad scope", "key create ci --scopes everything", ExitUsage, "must be one of"},
		{"bad server", "op list --server ftp://x", ExitUsage, "PAWL_SERVER"},
		{"server with password", "op list --server http://a:b@127.0.0.1", ExitUsage, "PAWL_SERVER"},
		{"bad log level", "serve --log-level loud", ExitUsage, "must be one of"},
		{"demo of nothing", "demo --operations 0", ExitUsage, "at least 1"},
		{"check of another database", "ledger check --database mysql://x", ExitUsage, "--data"},
		{"not JSON", "op submit --upstream u --model m --input nope", ExitUsage, "JSON object"},
		{"JSON but no object", "op submit --upstream u --model m --input [1]", ExitUsage, "JSON object"},
		{"no such file", "op submit --upstream u --model m --input @/nonexistent", ExitUsage, "no such file"},
		{"bad deadline", "op submit --upstream u --model m --input {} --deadline tomorrow", ExitUsage, "--deadline"},
		{"past duration", "op submit --upstream u --model m --input {} --deadline -2h", ExitUsage, ""},
		{"bad cost", "op submit --upstream u --model m --input {} --expected-cost 0.12", ExitUsage, "0.12:USD"},
		{"not reachable", "op list", ExitUnreachable, "did not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newWorld(t, gone(t)).run(strings.Fields(tt.args)...).want(t, tt.status, "", tt.stderr)
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "op --help", "op submit --help", "op submit --upstream u -h", "serve --help", "verify --help", "ledger check --help"} {
		r := newWorld(t, gone(t)).run(strings.Fields(args)...)
		r.want(t, ExitDone, "Usage: pawl", "")
		if r.stderr != "" {
			t.Errorf("%s: standard error has %q", args, r.stderr)
		}
	}
}

func TestNoKey(t *testing.T) {
	t.Chdir(t.TempDir())
	w := newWorld(t, "http://127.0.0.1:1")
	w.env["PAWL_KEY"] = ""
	w.run("op", "list").want(t, ExitUsage, "", "PAWL_KEY")
	w.run("op", "list", "--key", "pawl_sk_a b").want(t, ExitUsage, "", "white space")
}

// The first start of a server in this folder is enough to talk to it; its key
// goes to this machine only.
func TestKeyFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("pawl-data", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("pawl-data/admin.key", []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got string
	w := newWorld(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		reply(w, http.StatusOK, `{"items":[]}`)
	}))
	delete(w.env, "PAWL_KEY")
	w.run("op", "list").want(t, ExitDone, "", "nothing found")
	if got != "Bearer "+testKey {
		t.Errorf("Authorization %q", got)
	}
	w.run("op", "list", "--server", "http://pawl.invalid").want(t, ExitUsage, "", "no API key")
}

func TestVersion(t *testing.T) {
	w := newWorld(t, "")
	w.run("version").want(t, ExitDone, "pawl ", "")
	w.run("version", "--json").want(t, ExitDone, `"go":"go1.`, "")
}

// The first signal ends the context; the second one does not wait.
func TestSecondSignal(t *testing.T) {
	w := newWorld(t, "")
	hang, release := io.Pipe()
	defer release.Close()
	w.stdin, w.signals = hang, make(chan os.Signal, 2)
	w.signals <- os.Interrupt
	w.signals <- os.Interrupt
	// Reading standard input does not hear of the context.
	w.run("sign", "--scheme", "body-timestamp", "--secret", "s", "--body", "-").want(t, ExitFailed, "", "")
}
