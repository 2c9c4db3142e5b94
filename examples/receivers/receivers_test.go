// Package receivers tests the receivers that are here to be copied, each as a
// process of its own against the deliveries of a real node.
package receivers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/webhook"
)

// process is a running receiver.
type process struct {
	url   string
	lines *bufio.Scanner
}

// start runs a receiver with the secret and learns its port from its first line.
func start(t *testing.T, secret, dir, program string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, "PORT=0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &process{lines: bufio.NewScanner(out)}
	var port int
	if line := p.line(); line == "" {
		t.Fatal("it does not start")
	} else if _, err := fmt.Sscanf(line, "listening on %d", &port); err != nil {
		t.Fatalf("%q", line)
	}
	p.url = fmt.Sprintf("http://127.0.0.1:%d/hook", port)
	return p
}

func (p *process) line() string {
	p.lines.Scan()
	return p.lines.Text()
}

// built is the binary of one of the receivers in Go.
func built(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "receiver")
	if out, err := exec.Command("go", "build", "-o", binary, "./"+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// withLibrary is a folder with a receiver and the packages of npm that the
// project's tests have.
func withLibrary(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	modules, err := filepath.Abs("../../interop/node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "receiver.mjs"), text, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Each receiver takes what Pawl sends, once; it refuses a changed byte and stale
// or future times, and knows a repeat.
func TestReceivers(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, secret string) *process{
		"node":                func(t *testing.T, s string) *process { return start(t, s, "node", "node", "receiver.mjs") },
		"python":              func(t *testing.T, s string) *process { return start(t, s, "python", "python3", "receiver.py") },
		"go":                  func(t *testing.T, s string) *process { return start(t, s, ".", built(t, "go")) },
		"go-standardwebhooks": func(t *testing.T, s string) *process { return start(t, s, ".", built(t, "go-standardwebhooks")) },
		"node-standardwebhooks": func(t *testing.T, s string) *process {
			return start(t, s, withLibrary(t, "node-standardwebhooks/receiver.mjs"), "node", "receiver.mjs")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret, err := webhook.NewSecret(nil)
			if err != nil {
				t.Fatal(err)
			}
			receiver := run(t, secret)
			delivered(t, receiver, secret)
			forged(t, receiver, secret)
		})
	}
}

// delivered has a node deliver an event, and then deliver it again.
func delivered(t *testing.T, receiver *process, secret string) {
	t.Helper()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	ep, err := p.Client.CreateEndpoint(ctx, client.NewEndpoint{URL: receiver.url, Secret: client.Secret(secret), Types: []string{"order.paid"}})
	if err != nil {
		t.Fatal(err)
	}
	event, err := p.Client.Publish(ctx, "order-7", "order.paid", map[string]string{"text": "zwölf <&> 🪁"})
	if err != nil {
		t.Fatal(err)
	}
	if line := receiver.line(); line != "1 order-7" {
		t.Errorf("it says %q", line)
	}
	rows, err := client.Collect(p.Client.Deliveries(ctx, client.DeliveryFilter{Endpoint: ep.ID, Event: event.ID}), 0)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	tries := func(n int) []client.Attempt {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			all, err := p.Client.Attempts(ctx, rows[0].ID)
			if err != nil || time.Now().After(end) {
				t.Fatal(all, err)
			}
			if len(all) == n {
				return all
			}
		}
	}
	tries(1)
	if _, err := p.Client.RetryDelivery(ctx, rows[0].ID); err != nil {
		t.Fatal(err)
	}
	if all := tries(2); all[0].Status != http.StatusNoContent || all[1].Status != http.StatusOK {
		t.Errorf("answered %d, and to the repeat %d", all[0].Status, all[1].Status)
	}
}

// forged sends what must be refused, and at last what must be taken.
func forged(t *testing.T, receiver *process, secret string) {
	t.Helper()
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	other, err := webhook.NewSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := scheme.ParseKey(other)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"evt_1","type":"order.paid","sequence":2,"data":{"total":"1.10"}}`)
	post := func(id string, age time.Duration, key webhook.Key, change func(body []byte, h http.Header) []byte) int {
		h, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Add(-age).Unix(), Body: body}, key)
		if err != nil {
			t.Fatal(err)
		}
		h.Set("Pawl-Endpoint-Sequence", "2")
		sent := change(bytes.Clone(body), h)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.url, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = h
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	same := func(body []byte, _ http.Header) []byte { return body }
	for what, status := range map[string]int{
		"a changed byte": post("evt_2", 0, key, func(b []byte, _ http.Header) []byte { return bytes.Replace(b, []byte("1.10"), []byte("9.10"), 1) }),
		"a changed id":   post("evt_3", 0, key, func(b []byte, h http.Header) []byte { h.Set("Webhook-Id", "evt_4"); return b }),
		"a stale one":    post("evt_5", 310*time.Second, key, same),
		"a future one":   post("evt_6", -310*time.Second, key, same),
		"another secret": post("evt_7", 0, stranger, same),
		"no signature":   post("evt_8", 0, key, func(b []byte, h http.Header) []byte { h.Del("Webhook-Signature"); return b }),
		"a cut one": post("evt_9", 0, key, func(b []byte, h http.Header) []byte {
			h.Set("Webhook-Signature", strings.TrimRight(h.Get("Webhook-Signature"), "=")[:20])
			return b
		}),
	} {
		if status != http.StatusUnauthorized {
			t.Errorf("%s: %d", what, status)
		}
	}
	// Two secrets sign while one is rotated.
	both := func(b []byte, h http.Header) []byte {
		h.Set("Webhook-Signature", "v1,AAAA "+h.Get("Webhook-Signature"))
		return b
	}
	if first, again := post("evt_10", 0, key, both), post("evt_10", 200*time.Second, key, same); first != http.StatusNoContent || again != http.StatusOK {
		t.Errorf("a good one: %d, again %d", first, again)
	}
	if line := receiver.line(); line != "2 evt_10" {
		t.Errorf("it says %q", line)
	}
	body = []byte(`{"id":"evt_11","type":"operation.succeeded","test":true,"sequence":3}`)
	if status := post("evt_11", 0, key, same); status != http.StatusNoContent {
		t.Errorf("a test event: %d", status)
	}
	if line := receiver.line(); line != "a test event; nothing has happened evt_11" {
		t.Errorf("of a test event it says %q", line)
	}
}

// Without a secret anybody could sign, so that none of them starts.
func TestNoSecret(t *testing.T) {
	for name, args := range map[string][]string{
		"node":                  {"node", "node/receiver.mjs"},
		"python":                {"python3", "python/receiver.py"},
		"go":                    {built(t, "go")},
		"go-standardwebhooks":   {built(t, "go-standardwebhooks")},
		"node-standardwebhooks": {"node", filepath.Join(withLibrary(t, "node-standardwebhooks/receiver.mjs"), "receiver.mjs")},
	} {
		for _, secret := range [][]string{nil, {"WEBHOOK_SECRET="}} {
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WEBHOOK_SECRET=") }), append(secret, "PORT=0")...)
			out, err := cmd.CombinedOutput()
			if exit := (&exec.ExitError{}); !errors.As(err, &exit) || !strings.Contains(string(out), "WEBHOOK_SECRET") || strings.Contains(string(out), "listening") {
				t.Errorf("%s with %v: %v\n%s", name, secret, err, out)
			}
		}
	}
}
