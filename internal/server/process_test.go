package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// probe asks a handler of the node without a connection.
func probe(h http.Handler, path string) (int, string) {
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
	return r.Code, r.Body.String()
}

// Probes answer on both listeners; a draining node is alive and not ready.
func TestProbes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.eventually("never ready", func() bool {
		r := w.send(http.MethodGet, w.node.APIURL()+"/readyz", nil, nil)
		return r.status == http.StatusOK
	})
	for _, base := range []string{w.node.APIURL(), w.node.AdminURL()} {
		for _, path := range []string{"/livez", "/readyz"} {
			if r := w.send(http.MethodGet, base+path, nil, nil); r.status != http.StatusOK {
				t.Errorf("%s: %d", path, r.status)
			}
		}
	}
	if r := w.send(http.MethodGet, w.node.AdminURL()+"/metrics", nil, nil); r.status != http.StatusOK || !strings.Contains(r.body, "pawl_") {
		t.Errorf("metrics: %d", r.status)
	}
	if r := w.send(http.MethodGet, w.node.APIURL()+"/metrics", nil, nil); r.status != http.StatusNotFound {
		t.Errorf("metrics on the public listener: %d", r.status)
	}
	// Whoever opens the admin listener's address in a browser comes to the console.
	if status, body := probe(w.node.admin(), "/"); status != http.StatusSeeOther || !strings.Contains(body, `href="/console"`) {
		t.Errorf("the admin listener's root: %d %q", status, body)
	}
	if status, _ := probe(w.node.admin(), "/elsewhere"); status != http.StatusNotFound {
		t.Errorf("elsewhere on the admin listener: %d", status)
	}
	reached, open := w.provider.gate()
	defer open()
	w.submit("k")
	<-reached
	node := w.node
	w.stop()
	w.eventually("still ready while draining", func() bool {
		status, _ := probe(node.admin(), "/readyz")
		return status == http.StatusServiceUnavailable
	})
	if status, _ := probe(node.admin(), "/livez"); status != http.StatusOK {
		t.Errorf("livez while draining: %d", status)
	}
}

// A drain finishes what is on the wire: a create, a delivery and a request.
func TestDrainFinishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp", func(c *config.Config, _ *config.Upstream) { c.Drain = 15 * time.Second })
	w.endpoint()
	told, answer := make(chan struct{}), make(chan struct{})
	w.sink.script(func(n int, _ delivery) (int, string) {
		if n == 1 {
			close(told)
			<-answer
		}
		return http.StatusOK, ""
	})
	first, _ := w.running("a")
	<-told
	reached, open := w.provider.gate()
	second := w.submit("b")
	<-reached
	node := w.node
	w.stop()
	w.eventually("still ready while draining", func() bool { return !node.ready.on.Load() })
	open()
	close(answer)
	if err := <-w.stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	w.start()
	if r := w.now(second, "running"); r.at("task_id") != "task-2" {
		t.Errorf("task %q", r.at("task_id"))
	}
	if n := len(w.provider.created()); n != 2 {
		t.Errorf("%d creates, want 2", n)
	}
	w.deliveries(first, 1, "delivered")
	w.told(second, "operation.running")
}

// A drain has an end: what does not finish is given up and recorded, and the
// next start knows that a create was on the wire.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp", func(c *config.Config, u *config.Upstream) {
		c.Drain, u.Timeout = time.Second, time.Minute
	})
	w.provider.script(func(int, create) *answer { return &answer{hang: true} }, nil)
	op := w.submit("k")
	w.eventually("no create", func() bool { return len(w.provider.created()) == 1 })
	// A client that never ends its request.
	slow, err := net.Dial("tcp", strings.TrimPrefix(w.node.APIURL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "POST /v1/operations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: s\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", adminKey)
	if _, err := bufio.NewReader(slow).ReadString('\n'); err != nil { // it is in the handler
		t.Fatal(err)
	}
	began := time.Now()
	w.drain()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the drain took %s, with a limit of 1 s", took)
	}
	w.start()
	w.state(op, "unconfirmed")
	w.line(op, "create_failed unknown", 1)
	w.money("100", "1")
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
}

