package cli

import (
	"github.com/pawlhq/pawl/internal/demo"
)

type demoCmd struct {
	Operations int    `default:"200" help:"How many jobs to submit."`
	Seed       uint64 `default:"1" help:"Draws the faults: the same seed plans the same ones."`
}

// Help teaches by example.
func (demoCmd) Help() string {
	return `A real node on a temporary ledger, three simulated providers that lose, repeat, reorder and corrupt, and a receiver that verifies. At the end the books of all are compared. Nothing leaves this machine and nothing stays on it.

` + examples(`pawl demo`, `pawl demo --operations 1000 --seed 7`)
}

func (c *demoCmd) Run(s *session) error {
	if c.Operations < 1 {
		return usage("--operations must be at least 1")
	}
	return demo.Run(s.ctx, demo.Options{
		Operations: c.Operations, Seed: c.Seed, Out: s.Stdout, Progress: s.Stderr, JSON: s.flags.JSON,
	})
}
