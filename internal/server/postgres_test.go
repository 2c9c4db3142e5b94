package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/telemetry"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// wrapping is 32 bytes in base64.
const wrapping = "base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// onPostgres puts the world's ledger into a database of its own.
func onPostgres(t *testing.T) settings {
	t.Helper()
	return on(t, pgtest.Database(t))
}

func on(t *testing.T, url string) settings {
	t.Helper()
	return func(c *config.Config, _ *config.Upstream) {
		c.Database, c.Secrets = secretOf(t, url), secretOf(t, wrapping)
	}
}

// TestOnPostgres: a job from its submission to the notice of its end, with the
// ledger in PostgreSQL, also through a transaction pooler, over a restart of the
// node.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	for _, pooler := range []bool{false, true} {
		t.Run(fmt.Sprintf("pooler %v", pooler), func(t *testing.T) {
			t.Parallel()
			database := pgtest.Database(t)
			if pooler {
				database = pgtest.Pooled(t, database)
			}
			w := newWorld(t, "media-v2", on(t, database))
			w.endpoint()
			op, c := w.running("k")
			if again := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k")); again.at("id") != op {
				t.Errorf("the repeat made %s", again.at("id"))
			}
			w.drain()
			w.start()
			w.finish(op, c)
			w.money("99.4", "0")
			w.told(op, "operation.running", "operation.succeeded")
		})
	}
}

// TestStartLeavesOthersLeases: a node that starts while another has a create on
// the wire leaves that alone, and both go on.
func TestStartLeavesOthersLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2", onPostgres(t))
	reached, open := w.provider.gate()
	op := w.submit("k")
	<-reached
	other, stop := w.another(new(disk))
	time.Sleep(500 * time.Millisecond)
	open()
	w.state(op, "running")
	w.timelineHas(op, "create", 1)
	if n := len(w.provider.created()); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
	// Either serves what the other took in.
	r := w.send(http.MethodGet, other.APIURL()+"/v1/operations/"+op, nil, http.Header{"Authorization": {"Bearer " + adminKey}})
	if r.status != http.StatusOK || r.at("state") != "running" {
		t.Errorf("the other node: %d %s", r.status, r.body)
	}
	stop()
}

// another starts one more node on the world's ledger, with a way of its own to
// it. It is stopped by stop, or at the end of the test.
func (w *world) another(under *disk) (n *Node, stop func()) {
	w.Helper()
	o := w.options()
	o.wires.ledger = under.under
	n, err := Start(w.Context(), w.cfg, o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(stop)
	return n, stop
}

// early is a ledger as a node sees it that looks for keys before there are any.
type early struct{ store.Driver }

// APIKeys are none, but to whoever looks for a certain one.
func (d early) APIKeys(ctx context.Context, f store.APIKeyFilter, p store.Page) ([]ledger.APIKey, error) {
	if f == (store.APIKeyFilter{}) {
		return nil, nil
	}
	return d.Driver.APIKeys(ctx, f, p)
}

// TestTwoFirstStarts: of two nodes that start for the first time at once one has
// made the admin key, and its file holds it. The other keeps no file, says so, and
// takes the key of the first.
func TestTwoFirstStarts(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	w := &world{T: t, client: new(http.Client)}
	var nodes [2]*Node
	var logs [2]logBuffer
	var files [2]string
	for i := range nodes {
		cfg := config.Default()
		cfg.Listen, cfg.AdminListen, cfg.Data = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
		on(t, database)(&cfg, nil)
		o := Options{Log: telemetry.NewLogger(&logs[i], slog.LevelInfo)}
		o.wires.ledger = func(d store.Driver) store.Driver { return early{d} }
		n, err := Start(t.Context(), cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		stopped := make(chan error, 1)
		go func() { stopped <- n.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
		nodes[i], files[i] = n, filepath.Join(cfg.Data, "admin.key")
	}
	secret, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files[1]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the later node keeps a file: %v", err)
	}
	const told = "the admin key is not in this node's data folder"
	if strings.Contains(logs[0].String(), told) || strings.Count(logs[1].String(), told) != 1 {
		t.Errorf("the logs say\n%s\nand\n%s", logs[0].String(), logs[1].String())
	}
	for i, n := range nodes {
		r := w.send(http.MethodGet, n.APIURL()+"/v1/whoami", nil, http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(secret))}})
		if r.status != http.StatusOK {
			t.Errorf("node %d answers %d %s to the admin key", i, r.status, r.body)
		}
	}
}

