package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// secret signs what the receiver gets: the base64 of 32 bytes.
const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// build makes the program, as a person would.
func build(t *testing.T, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", bin, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// receiver is the program behind an address that stays the same while the
// program is killed and started again.
type receiver struct {
	t    *testing.T
	args []string
	bin  string
	door net.Listener

	mu      sync.Mutex
	process *exec.Cmd
	address string
}

func newReceiver(t *testing.T, bin, file, mail string, more ...string) *receiver {
	t.Helper()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, bin: bin, door: door, args: append([]string{"-db", file, "-mail", mail}, more...)}
	r.start()
	go r.forward()
	t.Cleanup(func() { _ = door.Close(); r.kill() })
	return r
}

func (r *receiver) url() string { return "http://" + r.door.Addr().String() }

// start runs the program and waits until it says where it listens.
func (r *receiver) start() {
	r.t.Helper()
	cmd := exec.Command(r.bin, r.args...)
	cmd.Env = append(os.Environ(), "PAWL_ENDPOINT_SECRET="+secret)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var ready struct{ URL string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		r.t.Fatalf("the receiver says %q: %v", line, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process, r.address = cmd, ready.URL[len("http://"):]
}

// kill ends the program as kill -9 does.
func (r *receiver) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
	r.address = ""
}

// forward joins each caller with the program of the moment.
func (r *receiver) forward() {
	for {
		in, err := r.door.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		address := r.address
		r.mu.Unlock()
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer out.Close()
			go func() { _, _ = io.Copy(out, in) }()
			_, _ = io.Copy(in, out)
		}()
	}
}

// mailbox is a mail service that honours keys, and takes its time. Its books
// say how many messages each learner got.
type mailbox struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string]bool
	got  map[string]int
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{keys: make(map[string]bool), got: make(map[string]int)}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	key := r.Header.Get("Idempotency-Key")
	if key == "" || !m.keys[key] {
		m.keys[key] = true
		m.got[string(body)]++
	}
	m.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	w.WriteHeader(http.StatusAccepted)
}

// messages are how many were sent, and how many learners got one.
func (m *mailbox) messages() (all, told int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.got {
		all += n
	}
	return all, len(m.got)
}