// A folder has one node; the refusal names its process and does no harm.
func TestSecondStartIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	_, err := Start(t.Context(), w.cfg, Options{AdminKey: adminKey})
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second start: %v, want a refusal with the process id", err)
	}
	w.running("k")
	w.drain()
	w.start()
}

// A start that fails leaves nothing behind that hinders the next one.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	taken := w.node.APIURL()
	cfg := w.cfg
	cfg.Data = filepath.Join(t.TempDir(), "data")
	cfg.Listen = strings.TrimPrefix(taken, "http://")
	if _, err := Start(t.Context(), cfg, Options{AdminKey: "pawl_sk_short"}); err == nil || strings.Contains(err.Error(), "pawl_sk_short") {
		t.Errorf("a short admin key: %v", err)
	}
	if _, err := os.Stat(cfg.Data); !os.IsNotExist(err) {
		t.Errorf("a short admin key touched the folder: %v", err)
	}
	if _, err := Start(t.Context(), cfg, Options{AdminKey: adminKey}); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a taken address: %v", err)
	}
	cfg.Listen = "127.0.0.1:0"
	n, err := Start(t.Context(), cfg, Options{AdminKey: adminKey})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := n.Run(ctx); err != nil {
		t.Error(err)
	}
}

// A ledger does not start under another key than its own: the callbacks of what
// is running would be unknown. With the key back in its place they are not.
func TestLostLedgerKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	op, c := w.running("k")
	w.drain()
	path := filepath.Join(w.cfg.Data, "secret.key")
	if err := os.Rename(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), w.cfg, Options{AdminKey: adminKey}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a start without the ledger's key: %v, want a refusal that names the file", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a refused start made a new key: %v", err)
	}
	if err := os.Rename(path+".kept", path); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.finish(op, c)
}

// The very first start makes an admin key that only the owner can read; a given
// one replaces it (2-contracts §6, 7-rules R46).
func TestAdminKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.drain()
	w.cfg.Data = filepath.Join(t.TempDir(), "data")
	var notices []string
	whoami := func(o Options, key string) int {
		o.Notice = func(s string) { notices = append(notices, s) }
		n, err := Start(t.Context(), w.cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		stopped := make(chan error, 1)
		go func() { stopped <- n.Run(ctx) }()
		r := w.send(http.MethodGet, n.APIURL()+"/v1/whoami", nil, http.Header{"Authorization": {"Bearer " + key}})
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		return r.status
	}
	whoami(Options{}, "none")
	path := filepath.Join(w.cfg.Data, "admin.key")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	made := strings.TrimSpace(string(text))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], path) || strings.Contains(notices[0], made) {
		t.Errorf("notices: %q", notices)
	}
	if got := whoami(Options{}, made); got != http.StatusOK {
		t.Errorf("the key that was made: %d", got)
	}
	if got := whoami(Options{AdminKey: adminKey}, adminKey); got != http.StatusOK {
		t.Errorf("the key that was given: %d", got)
	}
	if got := whoami(Options{}, made); got != http.StatusUnauthorized {
		t.Errorf("the key that was replaced: %d", got)
	}
	if len(notices) != 1 {
		t.Errorf("notices: %q", notices)
	}
}

// A node that has stopped leaves no goroutine behind.
func TestNoGoroutineIsLeft(t *testing.T) {
	w := newWorld(t, "media-v2", reading(10*time.Millisecond, 20*time.Millisecond, time.Hour))
	w.endpoint()
	op, c := w.running("k")
	w.finish(op, c)
	w.told(op, "operation.running", "operation.succeeded")
	w.submit("still-open")
	w.drain()
	w.client.CloseIdleConnections()
	w.eventually("goroutines of a stopped node are left", func() bool {
		buf := make([]byte, 4<<20)
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
			ours := strings.Contains(g, "pawl/internal/") || strings.Contains(g, "http.(*persistConn)")
			around := strings.Contains(g, "internal/pgtest.") || strings.Contains(g, "server.(*world).serve") || strings.Contains(g, "testing.(*T).Parallel")
			if ours && !around {
				t.Log(g)
				return false
			}
		}
		return true
	})
}
