package store

import (
	"context"

	"github.com/pawlhq/pawl/internal/ledger"
)

// checkStep is how many operations are read at once by [Check].
const checkStep = 200

// Summary is what a check of the whole ledger looked at and found.
type Summary struct {
	// Operations, Accounts and Endpoints count what was checked.
	Operations, Accounts, Endpoints int
	// Violations counts the broken rules.
	Violations int
}

// Check walks over everything the ledger holds, in bounded pieces, and tells
// visit of each broken rule (1-product F2, 3-architecture "Simulation and
// proof"). progress, if not nil, is told how many operations were checked so
// far. The check works beside a running node: each operation, account and
// endpoint is judged in a snapshot of its own. It stops at the first error of
// reading or of visit, with what it has counted until then.
func Check(ctx context.Context, facts Facts, visit func(ledger.Violation) error, progress func(n int)) (Summary, error) {
	c := checker{facts: facts, visit: visit, progress: progress}
	for _, step := range [...]func(context.Context) error{c.operations, c.accounts, c.budgets, c.endpoints, c.loose} {
		if err := step(ctx); err != nil {
			return c.sum, err
		}
	}
	return c.sum, nil
}

type checker struct {
	facts    Facts
	visit    func(ledger.Violation) error
	progress func(n int)
	sum      Summary
}

func (c *checker) tell(found []ledger.Violation) error {
	for _, v := range found {
		c.sum.Violations++
		if err := c.visit(v); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) operations(ctx context.Context) error {
	p := Page{Limit: checkStep}
	for {
		some, err := c.facts.OperationFacts(ctx, p)
		if err != nil {
			return err
		}
		for _, f := range some {
			if err := c.tell(ledger.CheckFacts(f)); err != nil {
				return err
			}
		}
		c.sum.Operations += len(some)
		if c.progress != nil {
			c.progress(c.sum.Operations)
		}
		if len(some) < p.Limit {
			return nil
		}
		p.After = some[len(some)-1].Operation.ID
	}
}

func (c *checker) accounts(ctx context.Context) error {
	all, err := c.facts.AccountFacts(ctx)
	if err != nil {
		return err
	}
	c.sum.Accounts = len(all)
	for _, f := range all {
		if err := c.tell(ledger.CheckAccount(f)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) budgets(ctx context.Context) error {
	all, err := c.facts.BudgetFacts(ctx)
	for _, f := range all {
		if err == nil {
			err = c.tell(ledger.CheckBudget(f))
		}
	}
	return err
}

func (c *checker) endpoints(ctx context.Context) error {
	all, err := c.facts.EndpointFacts(ctx)
	if err != nil {
		return err
	}
	c.sum.Endpoints = len(all)
	for _, f := range all {
		if err := c.tell(ledger.CheckEndpoint(f)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) loose(ctx context.Context) error {
	found, err := c.facts.LooseFacts(ctx)
	if err != nil {
		return err
	}
	return c.tell(ledger.CheckLoose(found))
}
