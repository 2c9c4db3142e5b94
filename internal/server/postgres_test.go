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
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

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

// TestPostgresGone: while the database is down a callback is answered 503 with
// Retry-After and is not remembered; after its return the node goes on by itself
// within 5 s, and nothing that was answered 2xx is missing.
func TestPostgresGone(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	w := newWorld(t, "media-v2", on(t, s.URL()))
	w.endpoint()
	op, c := w.running("k")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	e := event{id: "end", said: done(c.task)}
	down := w.want(http.StatusServiceUnavailable, w.callback(c.callback, e))
	if down.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	for w.callback(c.callback, e).status != http.StatusAccepted {
		if time.Since(back) > 5*time.Second {
			t.Fatal("not recovered 5 s after the database's return")
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.now(op, "succeeded")
	w.told(op, "operation.running", "operation.succeeded")
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