func (w *world) timelineHas(op, line string, times int) {
	w.Helper()
	n := 0
	for _, got := range w.timeline(op) {
		if strings.Contains(got, line) {
			n++
		}
	}
	if n != times {
		w.Errorf("%q is %d times in the timeline, want %d: %q", line, n, times, w.timeline(op))
	}
}

// TestPostgresGone: while the database is down, again and again under load, every
// call of the API and every callback is answered 503 with Retry-After; after its
// return the node goes on by itself within 5 s, and nothing that was answered 2xx
// is missing.
func TestPostgresGone(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	w := newWorld(t, "media-v2", on(t, s.URL()), func(c *config.Config, _ *config.Upstream) {
		tenant := c.Tenants["default"]
		tenant.Account.Credit = 1_000_000 * pawl.AmountScale
		c.Tenants["default"] = tenant
	})
	w.endpoint()
	op, c := w.running("k")
	l := &gone{world: w, taken: map[string]string{}, events: map[string]bool{}}
	calls := []func(n int) reply{
		l.submit, func(n int) reply { return l.event(c, n) },
		func(int) reply { return w.call(http.MethodGet, "/v1/operations/"+op, nil) },
		func(int) reply { return w.call(http.MethodGet, "/v1/deliveries", nil) },
		func(int) reply { return w.call(http.MethodGet, "/v1/whoami", nil) },
		func(int) reply { return w.call(http.MethodPost, "/v1/work/lease", map[string]any{}) },
	}
	var callers sync.WaitGroup
	for _, call := range calls {
		callers.Go(func() { l.insist(call) })
	}
	for range 3 {
		w.eventually("work is not taken in", func() bool { return l.lately(2) })
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		w.eventually("nothing is refused while the database is down", func() bool { return l.lately(503) })
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		w.eventually("work is not taken in again", func() bool { return l.lately(2) })
		if took := time.Since(back); took > 5*time.Second {
			t.Errorf("recovered %s after the database's return, want 5 s", took)
		}
	}
	l.over.Store(true)
	callers.Wait()
	for key, id := range l.taken {
		if got := w.get("/v1/operations?idempotency_key=" + key); !strings.Contains(got.body, id) {
			t.Errorf("the submission %s was answered with %s and is missing", key, id)
		}
	}
	stored := 0
	for token := ""; ; {
		page := w.get("/v1/events?direction=inbound&page_size=200&page_token=" + token)
		for _, e := range page.items() {
			if l.events[e.at("external_id")] {
				stored++
			}
		}
		if token = page.at("next_page_token"); token == "" {
			break
		}
	}
	if stored != len(l.events) || stored == 0 {
		t.Errorf("%d callbacks were answered 2xx, and %d of them are in the ledger", len(l.events), stored)
	}
	t.Logf("%d submissions and %d callbacks answered 2xx, %d calls answered 503", len(l.taken), len(l.events), l.refused.Load())
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "end", said: done(c.task)}))
	w.now(op, "succeeded")
}

// gone is what callers were answered before, while and after the database was
// away.
type gone struct {
	*world
	over    atomic.Bool
	refused atomic.Int64

	mu sync.Mutex
	// taken are the operations by their keys, events the callbacks that were
	// answered 2xx, statuses those since it was last asked.
	taken    map[string]string
	events   map[string]bool
	statuses []int
}

