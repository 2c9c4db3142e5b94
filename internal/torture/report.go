package torture

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawlhq/pawl"
)

// Report is what a torture came to.
type Report struct {
	Seed       uint64         `json:"seed"`
	Nodes      int            `json:"nodes"`
	Operations int            `json:"operations"`
	Seconds    float64        `json:"seconds"`
	Faults     []Count        `json:"faults"`
	States     map[string]int `json:"states"`
	// Invariants are the six of ARCHITECTURE.md, "What must hold", in their order.
	Invariants [6]Invariant `json:"invariants"`
	// Complaints are lines of the nodes' logs, and counts of the database, that no
	// fault excuses.
	Complaints []string `json:"complaints"`
}

// Invariant is one rule and what was seen of it: it holds if nothing is wrong.
type Invariant struct {
	Rule  string   `json:"rule"`
	Found string   `json:"found"`
	Wrong []string `json:"wrong"`
}

func newReport(r *run) Report {
	out := Report{
		Seed: r.o.Seed, Nodes: r.o.Nodes, Operations: r.o.Operations, Seconds: time.Since(r.began).Seconds(),
		Faults: counts(r.steps), States: make(map[string]int), Complaints: []string{},
	}
	for i, rule := range [...]string{
		"each accepted operation ended once, or is visibly held for a decision",
		"one create where creates are not idempotent, one key elsewhere, one task",
		"each reservation ended once, all sums agree, no charge above its reservation",
		"no event changed state twice, versions have no gaps",
		"each event was delivered, verified, in a sequence without gaps",
		"nothing that was answered 2xx is missing",
	} {
		out.Invariants[i] = Invariant{Rule: rule, Wrong: []string{}}
	}
	return out
}

// wrong adds a finding to an invariant, from 1.
func (r *Report) wrong(invariant int, format string, args ...any) {
	of := &r.Invariants[invariant-1]
	of.Wrong = append(of.Wrong, fmt.Sprintf(format, args...))
}

// found adds to what was seen of an invariant, from 1.
func (r *Report) found(invariant int, format string, args ...any) {
	of := &r.Invariants[invariant-1]
	of.Found = strings.TrimPrefix(of.Found+", "+fmt.Sprintf(format, args...), ", ")
}

// OK reports whether all invariants hold and nobody complains.
func (r Report) OK() bool {
	return len(r.Complaints) == 0 && !slices.ContainsFunc(r.Invariants[:], func(i Invariant) bool { return len(i.Wrong) > 0 })
}

// shown bounds how many findings of one kind are printed.
const shown = 20

func (r Report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var words []string
	for _, c := range r.Faults {
		words = append(words, fmt.Sprintf("%s %d", c.Fault, c.Times))
	}
	fmt.Fprintf(t, "\nseed %d, nodes: %d, %d operations, %.0f s\nfaults: %s\n", r.Seed, r.Nodes, r.Operations, r.Seconds, strings.Join(words, ", "))
	words = nil
	for s := pawl.Pending; s <= pawl.Expired; s++ {
		if n := r.States[s.String()]; n > 0 {
			words = append(words, fmt.Sprintf("%s %d", s, n))
		}
	}
	fmt.Fprintf(t, "states: %s\n\n", strings.Join(words, ", "))
	for i, inv := range r.Invariants {
		mark := "holds"
		if len(inv.Wrong) > 0 {
			mark = "FAILS"
		}
		fmt.Fprintf(t, "%d %s\t%s\t%s\n", i+1, mark, inv.Rule, inv.Found)
		some(t, inv.Wrong)
	}
	if len(r.Complaints) > 0 {
		fmt.Fprintf(t, "COMPLAINTS\tin the nodes' logs or of the database\n")
		some(t, r.Complaints)
	}
	return t.Flush()
}

func some(w io.Writer, lines []string) {
	for _, line := range first(lines, shown) {
		fmt.Fprintf(w, "    %s\n", line)
	}
	if more := len(lines) - shown; more > 0 {
		fmt.Fprintf(w, "    and %d more\n", more)
	}
}

func first[T any](of []T, n int) []T { return of[:min(n, len(of))] }
