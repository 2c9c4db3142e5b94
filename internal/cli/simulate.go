package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/simulate"
)

type simulateCmd struct {
	Seeds      string `help:"Run these seeds." placeholder:"FIRST-LAST" default:"1-100"`
	Seed       uint64 `help:"Run this seed alone." placeholder:"N"`
	Operations int    `help:"How many jobs there are; each seed draws its own number if it is left out." placeholder:"N"`
	Faults     string `help:"The faults that may happen, separated by commas, or \"none\"; each seed draws its own if it is left out." placeholder:"LIST"`
	Shrink     bool   `help:"Make each failing run small: fewer operations, fewer faults."`
	Hash       bool   `help:"Print the SHA-256 of all that each run wrote."`
	Trace      bool   `help:"Print what happens in the run of --seed, a line at a time."`
	Workers    int    `help:"How many runs go on side by side; as many as there are processors if it is left out." placeholder:"N"`
}

// Help teaches by example, and lists the faults.
func (simulateCmd) Help() string {
	var words []string
	for _, f := range simulate.Faults() {
		words = append(words, string(f))
	}
	return `Whole life cycles in virtual time: several nodes on a ledger in memory, played providers and receivers with books of their own, people who decide, clocks that jump, and faults between any two steps. At the end of each run the ledger is checked against its own rules and against those books. The program's own steps are run; only network, clocks and database are played. The same seed gives the same run.

A run that breaks a rule prints the command line that repeats it, and the rule. Exit status 1 if any did.

Faults: ` + strings.Join(words, ", ") + `

` + examples(`pawl simulate --seeds 1-1000`, `pawl simulate --seed 17 --trace`, `pawl simulate --seeds 1-1000 --shrink`, `pawl simulate --seed 17 --operations 3 --faults node_crash,commit_unknown`)
}

func (c *simulateCmd) Run(s *session) error {
	first, last, err := c.seeds()
	if err != nil {
		return err
	}
	options := simulate.Options{Operations: c.Operations, Hash: c.Hash}
	if options.Faults, err = parseFaults(c.Faults); err != nil {
		return err
	}
	if c.Operations < 0 {
		return usage("--operations must not be negative")
	}
	if c.Trace {
		if first != last {
			return usage("--trace needs one --seed: many runs at once cannot be read")
		}
		options.Trace = func(line string) { fmt.Fprintln(s.Stdout, plain(line)) }
	}
	told := sweepProgress{s: s, total: last - first + 1, next: time.Now().Add(progressEvery)}
	sum := simulate.Sweep(s.ctx, first, last, cmp.Or(c.Workers, runtime.GOMAXPROCS(0)), options, func(r simulate.Result) {
		c.tell(s, r)
		told.step(r)
	})
	if s.flags.JSON {
		line, err := encode(sum)
		if err != nil {
			return err
		}
		if err := s.print(string(line) + "\n"); err != nil {
			return err
		}
	} else if err := s.print(summary(sum)); err != nil {
		return err
	}
	if sum.Failed > 0 {
		return errShown
	}
	return s.ctx.Err()
}

// seeds are those to run.
func (c *simulateCmd) seeds() (first, last uint64, err error) {
	if c.Seed != 0 {
		return c.Seed, c.Seed, nil
	}
	from, to, ok := strings.Cut(c.Seeds, "-")
	if !ok {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 64)
	last, err2 := strconv.ParseUint(to, 10, 64)
	if err1 != nil || err2 != nil || first == 0 || last < first {
		return 0, 0, usage("--seeds must be a range such as 1-1000")
	}
	return first, last, nil
}

// parseFaults reads a list of faults; nil for none given.
func parseFaults(text string) ([]simulate.Fault, error) {
	if text == "" {
		return nil, nil
	}
	faults := []simulate.Fault{}
	if text == "none" {
		return faults, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		f := simulate.Fault(strings.TrimSpace(word))
		if !slices.Contains(simulate.Faults(), f) {
			return nil, usage("--faults: there is no fault %q; \"pawl simulate --help\" lists them", word)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// tell prints what a person wants to know of one run.
func (c *simulateCmd) tell(s *session, r simulate.Result) {
	if c.Hash && !s.flags.JSON {
		fmt.Fprintf(s.Stdout, "seed %d %s\n", r.Seed, r.Hash)
	}
	if s.flags.JSON && (c.Hash || r.Failed()) {
		defer func() {
			if line, err := encode(r); err == nil {
				fmt.Fprintf(s.Stdout, "%s\n", line)
			}
		}()
	}
	if !r.Failed() {
		return
	}
	if c.Shrink {
		s.say("seed %d fails; making it smaller", r.Seed)
		r = simulate.Shrink(r, func(r simulate.Result) {
			s.say("seed %d still fails with %d operations and %d faults", r.Seed, r.Operations, len(r.Faults))
		})
	}
	if s.flags.JSON {
		return
	}
	fmt.Fprintf(s.Stdout, "FAILED: %s\n", r.Again())
	for _, v := range r.Violations {
		fmt.Fprintf(s.Stdout, "    %s\n", plain(v.String()))
	}
}

// progressEvery is how often the progress is told.
const progressEvery = 5 * time.Second

type sweepProgress struct {
	s             *session
	total         uint64
	done, failed  uint64
	next          time.Time
	commands, ops int
}

func (p *sweepProgress) step(r simulate.Result) {
	p.done++
	p.commands += r.Commands
	p.ops += r.Operations
	if r.Failed() {
		p.failed++
	}
	if time.Now().After(p.next) {
		p.next = time.Now().Add(progressEvery)
		p.s.say("%d of %d seeds, %d failed, %d operations, %d commands", p.done, p.total, p.failed, p.ops, p.commands)
	}
}

// summary is the last line.
func summary(sum simulate.Summary) string {
	var faults []string
	for _, f := range simulate.Faults() {
		if n := sum.Struck[f]; n > 0 {
			faults = append(faults, fmt.Sprintf("%s %d", f, n))
		}
	}
	return fmt.Sprintf("%d seeds, %d failed; %d operations, %d commands in %d commits, %.0f commands a second, %s of virtual time in %s; faults: %s\n",
		sum.Seeds, sum.Failed, sum.Operations, sum.Commands, sum.Commits, sum.PerSecond(), sum.Virtual.Round(time.Hour), sum.Took.Round(100*time.Millisecond), strings.Join(faults, ", "))
}
