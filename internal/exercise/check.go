package exercise

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pawlhq/pawl"
)

// Check is one thing that was found to hold or not.
type Check struct {
	Name string `json:"name"`
	Pass bool   `json:"pass"`
	// ExpectedRefusal marks a check that holds because something was refused.
	ExpectedRefusal bool   `json:"expected_refusal"`
	Evidence        string `json:"evidence"`
}

// The checks beside those of the fixture's steps.
const (
	checkBound      = "operations_are_bound_before_recovery"
	checkOneVerdict = "every_event_ended_with_one_verdict"
	checkReads      = "status_reads_are_those_that_were_asked_for"
	checkCreates    = "not_one_create_during_recovery"
	checkCrashA     = "kill_after_commit_before_answer_gives_one_outcome"
	checkCrashB     = "kill_after_commit_before_delivery_gives_one_outcome"
	checkInvariants = "ledger_invariants_hold"
	checkReplay     = "replay_of_the_wire_agrees"
	checkPorts      = "both_ports_refuse_connections_afterwards"
	checkRemoved    = "temporary_ledger_is_removed"
	checkDialled    = "nothing_outside_127.0.0.1_was_dialled"
	checkUnchanged  = "binary_and_fixture_are_unchanged"
)

// reserved are the names that a fixture cannot use, with where to look if the
// check fails.
var reserved = map[string]string{
	checkBound:      "the acceptance of a create: RecordCreate claims (upstream, task) once",
	checkOneVerdict: "the ledger's stored events beside the answers in wire/: each received event has one verdict, a repeat counts on the first",
	checkReads:      "the schedule of reads: nothing but the reconciliation may read here",
	checkCreates:    "whatever repeats a create after the task is known; wire/ shows the request",
	checkCrashA:     "the durability of the commit (synchronous=FULL) and the unique key of the event: the repeat must meet its own first time",
	checkCrashB:     "the outbox: the delivery is written with the change of state, and a restart frees the leases of the former life",
	checkInvariants: "the broken rule and row that the evidence names, then pawl ledger check on a ledger of your own",
	checkReplay:     "the first exchange that differs: a rule depends on something that is not in the request",
	checkPorts:      "whoever else listens on that port: ss -ltnp; then the closing of the stage",
	checkRemoved:    "the rights on the temporary folder, and processes that hold it open",
	checkDialled:    "the address in the evidence and which step asked for it",
	checkUnchanged:  "who replaced the program or edited the fixture while the exercise ran",
}

// judge compares a step with what was expected of it. What was not applied must
// have changed nothing, on any operation.
func (p played) judge() Check {
	c := Check{Name: p.step.Check, ExpectedRefusal: p.step.Refusal}
	var wrong []string
	differ := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %v, expected %v", what, got, want))
		}
	}
	e, task := p.step.Expect, p.step.task()
	if e.Status != 0 && p.exchange.Answer != nil {
		differ("the answer", p.exchange.Answer.Status, e.Status)
	}
	if e.Verdict != "" || p.step.Refusal {
		differ("the verdict", orNone(p.verdict), orNone(e.Verdict))
	}
	if b := p.step.Before; b != nil {
		p.before[task].compare("before", *b, differ)
	}
	p.after[task].compare("after", e, differ)
	if p.changed() {
		wrong = append(wrong, "an operation changed although nothing was applied")
	}
	c.Pass = len(wrong) == 0
	c.Evidence = p.evidence()
	if !c.Pass {
		c.Evidence += "; " + strings.Join(wrong, "; ")
	}
	return c
}

// changed reports whether an operation is another than before although nothing
// was applied. What opens a review raises the version and nothing else.
func (p played) changed() bool {
	switch p.verdict {
	case pawl.Applied.String():
		return false
	case pawl.Conflict.String(), pawl.UnknownState.String():
		return !maps.EqualFunc(p.before, p.after, func(a, b standing) bool { return a.State == b.State })
	}
	return !maps.Equal(p.before, p.after)
}

func (s standing) compare(when string, want Expect, differ func(string, any, any)) {
	if want.State != "" {
		differ("the state "+when, s.State.String(), want.State)
	}
	if want.UpstreamState != "" {
		differ("the provider's word "+when, orNone(s.UpstreamState), want.UpstreamState)
	}
}

func orNone(word string) string {
	if word == "" {
		return "none"
	}
	return word
}

func (p played) evidence() string {
	x := p.exchange
	status := 0
	if x.Answer != nil {
		status = x.Answer.Status
	}
	text := fmt.Sprintf("%s: %s %s answered %d, verdict %s", wireName(x), x.Request.Method, x.Request.Path, status, orNone(p.verdict))
	if p.reason != "" {
		text += " (" + p.reason + ")"
	}
	if task := p.step.task(); task != "" {
		b, a := p.before[task], p.after[task]
		text += fmt.Sprintf("; %s %s/%s v%d before, %s/%s v%d after", task, b.State, b.UpstreamState, b.Version, a.State, a.UpstreamState, a.Version)
	}
	return text
}

// fixtureLook is where to look if a step's check fails.
func fixtureLook(f Fixture) map[string]string {
	look := maps.Clone(reserved)
	for _, s := range f.Steps {
		look[s.Check] = s.Look
		if s.Look == "" {
			look[s.Check] = "the step in fixture.json, the exchange in wire/ that the evidence names, and the description's table of states and pointers"
		}
	}
	return look
}

// writeTable tells a person what holds, and of what does not where to look.
func writeTable(w io.Writer, checks []Check, look map[string]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		mark := "holds"
		if !c.Pass {
			mark = "FAILS"
		}
		refusal := ""
		if c.ExpectedRefusal {
			refusal = " (expected refusal)"
		}
		fmt.Fprintf(t, "%s\t%s%s\n", mark, c.Name, refusal)
	}
	failed := failedOf(checks)
	if len(failed) > 0 {
		fmt.Fprintf(t, "\nIF THIS CHECK FAILS\tLOOK HERE\n")
		for _, c := range failed {
			fmt.Fprintf(t, "%s\t%s\n\tfound: %s\n", c.Name, look[c.Name], c.Evidence)
		}
	}
	return t.Flush()
}

func failedOf(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Pass })
}
