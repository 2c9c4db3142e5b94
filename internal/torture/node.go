package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTimeout is how long a node may take to be ready, its database being away
// meanwhile included.
const startTimeout = 2 * time.Minute

// node is one `pawl serve`, in all its lives. One fault befalls it at a time.
type node struct {
	number  int
	program string
	config  string
	log     string
	env     []string
	// database is its way to the database; nil on SQLite.
	database *proxy
	data     string

	// faulty is held while something befalls it.
	faulty sync.Mutex

	mu  sync.Mutex
	cmd *exec.Cmd
	api string
}

// start starts the node again and waits until it is ready. If it ends before,
// such as for want of its database, it is started once more, as a supervisor
// does.
func (n *node) start(ctx context.Context) error { return n.run(ctx, true) }

// run starts the node and waits until it is ready.
func (n *node) run(ctx context.Context, repeat bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		ready, err := n.launch(ctx)
		if err != nil {
			return err
		}
		select {
		case api, ok := <-ready:
			if ok {
				n.mu.Lock()
				n.api = api
				n.mu.Unlock()
				return nil
			}
			if ended := n.wait(); !repeat {
				return fmt.Errorf("node %d: %w: %s", n.number, ended, n.lastWords())
			}
		case <-ctx.Done():
			n.kill()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %d did not start: %s", n.number, n.lastWords())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// launch starts the process. What it returns gives its address when it is
// ready, and is closed without one if it ends before.
func (n *node) launch(ctx context.Context) (<-chan string, error) {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(n.program, "serve", "--config", n.config, "--log-level", "warn")
	cmd.Env = append(os.Environ(), n.env...)
	cmd.Stderr = log
	dieWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.cmd = cmd
	n.mu.Unlock()
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		var r struct{ API string }
		if line, err := bufio.NewReader(out).ReadBytes('\n'); err == nil && json.Unmarshal(line, &r) == nil {
			ready <- strings.TrimPrefix(r.API, "http://")
		}
	}()
	return ready, nil
}

// address is where it serves, "" if it has ended.
func (n *node) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return ""
	}
	return n.api
}

func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd.Process.Pid
}

// signal sends a signal to the node, if it runs.
func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s)
	}
}

// wait waits for the node's end and says how it was.
func (n *node) wait() error {
	n.mu.Lock()
	cmd := n.cmd
	n.mu.Unlock()
	if cmd == nil {
		return nil
	}
	err := cmd.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == cmd {
		n.cmd, n.api = nil, ""
	}
	return err
}

// kill ends the node at once, whatever state it is in.
func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	_ = n.wait()
}

// stop has the node end by itself, and fails unless it ends well.
func (n *node) stop() error {
	n.signal(syscall.SIGTERM)
	if err := n.wait(); err != nil {
		return fmt.Errorf("node %d did not end well after SIGTERM: %w: %s", n.number, err, n.lastWords())
	}
	return nil
}

// lastWords is the end of the node's log.
func (n *node) lastWords() string {
	f, err := os.Open(n.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil && size > 600 {
		_, _ = f.Seek(-600, io.SeekEnd)
	} else {
		_, _ = f.Seek(0, io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	return strings.TrimSpace(string(text))
}

// complaints are the lines of the node's log that no fault excuses.
func (n *node) complaints() ([]string, error) {
	f, err := os.Open(n.log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		for _, word := range inexcusable {
			if strings.Contains(lines.Text(), word) {
				found = append(found, fmt.Sprintf("%s: %.300s", filepath.Base(n.log), lines.Text()))
				break
			}
		}
	}
	return found, lines.Err()
}

// inexcusable are the words of a log that tell of a fault of Pawl's own.
var inexcusable = []string{"panic", "DATA RACE", "fatal error:", "misses rows that it asked for", "SQLSTATE 40P01", "SQLSTATE 40001"}
