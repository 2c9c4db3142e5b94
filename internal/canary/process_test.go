package canary_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/vault"
)

// child runs the program itself as a process of its own.
func child(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{childVariable + "=1", "HOME=" + cmd.Dir, "GODEBUG=" + os.Getenv("GODEBUG")}, env...)
	return cmd
}

// talkative answers and then goes on talking, which net/http reports to the
// standard logger, bytes and all.
func talkative(t *testing.T, bytes string) (address string, said *atomic.Int32) {
	said = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		body := `{"task":"task-1","state":"queued"}`
		fmt.Fprintf(buf, "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = buf.Flush()
		time.Sleep(50 * time.Millisecond) // Until the client has read the answer and keeps the connection.
		_, _ = io.WriteString(conn, bytes)
		_, _ = io.Copy(io.Discard, conn)
		said.Add(1)
	}))
	t.Cleanup(s.Close)
	return s.URL, said
}

// A real process shows nothing either, not even through the standard logger.
func TestProcess(t *testing.T) {
	w := &world{watch: newWatch(t), client: &http.Client{Timeout: time.Minute}, reader: theAdminKey, dir: filepath.Join(t.TempDir(), "data")}
	w.receiver = newReceiver(t, w.watch)
	address, said := talkative(t, theProviderText+"\r\n"+theOutcome)
	file := filepath.Join(t.TempDir(), "pawl.yaml")
	text := strings.NewReplacer(theProviderKey, "${PROVIDER_KEY}", theProviderSecret, "${PROVIDER_SECRET}").Replace(configuration(w.dir, address, closedPort(t)))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, []string{"PROVIDER_KEY=" + theProviderKey, "PROVIDER_SECRET=" + theProviderSecret, "PAWL_ADMIN_KEY=" + theAdminKey},
		"serve", "--config", file, "--log-level", "debug")
	errs := new(buffer)
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("not ready: %v\n%s", err, errs)
	}
	var ready struct{ API, Admin string }
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Authorization": {"Bearer " + theAdminKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {theKey}}
	body, _ := json.Marshal(w.job("up", "anything"))
	w.need(http.StatusAccepted, w.ask("POST /v1/operations", http.MethodPost, ready.API+"/v1/operations", body, header))
	w.eventually("the provider did not talk", func() bool { return said.Load() > 0 })
	w.ask(metrics, http.MethodGet, ready.Admin+"/metrics", nil, http.Header{})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
	w.look(stdout, line+string(rest))
	w.look(stderr, errs.String())
	if !strings.Contains(errs.String(), "Unsolicited response") || !strings.Contains(errs.String(), `"level":"DEBUG"`) {
		t.Errorf("the standard logger was not used, or the log was not on:\n%s", errs)
	}
	w.ledgerOnDisk()
	w.judge(map[class][]sink{callbackURL: {"POST /v1/operations"}})
}

// ledgerOnDisk makes the key file of the ledger looked for, as it is written
// and as its bytes.
func (w *world) ledgerOnDisk() {
	text, err := os.ReadFile(filepath.Join(w.dir, "secret.key"))
	if err != nil {
		w.Fatal(err)
	}
	w.add(ledgerKey, strings.TrimSpace(string(text)))
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		w.Fatal(err)
	}
	w.add(ledgerKey, string(raw))
	r, err := sqlite.OpenReadOnly(w.Context(), w.dir)
	if err != nil {
		w.Fatal(err)
	}
	defer r.Close()
	keys, err := r.WrappingKeys(w.Context())
	v, err2 := vault.New(w.Context(), vault.URL([32]byte(raw)))
	if err := errors.Join(err, err2); err != nil || len(keys) != 1 {
		w.Fatal(len(keys), err)
	}
	root, err := v.Open(w.Context(), pawl.ID{}, keys[0].Root)
	if err != nil {
		w.Fatal(err)
	}
	w.add(ledgerKey, root, base64.StdEncoding.EncodeToString([]byte(root)))
}

// atRest looks at every byte of the ledger's files, its write-ahead log
// included. The files of the keys are what they are.
func (w *world) atRest() {
	w.Helper()
	err := filepath.WalkDir(w.dir, func(path string, entry os.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || entry.IsDir() || name == "secret.key" || name == "admin.key" {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil // a spool file of a capture that has just ended
		}
		w.look(atRest, name+"\n"+string(text))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// Starts that fail say why without what they were given.
func TestStartThatFails(t *testing.T) {
	w := newWatch(t)
	for what, env := range map[string][]string{
		"a short admin key":         {"PAWL_ADMIN_KEY=pawl_sk_" + theConfigured[:20]},
		"an admin key of no kind":   {"PAWL_ADMIN_KEY=" + theAdminSecret + theConfigured},
		"an admin key with a break": {"PAWL_ADMIN_KEY=" + theAdminKey + "\n" + theConfigured},
	} {
		cmd := child(t, env, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
		text, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%s was taken", what)
		}
		w.look(startError, string(text))
	}
	w.judge(nil)
}
