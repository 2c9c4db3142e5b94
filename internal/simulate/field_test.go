package simulate_test

import (
	"runtime"
	"testing"

	"github.com/pawlhq/pawl/internal/simulate"
)

// A node dies between any two steps, before, in and after a commit, in 100 runs
// (O-113): each operation has one end and each end one event, or it is visibly
// held; the simulator's books say so after each run.
func TestO113CrashAtEveryStep(t *testing.T) {
	crashes := []simulate.Fault{simulate.NodeCrash, simulate.NodeCrashCommit, simulate.CommitLost, simulate.CommitHidden}
	sum := simulate.Sweep(t.Context(), 1, 100, runtime.GOMAXPROCS(0), simulate.Options{Operations: 2, Faults: crashes}, func(r simulate.Result) {
		for _, v := range r.Violations {
			t.Errorf("%s\n    %s", r.Again(), v)
		}
	})
	for _, f := range crashes {
		if sum.Struck[f] < 20 {
			t.Errorf("%s struck %d times in %d runs", f, sum.Struck[f], sum.Seeds)
		}
	}
	t.Logf("%d runs, %d operations, %v", sum.Seeds, sum.Operations, sum.Struck)
}
