package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// openTest opens the ledger in a database; it is closed at the test's end.
func openTest(t testing.TB, url string) *Driver {
	t.Helper()
	d, err := Open(context.Background(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func testID(n int) pawl.ID { return pawl.NewID(pawl.Time(1_760_000_000_000_000+n), uint64(n)) }

// one is what a query for a number gives.
func one(t testing.TB, d *Driver, sql string, args ...value) (n int64) {
	t.Helper()
	err := d.each(context.Background(), "ask", sql, args, func(row [][]byte) error {
		n = fromInt(row[0])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// execute runs a statement that the driver has not.
func execute(t testing.TB, d *Driver, sql string) {
	t.Helper()
	err := d.writers.use(context.Background(), func(c *conn) error { return c.exec(context.Background(), sql) })
	if err != nil {
		t.Fatal(err)
	}
}

// deadlocks are those of the database so far.
func deadlocks(t testing.TB, d *Driver) int64 {
	t.Helper()
	// Sessions report once a second at most.
	time.Sleep(1100 * time.Millisecond)
	return one(t, d, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
}

// run decides commands and fails the test at the first that is refused.
func run(t testing.TB, b *store.Batcher, commands ...ledger.Command) []ledger.Outcome {
	t.Helper()
	outs := make([]ledger.Outcome, 0, len(commands))
	for i, r := range b.Run(context.Background(), commands...) {
		if r.Err != nil || r.Outcome.Err != nil {
			t.Fatalf("command %d, %T: %v %v", i, commands[i], r.Err, r.Outcome.Err)
		}
		outs = append(outs, r.Outcome)
	}
	return outs
}

// check holds the ledger against its rules.
func check(t testing.TB, d *Driver) {
	t.Helper()
	_, err := store.Check(context.Background(), d, func(v ledger.Violation) error {
		t.Errorf("%s: %s: %s", v.Rule, v.Row, v.Detail)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// gated is a driver whose transactions stop between the save and the commit.
type gated struct {
	*Driver
	before func()
}

// Update is the driver's own with the stop in it.
func (g *gated) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	return g.Driver.Update(ctx, batch, func(tx store.Tx) error {
		err := fn(tx)
		if err == nil && g.before != nil {
			g.before()
		}
		return err
	})
}

// blocked waits until a session of the database waits for a lock.
func blocked(t testing.TB, d *Driver) {
	for began := time.Now(); time.Since(began) < 5*time.Second; {
		n := one(t, d, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if n > 0 {
			return
		}
	}
	t.Error("nobody waits for a lock: the two did not meet")
}

// meet runs first on one driver up to its commit, then second on the other
// until it waits, and lets both end.
func meet(t testing.TB, a, b *Driver, first, second ledger.Command) (ledger.Outcome, ledger.Outcome) {
	t.Helper()
	saved := make(chan struct{})
	var once sync.Once
	g := &gated{Driver: a, before: func() {
		once.Do(func() {
			close(saved)
			blocked(t, a)
		})
	}}
	results := make(chan []store.Result, 1)
	go func() { results <- store.NewBatcher(g, store.Options{}).Run(context.Background(), first) }()
	<-saved
	later := store.NewBatcher(b, store.Options{}).Run(context.Background(), second)
	earlier := <-results
	for _, r := range append(earlier, later...) {
		if r.Err != nil || r.Outcome.Err != nil {
			t.Fatal(r.Err, r.Outcome.Err)
		}
	}
	return earlier[0].Outcome, later[0].Outcome
}

var upstream = ledger.Upstream{
	Name: "studio", Adapter: "studio/1", Callbacks: true, Reads: true, ReadFirst: 2 * time.Second, ReadMax: 15 * time.Second,
	ReadFactor: 1500, ReadSpacing: 100 * time.Millisecond, Concurrency: 8, Timeout: 30 * time.Second, SubmitAttempts: 5,
	SettleWithin: 24 * time.Hour, ParkOrphans: true, OrphanGrace: 15 * time.Minute, OrphanLimit: 100_000, Owner: "media team",
}

func submission(n int) ledger.Submit {
	return ledger.Submit{
		Header: store.NewHeader(""), Tenant: "acme", APIKey: testID(1), Key: fmt.Sprint("key ", n), Fingerprint: ledger.Digest{1},
		Window: 24 * time.Hour, Up: upstream, Model: "m", Input: "{}", Deadline: pawl.TimeOf(time.Now().Add(time.Hour)),
		Metered: true, Price: pawl.Money{Amount: 1000, Currency: "USD"},
	}
}

func callback(n int) ledger.ReceiveEvent {
	return ledger.ReceiveEvent{
		Header: store.NewHeader(""), Up: upstream, Event: fmt.Sprint("event ", n), Type: "task.updated", Body: "body", Digest: ledger.Digest{1},
		Obs: ledger.Observation{Task: fmt.Sprint("task ", n), Word: "done", State: pawl.Succeeded, Progress: -1, Result: "{}"},
	}
}

// prepare gives a ledger a tenant with money and n submitted operations, whose
// creates are leased.
func prepare(t testing.TB, d *Driver, n int) []ledger.Lease {
	t.Helper()
	b := store.NewBatcher(d, store.Options{Patience: time.Minute})
	run(t, b, ledger.EnsureTenant{Header: store.NewHeader(""), Name: "acme", Currency: "USD", Opening: 1_000_000_000})
	for from := 0; from < n; from += 200 {
		var batch []ledger.Command
		for i := from; i < min(n, from+200); i++ {
			batch = append(batch, submission(i))
		}
		run(t, b, batch...)
	}
	out := run(t, b, ledger.LeaseWork{
		Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.SubmitQueue, upstream.Name, "acme"), Limit: n, Up: upstream,
	})
	leases, _ := out[0].Value.([]ledger.Lease)
	if len(leases) != n {
		t.Fatalf("%d creates leased, want %d", len(leases), n)
	}
	return leases
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// logged takes what a committer logs.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write keeps a line.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is everything that was logged.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
