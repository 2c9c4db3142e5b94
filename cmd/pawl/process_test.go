package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/sim"
)

const (
	anyPort    = "127.0.0.1:0"
	killKey    = "pawl_sk_kill0123456789abcdef0123456789abcdef"
	killSecret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// process is a node that is a process of its own, with everything around it.
type process struct {
	t        *testing.T
	dir      string
	program  string
	config   string
	listen   string
	plan     sim.Plan
	sim      *sim.Server
	receiver *sim.Receiver
	node     *exec.Cmd
	client   *http.Client

	mu sync.Mutex
	// answered is what the API said of each submit.
	answered map[int]string
}

func (k *process) configuration(provider string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "admin_listen: 127.0.0.1:0\ndata: %q\negress: {allow: [127.0.0.0/8]}\ndrain: 2s\n", filepath.Join(k.dir, "data"))
	b.WriteString("tenants: {default: {account: {currency: USD, credit: \"1000000\"}}}\nupstreams:\n")
	for d, preset := range presets {
		fmt.Fprintf(&b, "  %s: {preset: %s, base_url: %q, key: %q, webhook_keys: [%q], currency: USD, deadline: 1h, timeout: 1s, read: {first: 300ms, max: 1s, rate: 50}}\n",
			preset, preset, provider, k.sim.Key(), k.sim.Secret(d))
	}
	return b.String()
}

var presets = map[sim.Dialect]string{sim.Native: "sim", sim.MediaV2: "media-v2", sim.BodyTimestamp: "body-timestamp"}

// launch starts the program; ready is its first line, or closed without one.
func (k *process) launch(ctx context.Context) (*exec.Cmd, <-chan string) {
	cmd := exec.CommandContext(ctx, k.program, "serve", "--config", k.config, "--listen", k.listen, "--log-level", "error")
	cmd.Env = append(os.Environ(), "PAWL_ADMIN_KEY="+killKey)
	cmd.Stderr = k.t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		if line, err := bufio.NewReader(out).ReadString('\n'); err == nil {
			ready <- line
		}
	}()
	return cmd, ready
}

// start waits until the node is ready; from the first time on it has one port.
func (k *process) start(ctx context.Context) {
	cmd, ready := k.launch(ctx)
	k.node = cmd
	line, ok := <-ready
	if !ok {
		k.t.Fatalf("the node did not start: %v", cmd.Wait())
	}
	var r struct{ API string }
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		k.t.Fatal(err)
	}
	if k.listen == anyPort {
		k.listen = strings.TrimPrefix(r.API, "http://")
	}
}

// stop ends the node by SIGTERM and insists on a clean end.
func (k *process) stop() {
	_ = k.node.Process.Signal(syscall.SIGTERM)
	if err := k.node.Wait(); err != nil {
		k.t.Fatalf("the node did not stop cleanly: %v", err)
	}
}

