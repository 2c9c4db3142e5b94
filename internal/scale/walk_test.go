package scale_test

import (
	"context"
	"flag"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/scale"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
)

const adminKey = "pawl_sk_scale0123456789abcdef0123456789abcdef"

// most is how many rows a list looks among (docs/decisions/lists-look-so-far.md).
const most = 2_500

var operations = flag.Int("operations", 50_000, "operations in the ledgers of TestNothingGrowsWithTheLedger")

// large is one driver's ledger that is filled and walked over.
type large struct {
	// config is what the node's configuration says of where its ledger is.
	config string
	open   func(context.Context) (store.Driver, error)
	// watch begins to gather the statements, before the node over the filled
	// ledger starts; see is told what is asked for next.
	watch func(*testing.T)
	// page is what is asked for now.
	page atomic.Value
}

// TestNothingGrowsWithTheLedger fills a ledger, has a node work on it and asks
// for every page of the console and all that the API answers to GET, once. Each
// statement that the database runs meanwhile is gathered by the database itself,
// the sweeps' and the metrics' too, and none may do more than a bounded piece of
// work (issue 6). It counts rows and steps, never time.
func TestNothingGrowsWithTheLedger(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); walkSQLite(t) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); walkPostgres(t) })
}

// walk asks for everything. Every list and every page that the API describes must
// be known, and be answered.
func (l *large) walk(t *testing.T) {
	text := "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\n" + l.config + "egress: {allow: [127.0.0.0/8]}\nupstreams:\n" + scale.Settings()
	cfg, err := config.Parse("pawl.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	_, stop := serve(t, cfg)
	stop()
	l.fill(t)
	l.page.Store("the start")
	l.watch(t)
	n, stop := serve(t, cfg)
	defer stop()
	site := scale.Site{API: n.APIURL(), Admin: n.AdminURL(), Key: adminKey, Filled: time.Now()}
	if err := site.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.page.Store("the first pages of lists")
	paths, err := site.Paths(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		l.page.Store(path)
		a, err := site.Load(t.Context(), path)
		if err != nil {
			t.Fatal(path, err)
		}
		want := http.StatusOK
		if strings.Contains(path, "/search?q=nosuch") {
			want = http.StatusNotFound
		}
		if a.Status != want && a.Status != http.StatusSeeOther {
			t.Errorf("%s answers %d: %.200s", path, a.Status, a.Body)
		}
	}
	l.page.Store("the end")
}

func serve(t *testing.T, cfg config.Config) (*server.Node, func()) {
	n, err := server.Start(t.Context(), cfg, server.Options{AdminKey: adminKey})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	return n, func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func (l *large) fill(t *testing.T) {
	d, err := l.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := scale.Fill(t.Context(), d, t.TempDir(), *operations, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations were written in %s", *operations, time.Since(began).Round(time.Second))
}

// expectIdle fails where a node's own statements were not seen.
func expectIdle(t *testing.T, seen func(piece string) bool) {
	t.Helper()
	for what, piece := range map[string]string{
		"the sweep of queues": "FROM queues WHERE next_due > ", "the sweep of parked events": "parked", "the figures": "GROUP BY state",
		"the removal of old keys": "FROM idempotency_keys WHERE operation > ", "the look for ready queues": "FROM queues WHERE kind = ", "the look for waiting workers": "WITH RECURSIVE",
	} {
		if !seen(piece) {
			t.Errorf("%s was not seen: no statement has %q", what, piece)
		}
	}
}
