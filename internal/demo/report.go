package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// Report is what a demo came to.
type Report struct {
	Seed       uint64           `json:"seed"`
	Operations int              `json:"operations"`
	Plan       string           `json:"plan"`
	Seconds    float64          `json:"seconds"`
	Injected   []sim.FaultCount `json:"injected"`
	Verdicts   map[string]int   `json:"verdicts"`
	States     map[string]int   `json:"states"`
	Checks     []Check          `json:"checks"`
}

// Check is one comparison: it holds if nothing is wrong.
type Check struct {
	Name  string   `json:"name"`
	Found string   `json:"found"`
	Wrong []string `json:"wrong,omitempty"`
}

// OK reports whether every check holds.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return len(c.Wrong) > 0 })
}

// compare holds the three books against each other.
func (s *stage) compare(ctx context.Context) (Report, error) {
	r := Report{
		Seed: s.o.Seed, Operations: s.plan.Len(), Plan: s.plan.Hash(), Injected: s.plan.Summary(),
		Verdicts: s.verdicts, States: make(map[string]int),
	}
	ops, err := s.api.operations(ctx)
	if err != nil {
		return r, err
	}
	for _, op := range ops {
		r.States[op.State]++
	}
	r.Checks = append(r.Checks, s.outcomes(ops), s.creates(), s.deliveries(ops))
	invariants, err := s.invariants(ctx)
	r.Checks = append(r.Checks, invariants...)
	return r, err
}

// outcomes: every operation ended as the provider ended it, for the provider's
// price, and all are found after the restart.
func (s *stage) outcomes(ops map[string]operation) Check {
	c := Check{Name: "invariants 1, 3, 6: states and charges agree with the sim's books, after a restart"}
	settled := 0
	for n, id := range s.operations {
		script, _ := s.plan.Script(n)
		state, cost := script.Expected()
		op, ok := ops[id]
		switch {
		case !ok:
			c.Wrong = append(c.Wrong, fmt.Sprintf("operation %d (%s) is missing", n, id))
		case op.State != state.String():
			c.Wrong = append(c.Wrong, fmt.Sprintf("operation %d (%s) is %s, expected %s", n, id, op.State, state))
		case state.Terminal() && op.Cost.Amount != cost.String():
			c.Wrong = append(c.Wrong, fmt.Sprintf("operation %d (%s) cost %s, expected %s", n, id, op.Cost.Amount, cost))
		case state.Terminal():
			settled++
		}
	}
	c.Found = fmt.Sprintf("%d settled, %d cannot be learned and are held as unconfirmed", settled, len(s.operations)-settled-len(c.Wrong))
	return c
}

// creates: at most one task per operation, at most one create where a create
// is not idempotent.
func (s *stage) creates() Check {
	c := Check{Name: "invariant 2: one task per operation reached the sim"}
	books := s.sim.Snapshot()
	calls, tasks := 0, 0
	for _, op := range books.Operations {
		calls += len(op.Creates)
		tasks += len(op.Tasks)
		if len(op.Tasks) > 1 {
			c.Wrong = append(c.Wrong, fmt.Sprintf("operation %d has %d tasks", op.N, len(op.Tasks)))
		}
	}
	if books.Unauthorized > 0 {
		c.Wrong = append(c.Wrong, fmt.Sprintf("%d calls were unauthorized", books.Unauthorized))
	}
	c.Found = fmt.Sprintf("%d create calls, %d tasks, %d operations", calls, tasks, len(s.operations))
	return c
}

// deliveries: the receiver has every version of every operation, verified,
// each event once with the same bytes, in a gapless sequence.
func (s *stage) deliveries(ops map[string]operation) Check {
	c := Check{Name: "invariants 4, 5, 6: every version arrived, verified, each event with the same bytes"}
	books := s.receiver.Snapshot()
	for _, v := range books.Violations {
		c.Wrong = append(c.Wrong, fmt.Sprintf("%+v", v))
	}
	for reason, n := range books.Refused {
		c.Wrong = append(c.Wrong, fmt.Sprintf("%d deliveries were refused: %s", n, reason))
	}
	seen := make(map[string]map[int64]bool)
	sequences := make(map[int64]bool)
	for _, op := range books.Operations {
		seen[op.ID] = make(map[int64]bool)
		for _, e := range op.Seen {
			seen[op.ID][e.Version] = true
			sequences[e.Sequence] = true
		}
	}
	for id, op := range ops {
		for v := int64(2); v <= op.Version; v++ {
			if !seen[id][v] {
				c.Wrong = append(c.Wrong, fmt.Sprintf("%s version %d was not delivered", id, v))
			}
		}
	}
	for i := int64(1); i <= int64(len(sequences)); i++ {
		if !sequences[i] {
			c.Wrong = append(c.Wrong, fmt.Sprintf("sequence %d is missing", i))
		}
	}
	attempts := 0
	for _, e := range books.Events {
		attempts += e.Count
	}
	c.Found = fmt.Sprintf("%d events in %d attempts, sequence 1 to %d", len(books.Events), attempts, len(sequences))
	return c
}

// invariants runs the ledger's own check over the running ledger.
func (s *stage) invariants(ctx context.Context) ([]Check, error) {
	reader, err := sqlite.OpenReadOnly(ctx, s.dir)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	c := Check{Name: "invariants 1, 3, 4, 5: ledger check finds nothing"}
	summary, err := store.Check(ctx, reader, func(v ledger.Violation) error {
		c.Wrong = append(c.Wrong, v.Row+": "+v.Rule+": "+v.Detail)
		return nil
	}, nil)
	c.Found = fmt.Sprintf("%d operations checked", summary.Operations)
	return []Check{c}, err
}

func (r Report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nseed %d · %d operations · %.1f s\nfault plan %s\n", r.Seed, r.Operations, r.Seconds, r.Plan)
	fmt.Fprintf(t, "\nINJECTED\tTIMES\n")
	for _, f := range r.Injected {
		if f.Count > 0 {
			fmt.Fprintf(t, "%s\t%d\n", f.Fault, f.Count)
		}
	}
	fmt.Fprintf(t, "\nVERDICT\tEVENTS\n")
	for _, v := range slices.Sorted(maps.Keys(r.Verdicts)) {
		if r.Verdicts[v] > 0 {
			fmt.Fprintf(t, "%s\t%d\n", v, r.Verdicts[v])
		}
	}
	fmt.Fprintf(t, "\nSTATE\tOPERATIONS\n")
	for s := pawl.Pending; s <= pawl.Expired; s++ {
		if r.States[s.String()] > 0 {
			fmt.Fprintf(t, "%s\t%d\n", s, r.States[s.String()])
		}
	}
	fmt.Fprintf(t, "\nCHECK\tFOUND\n")
	for _, c := range r.Checks {
		mark := "holds"
		if len(c.Wrong) > 0 {
			mark = "FAILS"
		}
		fmt.Fprintf(t, "%s\t%s: %s\n", mark, c.Name, c.Found)
		for _, wrong := range c.Wrong {
			fmt.Fprintf(t, "\t  %s\n", wrong)
		}
	}
	return t.Flush()
}
