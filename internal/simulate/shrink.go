package simulate

import "slices"

// Shrink looks for a smaller run that fails by the same rule as a failing one:
// fewer operations, fewer faults. It tells of each that it finds, and gives the
// smallest.
func Shrink(failing Result, tell func(Result)) Result { return shrink(failing, Run, tell) }

func shrink(failing Result, run func(uint64, Options) Result, tell func(Result)) Result {
	if !failing.Failed() {
		return failing
	}
	s := shrinker{rule: failing.Violations[0].Rule, best: failing, run: run, tell: tell}
	for {
		before := s.best
		s.operations()
		s.faults()
		if s.best.Operations == before.Operations && len(s.best.Faults) == len(before.Faults) {
			return s.best
		}
	}
}

type shrinker struct {
	rule string
	best Result
	run  func(uint64, Options) Result
	tell func(Result)
}

// try runs other options and keeps the run if it fails by the rule.
func (s *shrinker) try(operations int, faults []Fault) bool {
	r := s.run(s.best.Seed, Options{Operations: operations, Faults: faults, Hash: s.best.Hash != ""})
	if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == s.rule }) {
		return false
	}
	s.best = r
	s.tell(r)
	return true
}

// operations takes the fewest with which it still fails.
func (s *shrinker) operations() {
	for n := 1; n < s.best.Operations; n++ {
		if s.try(n, s.best.Faults) {
			return
		}
	}
}

// faults leaves out what is not needed: first those that never struck, then
// one after the other.
func (s *shrinker) faults() {
	struck := slices.DeleteFunc(slices.Clone(s.best.Faults), func(f Fault) bool { return s.best.Struck[f] == 0 })
	if len(struck) < len(s.best.Faults) {
		s.try(s.best.Operations, slices.Concat([]Fault{}, struck))
	}
	for _, f := range slices.Clone(s.best.Faults) {
		s.try(s.best.Operations, slices.DeleteFunc(slices.Concat([]Fault{}, s.best.Faults), func(g Fault) bool { return g == f }))
	}
}
