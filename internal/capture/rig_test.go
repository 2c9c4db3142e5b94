package capture

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

// rig is a capturer over a ledger in memory, whose one upstream is "up", and a
// server of files.
type rig struct {
	*testing.T
	driver  *memory.Store
	store   *store.Committer
	up      upstream.Upstream
	set     upstream.Set
	options Options
	c       *Capturer
	log     *strings.Builder
	n       int
	// tenant has the operations that are made.
	tenant string
	// hold has results withheld.
	hold bool
}

// allowed lets the tests' servers be reached.
var allowed = netip.MustParsePrefix("127.0.0.0/8")

func newRig(t *testing.T, allow ...netip.Prefix) *rig {
	t.Helper()
	g := &rig{T: t, tenant: "acme", driver: memory.New(memory.Options{}), log: new(strings.Builder)}
	g.store = store.NewCommitter(g.driver, store.Options{})
	t.Cleanup(func() { _ = g.store.Close() })
	spec, ok := upstream.Preset("sim")
	if !ok {
		t.Fatal("no preset sim")
	}
	settings := config.DefaultUpstream()
	settings.BaseURL = "http://127.0.0.1:1"
	var err error
	if g.up, err = upstream.New("up", spec, settings); err != nil {
		t.Fatal(err)
	}
	g.set = upstream.Set{"up": g.up}
	policy, err := egress.NewPolicy(allow...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := OpenFolder(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	g.options = Options{
		Store: g.store, Reader: g.driver, Client: egress.NewClient(policy, egress.Options{}), Upstreams: g.set, Files: files,
		Spool: filepath.Join(dir, "spool"), MaxSize: 64 << 20, Concurrency: 4, PerHost: 4, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Agent: "Pawl/test",
	}
	g.restart()
	return g
}

// restart makes the capturer of a new life over the same folders.
func (g *rig) restart() {
	g.Helper()
	var err error
	if g.c, err = New(g.options); err != nil {
		g.Fatal(err)
	}
}

func (g *rig) do(cmd ledger.Command) any {
	g.Helper()
	out, err := g.store.Do(g.Context(), cmd)
	if err != nil || out.Err != nil {
		g.Fatalf("%T: %v %v", cmd, err, out.Err)
	}
	return out.Value
}

func head() ledger.Header { return store.NewHeader("") }

// succeed makes an operation that has succeeded with these links in its result.
func (g *rig) succeed(links ...string) ledger.Operation {
	g.Helper()
	g.n++
	g.do(ledger.EnsureTenant{Header: head(), Name: g.tenant})
	policy := g.up.Policy()
	var key ledger.Digest
	_, _ = rand.Read(key[:])
	op := g.do(ledger.Submit{
		Header: head(), Tenant: g.tenant, Key: fmt.Sprint("k", g.n), Fingerprint: key, Window: time.Hour, Up: policy, Input: "{}",
		Deadline: pawl.TimeOf(time.Now().Add(time.Hour)), Hold: g.hold,
	}).(ledger.Submitted).Operation
	l := g.do(ledger.LeaseWork{Header: head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, "up", g.tenant), Limit: 1, Up: policy}).([]ledger.Lease)[0]
	task := fmt.Sprint("task", g.n)
	g.do(ledger.RecordCreate{Header: head(), Up: policy, Operation: op.ID, Fence: l.Fence, Outcome: ledger.CreateAccepted, Task: task})
	g.tell(op.ID, task, links...)
	return g.operation(op.ID)
}

// tell has the provider report the success.
func (g *rig) tell(op pawl.ID, task string, links ...string) {
	g.Helper()
	result := "{}"
	if len(links) > 0 {
		result = `{"files":["` + strings.Join(links, `","`) + `"]}`
	}
	g.do(ledger.ReceiveEvent{Header: head(), Up: g.up.Policy(), Token: op, Event: fmt.Sprint("e", time.Now().UnixNano()), Obs: ledger.Observation{
		Task: task, Word: "succeeded", State: pawl.Succeeded, Progress: -1, Result: result,
	}})
}

func (g *rig) operation(id pawl.ID) ledger.Operation {
	g.Helper()
	rows := new(ledger.Rows)
	if err := g.driver.Load(g.Context(), &ledger.Keys{Operations: []pawl.ID{id}}, rows); err != nil {
		g.Fatal(err)
	}
	op, _ := rows.Operations.Get(id)
	return op
}

// artifacts are an operation's, in the order of its result.
func (g *rig) artifacts(op pawl.ID) []ledger.Artifact {
	g.Helper()
	rows := new(ledger.Rows)
	if err := g.driver.Load(g.Context(), &ledger.Keys{ArtifactSets: []pawl.ID{op}}, rows); err != nil {
		g.Fatal(err)
	}
	return rows.ArtifactsOf(op)
}

// turn claims what is due and carries it out.
func (g *rig) turn() int {
	g.Helper()
	jobs, err := g.c.Claim(g.Context(), time.Now())
	if err != nil {
		g.Fatal(err)
	}
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(func() { g.c.Do(context.WithoutCancel(g.Context()), j) })
	}
	all.Wait()
	return len(jobs)
}

// capture carries out one artifact's captures until it has come to an end, or so
// many tries are over.
func (g *rig) capture(link string, tries int) ledger.Artifact {
	g.Helper()
	op := g.succeed(link)
	for range tries {
		a := g.artifacts(op.ID)[0]
		if a.State != pawl.ArtifactPending {
			return a
		}
		time.Sleep(time.Until(a.DueAt.Std()))
		g.turn()
	}
	return g.artifacts(op.ID)[0]
}

// content is what our copy of an artifact holds.
func (g *rig) content(a ledger.Artifact) string {
	g.Helper()
	r, ok, err := g.options.Files.open(g.Context(), a.Key())
	if err != nil || !ok {
		g.Fatalf("no copy: %v", err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		g.Fatal(err)
	}
	return string(text)
}

// whole insists on a captured artifact with this content.
func (g *rig) whole(a ledger.Artifact, want string) {
	g.Helper()
	if a.State != pawl.ArtifactCaptured || a.Size != int64(len(want)) || a.SHA256 != sha256.Sum256([]byte(want)) {
		g.Fatalf("%s: %d bytes %x: %s", a.State, a.Size, a.SHA256, a.LastError)
	}
	if got := g.content(a); got != want {
		g.Errorf("the copy has %d bytes", len(got))
	}
}

// serve is a server of files on the loopback.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
