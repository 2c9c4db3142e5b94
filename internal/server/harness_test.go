package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api/apitest"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
)

const (
	adminKey   = "pawl_sk_0123456789abcdef0123456789abcdef"
	hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	sinkSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	// patience is how long a real world waits for what must come.
	patience = 20 * time.Second
)

// world is a real node with what is around it: a scripted provider, a receiver
// that verifies, and a client of the API.
type world struct {
	*testing.T
	cfg      config.Config
	virtual  *pipes
	client   *http.Client
	disk     *disk
	node     *Node
	stop     context.CancelFunc
	stopped  chan error
	provider *provider
	sink     *receiver
	// document is what every exchange with the API, and every delivery, is held
	// against.
	document *apitest.Document
	// damaged says that the test has damaged the ledger, so that its invariants
	// cannot hold.
	damaged bool
	// free is what the disk has free, in bytes; log takes the nodes' logs.
	free atomic.Uint64
	log  logBuffer
	// traces makes the spans of the next node, nil none.
	traces *telemetry.Traces
}

// logBuffer takes a log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is everything logged so far.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// settings change the configuration of a world: its one upstream is "up".
type settings func(*config.Config, *config.Upstream)

// newWorld makes a world with real listeners and a SQLite ledger; the default
// tenant has 100 USD. The first read is an hour away unless settings say
// otherwise.
func newWorld(t *testing.T, dialect string, change ...settings) *world {
	t.Helper()
	return makeWorld(t, dialect, nil, change)
}

// inVirtualTime runs a test in a bubble whose network is made of pipes, so that
// hours pass at once. The ledger is a real one.
func inVirtualTime(t *testing.T, dialect string, test func(*world), change ...settings) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(makeWorld(t, dialect, newPipes(), change)) })
}

func makeWorld(t *testing.T, dialect string, virtual *pipes, change []settings) *world {
	w := &world{T: t, virtual: virtual, disk: new(disk)}
	w.free.Store(1 << 40)
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	if virtual != nil {
		transport.DialContext = virtual.dial
	}
	w.client = &http.Client{Transport: w.checking(transport), Timeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	w.provider = newProvider(dialect)
	w.provider.url = w.serve(w.provider)
	w.sink = newReceiver(sinkSecret)
	w.sink.url = w.serve(w.sink)
	text := fmt.Sprintf(`
listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
data: %q
drain: 2s
egress: {allow: [127.0.0.0/8]}
tenants: {default: {account: {currency: USD, credit: "100"}}}
upstreams:
  up: {preset: %s, base_url: %q, key: provider-key, webhook_keys: [%q], currency: USD, owner: media team,
       deadline: 1h, timeout: 5s, read: {first: 1h, factor: 1.5, max: 1h, rate: 1000}}
`, filepath.Join(t.TempDir(), "data"), dialect, w.provider.url, hookSecret)
	var err error
	if w.cfg, err = config.Parse("test.yaml", []byte(text), os.LookupEnv); err != nil {
		t.Fatal(err)
	}
	up := w.cfg.Upstreams["up"]
	for _, c := range change {
		c(&w.cfg, &up)
	}
	w.cfg.Upstreams["up"] = up
	if err := w.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(w.end)
	return w
}

// documents are what the nodes serve, parsed once for all worlds.
var documents apitest.Documents

// checking holds every exchange with the API against its description.
func (w *world) checking(base http.RoundTripper) http.RoundTripper {
	return &apitest.Transport{Base: base, Report: func(fault string) { w.Error(fault) }, Document: func(r *http.Request) *apitest.Document {
		if node := w.node; node == nil || "http://"+r.URL.Host != node.APIURL() || !strings.HasPrefix(r.URL.Path, "/v1/") {
			return nil
		}
		return w.document
	}}
}

func (w *world) serve(h http.Handler) string {
	w.Helper()
	listen := net.Listen
	if w.virtual != nil {
		listen = w.virtual.listen
	}
	l, err := listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	w.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

func (w *world) options() Options {
	o := Options{AdminKey: adminKey, Traces: w.traces, Log: telemetry.NewLogger(&w.log, slog.LevelInfo), wires: wires{ledger: w.disk.under}}
	o.wires.free = func(string) (uint64, error) { return w.free.Load(), nil }
	if w.virtual != nil {
		o.wires.listen, o.wires.dial = w.virtual.listen, w.virtual.dial
	}
	return o
}

func (w *world) start() {
	w.Helper()
	w.disk.state.Store(works)
	n, err := Start(w.Context(), w.cfg, w.options())
	if err != nil {
		w.Fatal(err)
	}
	if w.document, err = documents.Of(n.native.Description()); err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	w.node, w.stop, w.stopped = n, stop, make(chan error, 1)
	go func() { w.stopped <- n.Run(ctx) }()
}

// drain stops the node as an operator does.
func (w *world) drain() {
	w.Helper()
	w.stop()
	if err := <-w.stopped; err != nil {
		w.Errorf("stop: %v", err)
	}
	w.node = nil
}

// kill stops the node with nothing more written from now on, as a crash would.
func (w *world) kill() {
	w.disk.state.Store(dead)
	w.stop()
	<-w.stopped
	w.node = nil
}

// end stops the node and holds the whole ledger against its invariants.
func (w *world) end() {
	if w.node != nil {
		w.disk.state.Store(works)
		w.drain()
	}
	r, err := OpenReadOnly(context.Background(), w.cfg)
	if err != nil {
		w.Fatal(err)
	}
	defer r.Close()
	_, err = store.Check(context.Background(), r, func(v ledger.Violation) error {
		if !w.damaged {
			w.Errorf("invariant %s: %s: %s", v.Rule, v.Row, v.Detail)
		}
		return nil
	}, nil)
	if err != nil {
		w.Error(err)
	}
	for _, v := range w.sink.refusals() {
		w.Errorf("the receiver refused a delivery: %s", v)
	}
	for _, d := range w.sink.attempts() {
		kind := d.kind
		if !pawl.ReservedType(kind) {
			kind = "published"
		}
		if strings.Contains(d.body, `"source":`) {
			kind = "received"
		}
		for _, fault := range w.document.WebhookFaults(kind, []byte(d.body)) {
			w.Error(fault)
		}
	}
}

// eventually polls until the condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	for began := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			w.Fatalf("after %s: %s", patience, what)
		}
	}
}

