package torture

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// Three of four nodes are killed for good while they hold leases of everything
// (O-112): the one that is left takes over what they held, and all of it ends.
func TestO112OneNodeLeft(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newRun(Options{Database: os.Getenv(pgtest.Variable), Nodes: 4, Operations: 40, Seed: 112, // Nothing is refused that is repeated for minutes.
		Out: &out, Progress: t.Output()})
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
