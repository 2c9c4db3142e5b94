package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// books are facts with n operations, each of which breaks a rule since nothing
// but its row exists, and what is added.
type books struct {
	n        int
	accounts []ledger.AccountFacts
	budgets  []ledger.BudgetFacts
	ends     []ledger.EndpointFacts
	loose    ledger.LooseFacts
	failing  error
	pages    int
}

func (b *books) OperationFacts(_ context.Context, p store.Page) (facts []ledger.Facts, err error) {
	b.pages++
	for i := 1; i <= b.n && len(facts) < p.Limit; i++ {
		id := pawl.NewID(pawl.Time(i), 1)
		if id.Compare(p.After) <= 0 {
			continue
		}
		facts = append(facts, ledger.Facts{Operation: ledger.Operation{
			ID: id, State: pawl.Pending, Version: 1, DueAt: 1, Queue: ledger.SubmitQueue,
		}})
	}
	return facts, nil
}

func (b *books) AccountFacts(context.Context) ([]ledger.AccountFacts, error)   { return b.accounts, nil }
func (b *books) BudgetFacts(context.Context) ([]ledger.BudgetFacts, error)     { return b.budgets, nil }
func (b *books) EndpointFacts(context.Context) ([]ledger.EndpointFacts, error) { return b.ends, nil }
func (b *books) LooseFacts(context.Context) (ledger.LooseFacts, error)         { return b.loose, b.failing }

func check(t *testing.T, b *books) (store.Summary, []string, []int) {
	t.Helper()
	var rows []string
	var steps []int
	sum, err := store.Check(t.Context(), b, func(v ledger.Violation) error {
		rows = append(rows, v.Row)
		return nil
	}, func(n int) { steps = append(steps, n) })
	if err != nil {
		t.Fatal(err)
	}
	return sum, rows, steps
}

func TestCheckWalksOverAllPages(t *testing.T) {
	for n, pages := range map[int]int{0: 1, 1: 1, 199: 1, 200: 2, 450: 3} {
		b := &books{n: n}
		sum, rows, steps := check(t, b)
		if sum.Operations != n || b.pages != pages || len(steps) != pages || steps[pages-1] != n {
			t.Errorf("%d operations: %+v, %d pages, progress %v", n, sum, b.pages, steps)
		}
		if sum.Violations != len(rows) || len(slices.Compact(rows)) != n {
			t.Errorf("%d operations: %d violations, of %d operations", n, sum.Violations, len(slices.Compact(rows)))
		}
	}
}

func TestCheckTellsEachKind(t *testing.T) {
	account, endpoint := pawl.NewID(1, 2), pawl.NewID(1, 3)
	b := &books{
		n:        1,
		accounts: []ledger.AccountFacts{{Account: ledger.Account{ID: account, Credited: 5}}},
		budgets:  []ledger.BudgetFacts{{Budget: ledger.Budget{ID: ledger.BudgetID{Name: "studio"}, Used: 5}, Counted: 4}},
		ends:     []ledger.EndpointFacts{{Endpoint: ledger.Endpoint{ID: endpoint}, Numbered: 2, Highest: 3, Distinct: 2, FirstGap: 2}},
		loose:    ledger.LooseFacts{EventsWithoutKey: []ledger.Event{{ID: pawl.NewID(1, 4), Verdict: pawl.Applied}}},
	}
	sum, rows, _ := check(t, b)
	if sum.Accounts != 1 || sum.Endpoints != 1 || sum.Violations != len(rows) {
		t.Errorf("%+v, rows %v", sum, rows)
	}
	for _, want := range []string{account.Text(pawl.PrefixAccount), endpoint.Text(pawl.PrefixEndpoint), "studio", pawl.NewID(1, 4).Text(pawl.PrefixEvent)} {
		if !slices.Contains(rows, want) {
			t.Errorf("%s is not among %v", want, rows)
		}
	}
}

func TestCheckStops(t *testing.T) {
	failing := errors.New("disk")
	if _, err := store.Check(t.Context(), &books{failing: failing}, nil, nil); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
	enough := errors.New("enough")
	b := &books{accounts: []ledger.AccountFacts{{Account: ledger.Account{Credited: 5}}}}
	sum, err := store.Check(t.Context(), b, func(ledger.Violation) error { return enough }, nil)
	if !errors.Is(err, enough) || sum.Violations != 1 {
		t.Errorf("%+v, error %v", sum, err)
	}
}