// pass lets time go by in a virtual world, until everything has come to rest.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// reply is an answer of the node.
type reply struct {
	status int
	// took is set for calls in the background.
	took   time.Duration
	header http.Header
	body   string
	fields map[string]any
}

// at is the value at a dotted path of the answer's JSON; "" if there is none.
func (r reply) at(path string) string {
	var v any = r.fields
	for _, name := range strings.Split(path, ".") {
		if list, ok := v.([]any); ok {
			if v = nil; name == "0" && len(list) > 0 {
				v = list[0]
			}
			continue
		}
		m, _ := v.(map[string]any)
		v = m[name]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// items are the members of a list.
func (r reply) items() []reply {
	list, _ := r.fields["items"].([]any)
	out := make([]reply, len(list))
	for i, v := range list {
		out[i].fields, _ = v.(map[string]any)
	}
	return out
}

// send sends a request and fails the test only if there is no answer.
func (w *world) send(method, url string, body []byte, header http.Header) reply {
	w.Helper()
	r, err := w.try(method, url, body, header)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) try(method, url string, body []byte, header http.Header) (reply, error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(w.Context()), method, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = header
	res, err := w.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	r := reply{status: res.StatusCode, header: res.Header, body: string(text)}
	_ = json.Unmarshal(text, &r.fields)
	return r, err
}

// call calls the API; headers are pairs of name and value.
func (w *world) call(method, path string, body any, headers ...string) reply {
	w.Helper()
	h := http.Header{"Authorization": {"Bearer " + adminKey}, "Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	text, ok := body.(string)
	if !ok && body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			w.Fatal(err)
		}
		text = string(raw)
	}
	return w.send(method, w.node.APIURL()+path, []byte(text), h)
}

func (w *world) get(path string) reply {
	w.Helper()
	r := w.call(http.MethodGet, path, nil)
	if r.status != http.StatusOK {
		w.Fatalf("GET %s: %d %s", path, r.status, r.body)
	}
	return r
}

// want checks the status of an answer and gives the answer.
func (w *world) want(status int, r reply) reply {
	w.Helper()
	if r.status != status {
		w.Fatalf("answered %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// job is the body of a submission that costs 1 USD.
func job(prompt string) map[string]any {
	return map[string]any{
		"upstream": "up", "model": "m", "input": map[string]any{"prompt": prompt},
		"expected_cost": map[string]any{"amount": "1", "currency": "USD"},
	}
}

// submit submits a job of 1 USD and gives the operation's id.
func (w *world) submit(key string) string {
	w.Helper()
	return w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", key)).at("id")
}

// running submits a job and waits until the provider has it.
func (w *world) running(key string) (op string, c create) {
	w.Helper()
	op = w.submit(key)
	w.state(op, "running")
	task := w.operation(op).at("task_id")
	for _, c := range w.provider.created() {
		if c.task == task {
			return op, c
		}
	}
	w.Fatalf("the provider did not create %s", task)
	return "", create{}
}

func (w *world) operation(id string) reply {
	w.Helper()
	return w.get("/v1/operations/" + id)
}

// state waits for a state of an operation.
func (w *world) state(id, state string) reply {
	w.Helper()
	var op reply
	w.eventually(id+" never became "+state, func() bool {
		op = w.operation(id)
		return op.at("state") == state
	})
	return op
}

// now checks the state of an operation without waiting.
func (w *world) now(id, state string) reply {
	w.Helper()
	op := w.operation(id)
	if op.at("state") != state {
		w.Errorf("%s is %s, want %s", id, op.at("state"), state)
	}
	return op
}

// money checks the account: balance is what was credited less what was charged.
func (w *world) money(balance, reserved string) {
	w.Helper()
	acct := w.get("/v1/accounts").items()[0]
	want := func(s string) string { return testAmount(w.T, s).String() }
	if acct.at("balance") != want(balance) || acct.at("reserved") != want(reserved) {
		w.Errorf("balance %s, reserved %s, want %s and %s", acct.at("balance"), acct.at("reserved"), balance, reserved)
	}
}

// timeline gives "kind verdict reason" of each line of an operation.
func (w *world) timeline(id string) []string {
	w.Helper()
	var lines []string
	for _, item := range w.get("/v1/operations/" + id + "/timeline").items() {
		line := strings.Join(strings.Fields(item.at("kind")+" "+item.at("verdict")+" "+item.at("reason")), " ")
		again, _ := strconv.Atoi(item.at("repeats")) // Zero where there is none.
		lines = append(lines, slices.Repeat([]string{line}, 1+again)...)
	}
	return lines
}

// line checks how often a line is in an operation's timeline.
func (w *world) line(id, line string, times int) {
	w.Helper()
	lines := w.timeline(id)
	n := 0
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	if n != times {
		w.Errorf("the timeline has %q %d times, want %d:\n%s", line, n, times, strings.Join(lines, "\n"))
	}
}

// reviews gives the reasons of the open reviews of an operation, oldest first.
func (w *world) reviews(id string) []string {
	w.Helper()
	var reasons []string
	for _, r := range w.get("/v1/reviews?open=true&operation=" + id).items() {
		reasons = append(reasons, r.at("reason"))
	}
	slices.Reverse(reasons)
	return reasons
}

func (w *world) review(id string, want ...string) {
	w.Helper()
	if got := w.reviews(id); !slices.Equal(got, want) {
		w.Errorf("open reviews of %s: %v, want %v", id, got, want)
	}
}

// metric is a sample of the node's metrics.
func (w *world) metric(sample string) string {
	w.Helper()
	r := w.send(http.MethodGet, w.node.AdminURL()+"/metrics", nil, nil)
	for line := range strings.Lines(r.body) {
		if rest, ok := strings.CutPrefix(line, sample+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// endpoint adds an endpoint for everything at the receiver.
func (w *world) endpoint(extra ...any) reply {
	w.Helper()
	body := map[string]any{"url": w.sink.url, "secret": sinkSecret}
	for i := 0; i < len(extra); i += 2 {
		body[extra[i].(string)] = extra[i+1]
	}
	return w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", body))
}

// told waits until the receiver has been told exactly these types of events of
// an operation, each once, in this order.
func (w *world) told(op string, want ...string) {
	w.Helper()
	var got []string
	holds := func() bool {
		got = w.sink.types(op)
		return slices.Equal(got, want)
	}
	for began := time.Now(); !holds() && time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
	}
	if !slices.Equal(got, want) {
		w.Errorf("the receiver was told %v, want %v", got, want)
	}
}

func testAmount(t *testing.T, text string) pawl.Amount {
	t.Helper()
	a, err := pawl.ParseAmount(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
