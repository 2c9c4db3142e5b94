package simulate

import (
	"fmt"
	"strings"
	"time"
)

// Options say what a run consists of beside its seed.
type Options struct {
	// Operations is how many jobs the applications have; 0 draws.
	Operations int
	// Faults are those that may happen; nil draws a choice. An empty list lets
	// none happen.
	Faults []Fault
	// Hash says that [Result.Hash] is wanted.
	Hash bool
	// Trace is told what happens, a line at a time; nil drops it.
	Trace func(line string)
}

// Violation is one thing that a run found wrong.
type Violation struct {
	// Rule is what does not hold, in words.
	Rule string
	// Detail says what was found.
	Detail string
}

// String is the violation in one line.
func (v Violation) String() string { return v.Rule + ": " + strings.ReplaceAll(v.Detail, "\n", " | ") }

// Result is what one run came to.
type Result struct {
	Seed uint64
	// Operations and Faults are what the run consisted of: with them in the
	// options, the same seed gives the same run.
	Operations int
	Faults     []Fault
	// Violations are what was found wrong, each rule once; none is a good run.
	Violations []Violation
	// Struck counts the faults that happened.
	Struck map[Fault]int
	// Commands, Commits and Steps count what the ledger decided, in how many
	// transactions, and what happened in all.
	Commands, Commits, Steps int
	// Virtual is how much time passed in the run, Took how long it took.
	Virtual, Took time.Duration
	// Hash is the hexadecimal SHA-256 of every row in the order of its writing,
	// where Options.Hash asked for it.
	Hash string
}

// Failed reports whether anything was found wrong.
func (r Result) Failed() bool { return len(r.Violations) > 0 }

// Options are those that give this run again.
func (r Result) Options() Options { return Options{Operations: r.Operations, Faults: r.Faults} }

// Again is the command line that repeats the run.
func (r Result) Again() string {
	words := make([]string, len(r.Faults))
	for i, f := range r.Faults {
		words[i] = string(f)
	}
	return fmt.Sprintf("pawl simulate --seed %d --operations %d --faults %s", r.Seed, r.Operations, strings.Join(append(words, "none")[:max(1, len(words))], ","))
}
