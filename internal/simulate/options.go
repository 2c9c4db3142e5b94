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
	Rule string `json:"rule"`
	// Detail says what was found.
	Detail string `json:"detail"`
}

// String is the violation in one line.
func (v Violation) String() string { return v.Rule + ": " + strings.ReplaceAll(v.Detail, "\n", " | ") }

// Result is what one run came to.
type Result struct {
	Seed uint64 `json:"seed"`
	// Operations and Faults are what the run consisted of: with them in the
	// options, the same seed gives the same run.
	Operations int     `json:"operations"`
	Faults     []Fault `json:"faults"`
	// Violations are what was found wrong, each rule once; none is a good run.
	Violations []Violation `json:"violations"`
	// Struck counts the faults that happened.
	Struck map[Fault]int `json:"struck"`
	// Commands, Commits and Steps count what the ledger decided, in how many
	// transactions, and what happened in all.
	Commands int `json:"commands"`
	Commits  int `json:"commits"`
	Steps    int `json:"steps"`
	// Virtual is how much time passed in the run, Took how long it took.
	Virtual time.Duration `json:"virtual_ns"`
	Took    time.Duration `json:"took_ns"`
	// Hash is the hexadecimal SHA-256 of every row in the order of its writing,
	// where Options.Hash asked for it.
	Hash string `json:"hash,omitempty"`
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
