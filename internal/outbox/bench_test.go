package outbox_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// secretOf is a Standard Webhooks secret made of one byte repeated.
func secretOf(b byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// got is one request as a receiver saw it.
type got struct {
	at     time.Time
	host   string
	path   string
	header http.Header
	body   string
}

// receiver answers by a function and keeps what came.
type receiver struct {
	mu     sync.Mutex
	all    []got
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

// ServeHTTP keeps the request and answers it; n counts from 1.
func (x *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	x.mu.Lock()
	x.all = append(x.all, got{time.Now(), r.Host, r.URL.Path, r.Header.Clone(), string(body)})
	n := len(x.all)
	x.mu.Unlock()
	if x.answer != nil {
		x.answer(n, w, r)
	}
}

func (x *receiver) requests() []got {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]got(nil), x.all...)
}

func (x *receiver) to(host string) (n int) {
	for _, g := range x.requests() {
		if g.host == host {
			n++
		}
	}
	return n
}

func statuses(codes ...int) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(codes[min(n, len(codes))-1]) }
}

// commands stand before the committer and may fail, count or follow up.
type commands struct {
	next   store.Commands
	before func(ledger.Command) error
	after  func(ledger.Command)
}

// Do passes a command on unless before fails it.
func (c commands) Do(ctx context.Context, command ledger.Command) (ledger.Outcome, error) {
	if c.before != nil {
		if err := c.before(command); err != nil {
			return ledger.Outcome{}, err
		}
	}
	out, err := c.next.Do(ctx, command)
	if c.after != nil {
		c.after(command)
	}
	return out, err
}

// DoAll passes on the commands that before does not fail.
func (c commands) DoAll(ctx context.Context, all ...ledger.Command) []store.Result {
	results := make([]store.Result, len(all))
	var passed []ledger.Command
	var at []int
	for i, command := range all {
		if c.before != nil {
			results[i].Err = c.before(command)
		}
		if results[i].Err == nil {
			passed, at = append(passed, command), append(at, i)
		}
	}
	for i, r := range c.next.DoAll(ctx, passed...) {
		results[at[i]] = r
		if c.after != nil {
			c.after(passed[i])
		}
	}
	return results
}

// bench is an outbox over a real committer and the memory driver.
type bench struct {
	*testing.T
	driver  *memory.Store
	commit  *store.Committer
	client  *egress.Client
	metrics *prometheus.Registry
	log     *lockedBuffer
	opts    outbox.Options
	box     *outbox.Outbox
	seeds   uint64
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is io.Writer's.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newBench resolves every name to 10.0.0.1 and serves it over net.Pipe by the
// handler; a nil handler goes to real sockets.
func newBench(t *testing.T, handler http.Handler, change ...func(*outbox.Options)) *bench {
	t.Helper()
	policy, err := egress.NewPolicy(netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	var o egress.Options
	if handler != nil {
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go http.Serve(&oneConn{conn: server}, handler)
			return client, nil
		}
	}
	b := &bench{T: t, driver: memory.New(memory.Options{}), client: egress.NewClient(policy, o),
		metrics: prometheus.NewRegistry(), log: &lockedBuffer{}}
	// The log is taken bare: nothing secret may even reach it.
	log := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.commit = store.NewCommitter(b.driver, store.Options{Log: log})
	b.opts = outbox.Options{Store: b.commit, Reader: b.driver, Client: b.client, Vault: newVault(t), Metrics: telemetry.NewMetrics(b.metrics), Log: log, Version: "1.2.3",
		// Long, so that these tests see what is due and not the safety net.
		Poll: time.Hour}
	for _, c := range change {
		c(&b.opts)
	}
	b.box = outbox.New(b.opts)
	t.Cleanup(func() {
		b.client.Close()
		_ = b.commit.Close()
	})
	return b
}

// oneConn is a listener of one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, io.EOF
	}
	c := l.conn
	l.conn = nil
	return c, nil
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// metric is the value of a counter or gauge whose label, if it has one, has
// the given value.
func (b *bench) metric(name, label string) float64 {
	b.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	b.Fatalf("no metric %s %s", name, label)
	return 0
}

func newBox(b *bench) *outbox.Outbox { return outbox.New(b.opts) }

