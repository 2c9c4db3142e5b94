package simulate

import (
	"slices"
	"testing"

	"github.com/pawlhq/pawl/internal/sim"
)

// A failure that needs three operations and two faults is brought down to them.
func TestShrink(t *testing.T) {
	run := func(seed uint64, o Options) Result {
		r := Result{Seed: seed, Operations: o.Operations, Faults: o.Faults, Struck: map[Fault]int{}}
		for _, f := range o.Faults {
			r.Struck[f] = 1
		}
		switch {
		case o.Operations >= 3 && slices.Contains(o.Faults, NodeCrash) && slices.Contains(o.Faults, sim.CreateLost):
			r.Violations = []Violation{{"rule", "detail"}}
		case o.Operations == 2:
			r.Violations = []Violation{{"another rule", "detail"}}
		}
		return r
	}
	told := 0
	failing := run(7, Options{Operations: 20, Faults: Faults()})
	got := shrink(failing, run, func(Result) { told++ })
	if got.Seed != 7 || got.Operations != 3 || !slices.Equal(got.Faults, []Fault{NodeCrash, sim.CreateLost}) {
		t.Errorf("%d operations, faults %v", got.Operations, got.Faults)
	}
	if told == 0 {
		t.Error("nothing was told")
	}
	if want := "pawl simulate --seed 7 --operations 3 --faults node_crash,create_lost"; got.Again() != want {
		t.Errorf("%q, want %q", got.Again(), want)
	}
	if good := run(7, Options{Operations: 1}); shrink(good, run, nil).Operations != 1 {
		t.Error("a good run was changed")
	}
}

func TestAgainWithoutFaults(t *testing.T) {
	want := "pawl simulate --seed 1 --operations 2 --faults none"
	if got := (Result{Seed: 1, Operations: 2}).Again(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