// insist calls until it is over.
func (l *gone) insist(call func(n int) reply) {
	for n := 0; !l.over.Load(); n++ {
		r := call(n)
		switch {
		case r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") != "":
			l.refused.Add(1)
		case r.status/100 != 2:
			l.Errorf("answered %d: %s", r.status, r.body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *gone) submit(n int) reply {
	key := fmt.Sprint("gone-", n)
	r := l.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", key)
	l.note(r, func() { l.taken[key] = r.at("id") })
	return r
}

func (l *gone) event(c create, n int) reply {
	id := fmt.Sprint("gone-", n)
	r := l.callback(c.callback, event{id: id, said: said{task: c.task, state: "processing", cost: "0.6"}})
	l.note(r, func() { l.events[id] = true })
	return r
}

// note remembers the status of a call that changes something, and what was
// taken.
func (l *gone) note(r reply, take func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses = append(l.statuses, r.status)
	if r.status/100 == 2 {
		take()
	}
}

// lately reports whether both kinds of calls were answered with a status, or a
// class of it, since it last was true.
func (l *gone) lately(status int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.statuses {
		if s == status || s/100 == status {
			n++
		}
	}
	if n >= 4 {
		l.statuses = nil
	}
	return n >= 4
}

// TestO124NoConnectionDuringSlowCalls: 50 deliveries are on the wire and get no
// answer, which holds no connection and no transaction: the API and the intake
// answer as ever.
func TestO124NoConnectionDuringSlowCalls(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	w := newWorld(t, "media-v2", on(t, database), func(c *config.Config, u *config.Upstream) { u.Concurrency = 64 })
	answer := make(chan struct{})
	w.sink.script(func(int, delivery) (int, string) {
		<-answer
		return http.StatusOK, ""
	})
	defer close(answer)
	for range 10 {
		w.endpoint("types", []string{"operation.running"})
	}
	for n := range 5 {
		w.running(fmt.Sprint("slow", n))
	}
	w.eventually("50 deliveries on the wire", func() bool { return len(w.sink.attempts()) >= 50 })
	admin, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	for n := range 20 {
		began := time.Now()
		op, c := w.running(fmt.Sprint("quick", n))
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e" + c.task, said: done(c.task)}))
		w.now(op, "succeeded")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("a whole job took %v", took)
		}
		var idle int
		err := admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '1 second'`).Scan(&idle)
		if err != nil || idle != 0 {
			t.Errorf("%d sessions idle in a transaction for more than 1 s, %v", idle, err)
		}
	}
}

// TestOldTransactionIsTold: what holds back PostgreSQL's cleaning is in the
// metrics at once, and in the log by its name when it is old, not again and
// again.
func TestOldTransactionIsTold(t *testing.T) {
	var log logBuffer
	registry := prometheus.NewRegistry()
	held := postgres.Hindrance{Age: hindranceOld - time.Second, Who: "process 7 of user backup", DeadRows: 12}
	watch := &hindranceWatch{
		look:    func(context.Context) (postgres.Hindrance, error) { return held, nil },
		metrics: telemetry.NewMetrics(registry), log: telemetry.NewLogger(&log, slog.LevelInfo),
	}
	watch.once(t.Context())
	if text := log.String(); text != "" {
		t.Errorf("told of a young one: %s", text)
	}
	held.Age = hindranceOld
	watch.once(t.Context())
	watch.once(t.Context())
	if text := log.String(); strings.Count(text, "process 7 of user backup") != 1 || !strings.Contains(text, "5m0s") {
		t.Errorf("the log says %s", text)
	}
	found, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"pawl_database_oldest_transaction_seconds": 300, "pawl_database_dead_rows": 12}
	for _, family := range found {
		if v, ok := want[family.GetName()]; ok {
			if got := family.GetMetric()[0].GetGauge().GetValue(); got != v {
				t.Errorf("%s is %v, want %v", family.GetName(), got, v)
			}
			delete(want, family.GetName())
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the metrics: %v", want)
	}
}
