package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
)

// drill is a provider, a receiver and a database that nodes of two versions of
// the program share.
type drill struct {
	t        *testing.T
	dir, url string
	provider string
	plan     sim.Plan
	sim      *sim.Server
	receiver *sim.Receiver
	answered map[int]string
}

// program builds pawl; with the tag it knows the first schema alone, as the first
// release did.
func (d *drill) program(name string, flags ...string) string {
	path := filepath.Join(d.dir, name)
	cmd := exec.CommandContext(d.t.Context(), "go", append(append([]string{"build", "-trimpath", "-o", path}, flags...), ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("build: %v: %s", err, out)
	}
	return path
}

// node is a node of the drill that was not started yet.
func (d *drill) node(name, program string) *process {
	k := &process{
		t: d.t, dir: d.dir, program: program, listen: anyPort, plan: d.plan, sim: d.sim, receiver: d.receiver, answered: d.answered,
		client: &http.Client{Timeout: 20 * time.Second}, config: filepath.Join(d.dir, name+".yaml"),
	}
	text := strings.Replace(k.configuration(d.provider), filepath.Join(d.dir, "data"), filepath.Join(d.dir, name), 1)
	text += fmt.Sprintf("database: %q\nsecrets: base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n", d.url)
	if err := os.WriteFile(k.config, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return k
}

func newDrill(t *testing.T, operations int) *drill {
	d := &drill{t: t, dir: t.TempDir(), answered: map[int]string{}, plan: sim.NewPlan(7, operations, sim.Options{Without: sim.Faults()})}
	server, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	d.url = server.URL()
	if d.sim, err = sim.NewServer(d.plan, sim.Config{Speed: 8}); err != nil {
		t.Fatal(err)
	}
	if d.provider, err = d.sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.sim.Close() })
	if d.receiver, err = sim.NewReceiver(sim.ReceiverConfig{Secrets: []string{killSecret}}); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestUpgradeDrill: data that a program wrote which knows the first schema alone;
// the schema is brought up while its node runs; nodes of both versions at once;
// then all new. Nothing is lost, created twice or left lying, and the old one is
// not let in again.
func TestUpgradeDrill(t *testing.T) {
	const part = 8
	d := newDrill(t, 4*part)
	ctx := t.Context()
	sink, err := d.receiver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.receiver.Close() })
	was, now := d.program("old", "-tags=pawl_first_schema"), d.program("new")
	status := func() string {
		out, err := exec.CommandContext(ctx, now, "migrate", "status", "--database", d.url).CombinedOutput()
		if err != nil {
			t.Fatalf("migrate status: %v: %s", err, out)
		}
		return string(out)
	}
	submit := func(k *process, from int) {
		for n := from; n < from+part; n++ {
			k.submit(ctx, n)
		}
	}

	old := d.node("first", was)
	old.start(ctx)
	old.post("/v1/endpoints", "", map[string]any{"url": sink + "/outcomes", "secret": killSecret}, nil)
	submit(old, 0)
	if s := status(); !strings.Contains(s, "0002_copies.sql          pending") {
		t.Errorf("before: %s", s)
	}
	if out, err := exec.CommandContext(ctx, now, "migrate", "up", "--database", d.url).CombinedOutput(); err != nil {
		t.Fatalf("migrate up beside an older node: %v: %s", err, out)
	}
	if s := status(); strings.Contains(s, "pending") {
		t.Errorf("after: %s", s)
	}
	second := d.node("second", now)
	second.start(ctx)
	submit(old, part)
	submit(second, 2*part)
	old.stop()

	out, err := exec.CommandContext(ctx, was, "serve", "--config", old.config, "--listen", anyPort).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "run the version of Pawl that brought it there, or a newer one") {
		t.Errorf("the old one was started again: %v: %s", err, out)
	}
	third := d.node("third", now)
	third.start(ctx)
	submit(third, 3*part)
	second.settle(ctx)
	second.stop()
	third.stop()
	d.compare(ctx)
}

// compare holds the ledger against its rules and the provider's books.
func (d *drill) compare(ctx context.Context) {
	for _, op := range d.sim.Snapshot().Operations {
		if len(op.Tasks) != 1 {
			d.t.Errorf("operation %d has %d tasks at the provider", op.N, len(op.Tasks))
		}
	}
	reader, err := postgres.OpenReadOnly(ctx, d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	defer reader.Close()
	sum, err := store.Check(ctx, reader, func(v ledger.Violation) error {
		d.t.Errorf("%s: %s: %s", v.Row, v.Rule, v.Detail)
		return nil
	}, nil)
	if err != nil || sum.Operations != d.plan.Len() {
		d.t.Errorf("%d operations in the ledger, want %d; %v", sum.Operations, d.plan.Len(), err)
	}
}
