package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/internal/scale"
)

const adminKey = "pawl_sk_bench0123456789abcdef0123456789abcdef"

// stage is what the nodes of one run share: the processes around them.
type stage struct {
	s                settings
	dir              string
	binary, provider string
	barePID          int
	bareURL, sinkURL string
	children         []*exec.Cmd
	client           *http.Client
}

// bench is one ledger with the nodes that serve it.
type bench struct {
	*stage
	name string
	// database is the URL of a ledger in PostgreSQL, "" for SQLite.
	database             string
	apis                 []string
	admin                string    // of the latest node
	filled               time.Time // by others' operations
	nodes                []*exec.Cmd
	ready                time.Duration
	tasks                []string // running tasks, for intake
	events, keys, cycles int
	idle                 int64
}

func start(ctx context.Context, s settings) (_ *stage, err error) {
	b := &stage{s: s}
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: s.connections, MaxConnsPerHost: s.connections}}
	if b.dir, err = os.MkdirTemp("", "pawl-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	if b.binary = s.binary; b.binary == "" {
		if err := b.build(ctx); err != nil {
			return nil, err
		}
	}
	if b.bareURL, b.barePID, err = b.child("bare"); err != nil {
		return nil, err
	}
	if b.provider, _, err = b.child("provider"); err != nil {
		return nil, err
	}
	if b.sinkURL, _, err = b.child("sink"); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *stage) build(ctx context.Context) error {
	b.binary = filepath.Join(b.dir, "pawl")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "./cmd/pawl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	return nil
}

// ledger starts nodes on one ledger, whose deliveries go to the sink.
func (st *stage) ledger(ctx context.Context, name, database string, nodes int) (*bench, error) {
	b := &bench{stage: st, name: name, database: database}
	for range nodes {
		if err := b.serve(); err != nil {
			b.stop()
			return nil, err
		}
	}
	var ep struct{ ID string }
	if err := b.call(ctx, "/v1/endpoints", "", map[string]any{"url": b.sinkURL + "/", "secret": sinkSecret}, &ep); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// api is one of the nodes' in turn.
func (b *bench) api(n int) string { return b.apis[n%len(b.apis)] }

func (b *bench) pids() (all []int) {
	for _, n := range b.nodes {
		all = append(all, n.Process.Pid)
	}
	return all
}

// child starts this program again in another role and gives its address.
func (b *stage) child(role string) (url string, pid int, err error) {
	cmd := exec.Command(os.Args[0], "child", role)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		return "", 0, err
	}
	line, err := firstLine(cmd)
	b.children = append(b.children, cmd)
	if err != nil {
		return "", 0, err
	}
	return "http://" + strings.TrimSpace(line), cmd.Process.Pid, nil
}

func firstLine(cmd *exec.Cmd) (string, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return line, err
}

func (b *bench) serve() error {
	name := fmt.Sprintf("%s-%d", b.name, len(b.nodes)+1)
	where := ""
	if b.database != "" {
		where = fmt.Sprintf("database: %q\nsecrets: base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n", b.database)
	}
	config := fmt.Sprintf(`listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
data: %q
%segress: {allow: [127.0.0.0/8]}
tenants: {default: {account: {currency: USD, credit: "1000000000"}}}
upstreams:
  bench:
    preset: sim
    base_url: %s
    key: bench
    webhook_keys: [%q]
    currency: USD
    concurrency: 64
    read: {first: 1h, max: 1h}
%s`, filepath.Join(b.dir, name), where, b.provider, providerSecret, scale.Settings())
	path := filepath.Join(b.dir, name+".yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	node := exec.Command(b.binary, "serve", "--config", path, "--log-level", "error")
	node.Env = append(os.Environ(), "PAWL_ADMIN_KEY="+adminKey)
	node.Stderr = os.Stderr
	started := time.Now()
	line, err := firstLine(node)
	b.ready = time.Since(started)
	b.nodes = append(b.nodes, node)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	var ready struct{ API, Admin string }
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		return err
	}
	b.apis, b.admin = append(b.apis, ready.API), ready.Admin
	fmt.Fprintf(os.Stderr, "%s: node %d, profiles at %s/debug/pprof/\n", name, node.Process.Pid, ready.Admin)
	time.Sleep(2 * time.Second)
	b.idle, err = residentKB(node.Process.Pid)
	return err
}

// stop stops the ledger's nodes.
func (b *bench) stop() {
	for _, n := range b.nodes {
		if n.Process != nil {
			_ = n.Process.Signal(syscall.SIGTERM)
			_ = n.Wait()
		}
	}
	b.nodes, b.apis = nil, nil
}

func (b *stage) stop() {
	for _, c := range b.children {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *bench) call(ctx context.Context, path, key string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return b.callText(ctx, b.api(0), path, key, text, into)
}

func (b *bench) callText(ctx context.Context, api, path, key string, text []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, api+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s: %s: %s", path, res.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// get reads a page of text.
func (b *stage) get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	res, err := b.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return "", errors.New(res.Status)
	}
	return string(text), err
}

// cpus is the processor time that processes have used, in seconds.
func cpus(pids []int) (sum float64, err error) {
	for _, pid := range pids {
		used, failed := cpu(pid)
		sum, err = sum+used, errors.Join(err, failed)
	}
	return sum, err
}

func cpu(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100, errors.Join(err1, err2)
}

func residentKB(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, errors.New("no VmRSS")
}
