package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	public "github.com/pawlhq/pawl/client"
)

// child is a process of the test's that can be killed and started again.
type child struct {
	*testing.T
	name, dir string
	args, env []string

	cmd *exec.Cmd
	out *bufio.Reader
	// reading are those who read its output to the end.
	reading sync.WaitGroup
}

func (c *child) start() {
	c.Helper()
	program, err := exec.LookPath(c.name)
	if err != nil {
		c.Fatal(err)
	}
	c.cmd = exec.Command(program, c.args...)
	c.cmd.Dir, c.cmd.Env, c.cmd.Stderr = c.dir, append(os.Environ(), c.env...), c.Output()
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	c.out = bufio.NewReader(out)
}

// kill ends it as a crash would. What it has printed is read first.
func (c *child) kill() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		c.reading.Wait()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// taken are the lines of the receiver, over its lives.
type taken struct {
	mu       sync.Mutex
	last     int
	repeats  int
	disorder []string
	reached  chan int
}

func (k *taken) read(out *bufio.Reader) {
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return
		}
		var n int
		var id string
		_, err = fmt.Sscanf(line, "%d %s", &n, &id)
		k.mu.Lock()
		switch {
		case err != nil || id != fmt.Sprint("order-", n) || n > k.last+1:
			k.disorder = append(k.disorder, fmt.Sprintf("after %d: %q", k.last, line))
		case n <= k.last:
			k.repeats++
		default:
			k.last = n
			k.reached <- n
		}
		k.mu.Unlock()
	}
}

// 1,000 events reach a Node server in order while each side is killed and started
// again: the server, the receiver and the listener between them.
func TestListenThroughRestarts(t *testing.T) {
	const most = 1000
	dir := t.TempDir()
	node := &child{T: t, name: "pawl", dir: dir, env: []string{"PAWL_ADMIN_KEY=" + testKey}}
	defer node.kill()
	serve := func(address string) string {
		node.args = []string{"serve", "--data", filepath.Join(dir, "data"), "--listen", address, "--admin-listen", "127.0.0.1:0"}
		node.start()
		line, err := node.out.ReadBytes('\n')
		var ready struct{ API string }
		if err != nil || json.Unmarshal(line, &ready) != nil {
			t.Fatalf("not ready: %s %v", line, err)
		}
		return ready.API
	}
	api := serve("127.0.0.1:0")

	env := []string{"PAWL_SERVER=" + api, "PAWL_KEY=" + testKey, "PAWL_STATE_DIR=" + filepath.Join(dir, "state")}
	secret := &child{T: t, name: "pawl", dir: dir, env: env, args: []string{"listen", "--types", "order.paid", "--print-secret"}}
	secret.start()
	text, err := io.ReadAll(secret.out)
	if err == nil {
		err = secret.cmd.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("../../examples/receivers/node/receiver.mjs")
	if err != nil {
		t.Fatal(err)
	}
	got := &taken{reached: make(chan int, most)}
	receiver := &child{T: t, name: "node", dir: dir, args: []string{example}}
	defer receiver.kill()
	port := 0
	receive := func() {
		receiver.env = []string{"WEBHOOK_SECRET=" + strings.TrimSpace(string(text)), fmt.Sprint("PORT=", port)}
		receiver.start()
		line, err := receiver.out.ReadString('\n')
		if _, scanned := fmt.Sscanf(line, "listening on %d", &port); err != nil || scanned != nil {
			t.Fatalf("%q %v", line, err)
		}
		receiver.reading.Go(func() { got.read(receiver.out) })
	}
	receive()
	listener := &child{T: t, name: "pawl", dir: dir, env: env, args: []string{"listen", "--types", "order.paid", "--forward", fmt.Sprintf("http://127.0.0.1:%d/hook", port)}}
	defer listener.kill()
	listen := func() {
		listener.start()
		listener.reading.Go(func() { _, _ = io.Copy(io.Discard, listener.out) })
	}
	listen()

	c, err := public.New(public.Options{Server: api, Key: testKey, Attempts: 100, Backoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	published := make(chan error, 1)
	go func() {
		for n := 1; n <= most; n++ {
			if _, err := c.Publish(t.Context(), fmt.Sprint("order-", n), "order.paid", n); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	}()
	restarts := map[int]func(){
		200: func() { receiver.kill(); receive() },
		400: func() { listener.kill(); listen() },
		600: func() { node.kill(); serve(strings.TrimPrefix(api, "http://")) },
		800: func() { receiver.kill(); listener.kill(); receive(); listen() },
	}
	limit := time.After(time.Minute)
	for last := 0; last < most; {
		select {
		case last = <-got.reached:
		case <-limit:
			t.Fatalf("only %d came", last)
		}
		if restart := restarts[last]; restart != nil {
			restart()
		}
	}
	if err := <-published; err != nil {
		t.Error(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.disorder) > 0 {
		t.Errorf("%d out of order: %s", len(got.disorder), strings.Join(got.disorder, "; "))
	}
	t.Logf("%d were sent a second time", got.repeats)
	if info, err := os.Stat(filepath.Join(dir, "state", "listen")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "state", "listen", "*"))
	// A cursor that is just being replaced is there twice.
	kept = slices.DeleteFunc(kept, func(name string) bool { return strings.HasSuffix(name, ".new") })
	if err != nil || len(kept) != 2 {
		t.Errorf("%v %v", kept, err)
	}
	for _, name := range kept {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	}
}
