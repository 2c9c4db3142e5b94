package torture_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/torture"
)

// nodeVariable makes the test binary the program that is tortured.
const nodeVariable = "PAWL_TORTURE_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(nodeVariable) != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.System()))
	}
	if err := os.Setenv(nodeVariable, "1"); err != nil {
		panic(err)
	}
	os.Exit(pgtest.Main(m))
}

// suffer runs a torture and wants all invariants to hold.
func suffer(t *testing.T, o torture.Options) {
	t.Helper()
	var out bytes.Buffer
	o.Out, o.Progress = &out, t.Output()
	err := torture.Run(t.Context(), o)
	t.Logf("%s", out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 holds", "2 holds", "3 holds", "4 holds", "5 holds", "6 holds"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// Three nodes on one PostgreSQL, which is killed and restarted too: nothing is
// lost, nothing happens twice.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	suffer(t, torture.Options{
		Database: s.URL(), Nodes: 3, Operations: 100, Faults: 12, Seed: torture.CalmSeed(3, 100),
		Restart: func(ctx context.Context) error { return errors.Join(s.Kill(), s.Restart(ctx)) },
	})
}

// The same behind a pooler that hands out connections for one transaction.
func TestTwoNodesBehindAPooler(t *testing.T) {
	t.Parallel()
	suffer(t, torture.Options{
		Database: pgtest.Pooled(t, os.Getenv(pgtest.Variable)), Nodes: 2, Operations: 40, Faults: 5, Seed: torture.CalmSeed(11, 40),
	})
}

// One node on SQLite is killed while it works, while it starts and while it
// drains, stands still, and cannot write.
func TestOneNode(t *testing.T) {
	t.Parallel()
	suffer(t, torture.Options{Operations: 80, Faults: 8, Seed: torture.CalmSeed(1, 80)})
}

// Every kind of fault is in a plan that is long enough, and the seed alone
// decides.
func TestPlanIsTheSeed(t *testing.T) {
	kinds := []torture.Fault{torture.Kill, torture.Freeze, torture.Cut, torture.Stop}
	plan := torture.Plan(5, 40, 3, kinds)
	if again := torture.Plan(5, 40, 3, kinds); !slices.Equal(plan, again) {
		t.Error("the same seed gives another plan")
	}
	if other := torture.Plan(6, 40, 3, kinds); slices.Equal(plan, other) {
		t.Error("another seed gives the same plan")
	}
	if longer := torture.Plan(5, 80, 3, kinds); !slices.Equal(plan, longer[:40]) {
		t.Error("a longer plan begins otherwise")
	}
	times := make(map[torture.Fault]int)
	for _, s := range plan {
		times[s.Fault]++
		if s.Node < 0 || s.Node > 2 || s.After <= 0 {
			t.Errorf("%+v", s)
		}
		if s.Fault == torture.Freeze && s.For <= 17*time.Second {
			t.Errorf("frozen for %s: no lease runs out in that", s.For)
		}
	}
	// Each round of the deck is the four kinds and one more kill.
	if times[torture.Kill] != 16 || times[torture.Freeze] != 8 || times[torture.Cut] != 8 || times[torture.Stop] != 8 {
		t.Errorf("%v", times)
	}
}

// An interrupt ends every process that was started, and removes what they left.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var told bytes.Buffer
	watch := writer(func(b []byte) {
		told.Write(b)
		if bytes.Contains(b, []byte("fault 1 of")) {
			cancel()
		}
	})
	err := torture.Run(ctx, torture.Options{Operations: 20, Faults: 5, Seed: 1, Out: &told, Progress: watch})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v\n%s", err, told.String())
	}
	if strings.Contains(told.String(), "kept") {
		t.Errorf("something is kept after an interrupt:\n%s", told.String())
	}
	_, pid, found := strings.Cut(told.String(), "node 1 is process ")
	if pid, _, _ = strings.Cut(pid, "\n"); !found {
		t.Fatal(told.String())
	}
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Errorf("process %s is still there", pid)
	}
}

type writer func([]byte)

// Write implements [io.Writer].
func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}
