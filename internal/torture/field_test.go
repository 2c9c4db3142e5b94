package torture

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/sim"
)

// CalmSeed is the first one from a number on whose provider refuses no create
// that may be repeated. One that is killed in the middle of such a create repeats
// it for some minutes before it gives up, which is right and too long for a test.
func CalmSeed(from uint64, operations int) uint64 {
	for {
		plan, calm := sim.NewPlan(from, operations, sim.Options{}), true
		for n := range operations {
			script, _ := plan.Script(n)
			calm = calm && !(script.Dialect.Idempotent() && script.Create == sim.CreateRefused)
		}
		if calm {
			return from
		}
		from++
	}
}

// Three of four nodes are killed for good while they hold leases of everything
// (O-112): the one that is left takes over what they held, and all of it ends.
func TestO112OneNodeLeft(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newRun(Options{Database: os.Getenv(pgtest.Variable), Nodes: 4, Operations: 40, Seed: CalmSeed(112, 40), Out: &out, Progress: t.Output()})
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := r.close(dir, nil); err != nil {
			t.Error(err)
		}
	})
	if err := r.start(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.load.release(t.Context(), r.plan.Len()), r.load.wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, n := range r.cluster.nodes[1:] {
		n.kill()
	}
	if err := r.judge(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