func (k *process) submit(ctx context.Context, n int) {
	script, _ := k.plan.Script(n)
	body := map[string]any{
		"upstream": presets[script.Dialect], "model": "m", "input": map[string]any{"n": n},
		"expected_cost": map[string]any{"amount": script.Price.String(), "currency": "USD"},
	}
	for ctx.Err() == nil {
		var op struct{ ID string }
		if k.post("/v1/operations", fmt.Sprintf("kill-%d", n), body, &op) {
			k.mu.Lock()
			k.answered[n] = op.ID
			k.mu.Unlock()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// post reports whether the call was answered 2xx; what is refused for good is
// a failure of the test.
func (k *process) post(path, key string, body, into any) bool {
	text, _ := json.Marshal(body)
	req, _ := http.NewRequest(http.MethodPost, "http://"+k.listen+path, bytes.NewReader(text))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	if key == "" {
		req.Header.Del("Idempotency-Key")
	}
	return k.do(req, into)
}

func (k *process) do(req *http.Request, into any) bool {
	req.Header.Set("Authorization", "Bearer "+killKey)
	res, err := k.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode == http.StatusServiceUnavailable {
		return false
	}
	if res.StatusCode >= 300 {
		k.t.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, res.Status, text)
		return true
	}
	return into == nil || json.Unmarshal(text, into) == nil
}

func (k *process) get(path string, into any) bool {
	req, _ := http.NewRequest(http.MethodGet, "http://"+k.listen+path, nil)
	return k.do(req, into)
}

func (k *process) operations() map[string]processOperation {
	all := make(map[string]processOperation)
	for token := ""; ; {
		var page struct {
			Items []processOperation
			Next  string `json:"next_page_token"`
		}
		if !k.get("/v1/operations?page_size=200&page_token="+token, &page) {
			k.t.Fatal("the operations cannot be listed")
		}
		for _, op := range page.Items {
			all[op.ID] = op
		}
		if token = page.Next; token == "" {
			return all
		}
	}
}

// settle waits until nothing is under way: every operation ended and settled,
// or is unconfirmed, and no delivery waits.
func (k *process) settle(ctx context.Context) {
	end := time.Now().Add(150 * time.Second)
	for quiet := 0; quiet < 3; {
		open := 0
		var which []string
		for _, op := range k.operations() {
			state, _ := pawl.ParseState(op.State)
			if state != pawl.Unconfirmed && !(state.Terminal() && op.Cost.Settled) {
				open++
				which = append(which, fmt.Sprint(op))
			}
		}
		for _, state := range [...]string{"pending", "delivering"} {
			var page struct{ Items []map[string]any }
			if !k.get("/v1/deliveries?page_size=100&state="+state, &page) {
				k.t.Fatal("the deliveries cannot be listed")
			}
			open += len(page.Items)
			which = append(which, fmt.Sprint(page.Items))
		}
		if quiet++; open > 0 {
			quiet = 0
		}
		if time.Now().After(end) {
			k.t.Fatalf("%d operations or deliveries are still open: %s", open, strings.Join(which, "; "))
		}
		select {
		case <-ctx.Done():
			k.t.Fatalf("%d operations or deliveries are still open", open)
		case <-time.After(500 * time.Millisecond):
		}
	}
	k.checkStates(k.operations())
}

// checkStates holds the ledger against what was answered and what the provider
// knows.
func (k *process) checkStates(ops map[string]processOperation) {
	if len(ops) != k.plan.Len() {
		k.t.Errorf("%d operations in the ledger, %d were submitted", len(ops), k.plan.Len())
	}
	unconfirmed := 0
	for n := range k.plan.Len() {
		script, _ := k.plan.Script(n)
		op, ok := ops[k.answered[n]]
		if !ok {
			k.t.Errorf("operation %d was answered 2xx and is missing", n)
			continue
		}
		if op.State == "unconfirmed" {
			unconfirmed++
			if script.Dialect.Idempotent() {
				k.t.Errorf("operation %d is unconfirmed although its create can be repeated", n)
			}
			continue
		}
		if op.State != script.Final.String() || op.Cost.Amount != script.Cost.String() {
			k.t.Errorf("operation %d is %s for %s, the provider says %s for %s", n, op.State, op.Cost.Amount, script.Final, script.Cost)
		}
	}
	k.t.Logf("%d operations, %d of them unconfirmed", len(ops), unconfirmed)
	k.checkDelivered(ops)
}

func (k *process) checkDelivered(ops map[string]processOperation) {
	books := k.receiver.Snapshot()
	if len(books.Violations) > 0 || len(books.Refused) > 0 {
		k.t.Errorf("the receiver complains: %v %v", books.Violations, books.Refused)
	}
	seen := make(map[string]map[int64]bool)
	sequences := make(map[int64]bool)
	for _, op := range books.Operations {
		seen[op.ID] = make(map[int64]bool)
		for _, e := range op.Seen {
			seen[op.ID][e.Version], sequences[e.Sequence] = true, true
		}
	}
	for id, op := range ops {
		for v := int64(2); v <= op.Version; v++ {
			if !seen[id][v] {
				k.t.Errorf("%s version %d was not delivered", id, v)
			}
		}
	}
	for i := int64(1); i <= int64(len(sequences)); i++ {
		if !sequences[i] {
			k.t.Errorf("sequence %d is missing", i)
		}
	}
}

type processOperation struct {
	ID, State string
	Version   int64
	Cost      struct {
		Amount  string
		Settled bool
	}
}