// run starts the loop and returns what ends it.
func (b *bench) run() (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.box.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (b *bench) header() ledger.Header {
	b.seeds++
	var h ledger.Header
	binary.BigEndian.PutUint64(h.Seed[:], b.seeds)
	return h
}

func (b *bench) do(c ledger.Command) ledger.Outcome {
	b.Helper()
	out, err := b.commit.Do(context.Background(), c)
	if err != nil || out.Err != nil {
		b.Fatalf("%T: %v %v", c, err, out.Err)
	}
	return out
}

// endpoint creates one with the secret of byte 1. A change gives its secrets as
// they are; they are sealed here.
func (b *bench) endpoint(url string, change ...func(*ledger.Endpoint)) ledger.Endpoint {
	b.Helper()
	h := b.header()
	ep := ledger.Endpoint{
		ID: pawl.NewID(pawl.TimeOf(time.Now()), binary.BigEndian.Uint64(h.Seed[:])), Tenant: "acme", URL: url,
		Scheme: "standard-webhooks", Secret: ledger.Sealed(secretOf(1)),
	}
	for _, c := range change {
		c(&ep)
	}
	ep.Secret = b.seal(ep.ID, string(ep.Secret))
	return b.do(ledger.CreateEndpoint{Header: h, Endpoint: ep}).Value.(ledger.Endpoint)
}

var studio = ledger.Upstream{
	Name: "studio", Adapter: "media-v2/1", Callbacks: true, Reads: true, ReadFirst: 2 * time.Second,
	ReadMax: 15 * time.Second, ReadFactor: 1500, Timeout: 15 * time.Second, SubmitAttempts: 5, SettleWithin: time.Hour,
}

// submit makes an operation; change may give it what it needs.
func (b *bench) submit(change ...func(*ledger.Submit)) ledger.Operation {
	b.Helper()
	h := b.header()
	c := ledger.Submit{
		Header: h, Tenant: "acme", Key: keyOf(h), Window: time.Hour, Up: studio, Model: "kling-2",
		Input: `{"prompt":"a cat"}`, Metadata: `{"order":"A-1"}`, Deadline: pawl.TimeOf(time.Now().Add(500 * time.Hour)),
	}
	for _, f := range change {
		f(&c)
	}
	return b.do(c).Value.(ledger.Submitted).Operation
}

func keyOf(h ledger.Header) string {
	return "k" + base64.RawURLEncoding.EncodeToString(h.Seed[:8])
}

// accept makes the operation running, which emits operation.running.
func (b *bench) accept(op ledger.Operation) ledger.Operation {
	b.Helper()
	return b.do(ledger.RecordCreate{
		Header: b.header(), Up: studio, Operation: op.ID, Outcome: ledger.CreateAccepted, Task: "task-" + op.ID.Suffix(),
	}).Value.(ledger.Operation)
}

// observe makes one terminal, which emits the event of the state.
func (b *bench) observe(op ledger.Operation, o ledger.Observation) ledger.Operation {
	b.Helper()
	o.Task, o.Progress, o.Word = op.Task, -1, o.State.String()
	b.do(ledger.ObserveStatus{Header: b.header(), Up: studio, Operation: op.ID, Outcome: ledger.ReadObserved, Obs: o})
	return b.operation(op.ID)
}

func (b *bench) operation(id pawl.ID) ledger.Operation {
	b.Helper()
	var rows ledger.Rows
	if err := b.driver.Load(context.Background(), &ledger.Keys{Operations: []pawl.ID{id}}, &rows); err != nil {
		b.Fatal(err)
	}
	op, _ := rows.Operations.Get(id)
	return op
}

// deliveries are those of an endpoint, oldest first.
func (b *bench) deliveries(ep pawl.ID) []ledger.Delivery {
	b.Helper()
	rows, err := b.driver.Deliveries(context.Background(), store.DeliveryFilter{Endpoint: ep}, store.Page{Limit: 100_000})
	if err != nil {
		b.Fatal(err)
	}
	for i, j := 0, len(rows)-1; i < j; i, j = i+1, j-1 {
		rows[i], rows[j] = rows[j], rows[i]
	}
	return rows
}

func (b *bench) only(ep pawl.ID) ledger.Delivery {
	b.Helper()
	rows := b.deliveries(ep)
	if len(rows) != 1 {
		b.Fatalf("%d deliveries, want 1", len(rows))
	}
	return rows[0]
}

func (b *bench) attempts(delivery pawl.ID) []ledger.Attempt {
	b.Helper()
	rows, err := b.driver.Attempts(context.Background(), delivery)
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

// backlog writes n due deliveries of one event for an endpoint.
func (b *bench) backlog(ep ledger.Endpoint, event pawl.ID, n int) {
	b.Helper()
	for from := 0; from < n; from += 250 {
		b.do(backlog{b.header(), ep, event, from, min(from+250, n)})
	}
}

type backlog struct {
	ledger.Header
	endpoint ledger.Endpoint
	event    pawl.ID
	from, to int
}

func (c backlog) Head() ledger.Header { return c.Header }
func (c backlog) Keys(k *ledger.Keys) {
	k.Queues = []ledger.QueueID{ledger.DeliveryQueueID(c.endpoint.ID)}
}
func (c backlog) Decide(d *ledger.Draft) ledger.Outcome {
	for i := c.from; i < c.to; i++ {
		var id pawl.ID
		copy(id[:], c.endpoint.ID[:8])
		binary.BigEndian.PutUint64(id[8:], uint64(i)+1)
		d.Deliveries.Put(id, ledger.Delivery{
			ID: id, Event: c.event, Endpoint: c.endpoint.ID, Tenant: "acme", State: pawl.DeliveryPending,
			DueAt: d.Now - 1, FirstDueAt: d.Now - 1, CreatedAt: d.Now,
		})
	}
	q := ledger.DeliveryQueueID(c.endpoint.ID)
	d.Queues.Put(q, ledger.Queue{ID: q, NextDue: d.Now - 1})
	return ledger.Outcome{Reason: "made"}
}
