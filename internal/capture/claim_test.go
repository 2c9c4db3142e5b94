package capture

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

var onePage = store.Page{Limit: 1}

// deadStore is the store of a process that is no more.
type deadStore struct{}

var errDead = errors.New("dead")

func (deadStore) Do(context.Context, ledger.Command) (ledger.Outcome, error) {
	return ledger.Outcome{}, errDead
}

func (deadStore) DoAll(_ context.Context, c ...ledger.Command) []store.Result {
	return make([]store.Result, len(c))
}

// trust lets the capturer believe a test's certificate.
func (g *rig) trust(s *httptest.Server) {
	g.Helper()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	g.options.Client = egress.NewClient(g.options.Client.Policy(), egress.Options{RootCAs: roots})
	g.restart()
}

// A link that ends in ten minutes is fetched before ten thousand that end in a
// day, although it came last (O-075).
func TestO075EarliestEndFirst(t *testing.T) {
	g := newRig(t, allowed)
	day, soon := time.Now().Add(24*time.Hour).Unix(), time.Now().Add(10*time.Minute).Unix()
	for n := range 157 {
		var links []string
		for i := range 64 {
			if n*64+i < 10_000 {
				links = append(links, fmt.Sprintf("http://127.0.0.1:1/%d/%d?Expires=%d", n, i, day))
			}
		}
		g.succeed(links...)
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("urgent")) })
	op := g.succeed(fmt.Sprintf("%s/x?Expires=%d", url, soon))
	stats, err := g.driver.Stats(t.Context())
	if err != nil || stats.ArtifactsWaiting != 10_001 || stats.FirstLinkEnd != pawl.TimeOf(time.Unix(soon, 0)) {
		t.Fatalf("%+v %v", stats, err)
	}
	g.options.Concurrency = 1
	g.restart()
	g.turn()
	g.whole(g.artifacts(op.ID)[0], "urgent")
}

// A host that has no slot left holds nobody else up.
func TestFullHostHoldsNobodyUp(t *testing.T) {
	g := newRig(t, allowed)
	g.options.Concurrency, g.options.PerHost = 5, 2
	g.restart()
	var links []string
	for n := range 20 {
		links = append(links, fmt.Sprintf("http://127.0.0.1:1/%d?Expires=%d", n, time.Now().Add(time.Hour).Unix()))
	}
	g.succeed(links...)
	g.succeed("http://127.0.0.2:1/a", "http://127.0.0.2:1/b", "http://127.0.0.2:1/c", "http://127.0.0.3:1/a")
	jobs, err := g.c.Claim(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]int{}
	for _, j := range jobs {
		hosts[j.artifact.Host]++
	}
	if len(jobs) != 5 || hosts["127.0.0.1:1"] != 2 || hosts["127.0.0.2:1"] != 2 || hosts["127.0.0.3:1"] != 1 {
		t.Errorf("%v", hosts)
	}
	if more, err := g.c.Claim(t.Context(), time.Now()); err != nil || len(more) != 0 {
		t.Errorf("%d more, %v", len(more), err)
	}
	for _, j := range jobs {
		g.c.Do(context.WithoutCancel(t.Context()), j)
	}
	if free, full, _ := g.c.slots.free(); free != 5 || len(full) != 0 {
		t.Errorf("%d free, %v full", free, full)
	}
}

// Nothing is claimed while the disk is nearly full.
func TestFullDiskFetchesNothing(t *testing.T) {
	g := newRig(t, allowed)
	full := true
	g.options.Full = func() bool { return full }
	g.restart()
	g.succeed("http://127.0.0.1:1/x")
	if n := g.turn(); n != 0 {
		t.Errorf("%d claims", n)
	}
	full = false
	if n := g.turn(); n != 1 {
		t.Errorf("%d claims", n)
	}
}

// A server that stalls is given up after a while, and does not hold a slot for
// ever.
func TestStalledServer(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("abc"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	g := newRig(t, allowed)
	g.c.stall = 50 * time.Millisecond
	a := g.capture(url, 1)
	if a.State != pawl.ArtifactPending || a.LastError != "nothing came for a while: 3 bytes of an unknown number" {
		t.Errorf("%s: %s", a.State, a.LastError)
	}
}

// A copy that nobody needed is removed, and spool files of what is done are.
func TestTidy(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("abc")) })
	g := newRig(t, allowed)
	a := g.capture(url, 1)
	f, err := g.c.spool.open(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	g.c.tidy(t.Context())
	if _, err := g.c.spool.open(a.ID); !errors.Is(err, errBusy) {
		t.Errorf("a second writer: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g.c.tidy(t.Context())
	if left, _ := filepath.Glob(filepath.Join(g.options.Spool, "*")); len(left) != 0 {
		t.Errorf("left: %s", strings.Join(left, " "))
	}
}
