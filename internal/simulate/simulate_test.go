package simulate_test

import (
	"runtime"
	"testing"

	"github.com/pawlhq/pawl/internal/simulate"
)

// A share of what "pawl simulate --seeds 1-1000" runs.
func TestSeeds(t *testing.T) {
	sum := simulate.Sweep(t.Context(), 1, 60, runtime.GOMAXPROCS(0), simulate.Options{}, func(r simulate.Result) {
		for _, v := range r.Violations {
			t.Errorf("%s\n    %s", r.Again(), v)
		}
	})
	if sum.Seeds != 60 || sum.Operations < 300 || sum.Commands < 10_000 {
		t.Errorf("the runs came to little: %+v", sum)
	}
	for _, f := range simulate.Faults() {
		if sum.Struck[f] == 0 {
			t.Errorf("the fault %s never struck", f)
		}
	}
	t.Logf("%d operations, %d commands, %.0f a second", sum.Operations, sum.Commands, sum.PerSecond())
}

// The same seed gives the same run, to the last row: alone or beside others,
// watched or not, from what was drawn or from what the result says was drawn.
func TestSameSeedSameRun(t *testing.T) {
	const seeds = 20
	var first []simulate.Result
	simulate.Sweep(t.Context(), 1, seeds, runtime.GOMAXPROCS(0), simulate.Options{Hash: true}, func(r simulate.Result) {
		first = append(first, r)
	})
	seen := map[string]bool{}
	for i, r := range first {
		var o simulate.Options
		if i%2 == 0 {
			o = r.Options()
		}
		lines := 0
		o.Hash, o.Trace = true, func(string) { lines++ }
		if again := simulate.Run(r.Seed, o); again.Hash != r.Hash || r.Hash == "" || lines == 0 {
			t.Errorf("seed %d: %s, then %s", r.Seed, r.Hash, again.Hash)
		}
		seen[r.Hash] = true
	}
	if len(seen) != seeds {
		t.Errorf("%d seeds gave %d runs", seeds, len(seen))
	}
}

// A run without faults has none, and does what is asked all the same.
func TestCalmRun(t *testing.T) {
	r := simulate.Run(1, simulate.Options{Operations: 5, Faults: []simulate.Fault{}})
	if r.Failed() || len(r.Struck) != 0 || r.Operations != 5 || r.Commands < 50 {
		t.Errorf("%+v", r)
	}
}
