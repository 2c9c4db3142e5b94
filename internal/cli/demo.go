package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/internal/demo"
)

type demoCmd struct {
	Operations int    `default:"200" help:"How many operations to submit."`
	Seed       uint64 `default:"1" help:"Draws the faults: the same seed plans the same ones."`
	Stay       bool   `help:"Leave the node running at the end, to look at its console, until Ctrl-C."`

	Incident time.Duration `help:"Stay, and let one provider and one receiver fail for so long, such as 3m, to find and clear it in the console (docs/walk.md)." placeholder:"TIME"`
}

// Help teaches by example.
func (demoCmd) Help() string {
	return `A real node on a temporary ledger, three simulated providers that lose, repeat, reorder and corrupt, and a receiver that verifies. At the end the books of all are compared. Nothing leaves this machine and nothing stays on it.

` + examples(`pawl demo`, `pawl demo --operations 1000 --seed 7`, `pawl demo --stay`, `pawl demo --operations 50 --incident 3m`)
}

func (c *demoCmd) Run(s *session) error {
	if c.Operations < 1 {
		return usage("--operations must be at least 1")
	}
	if c.Incident < 0 {
		return usage("--incident must not be negative")
	}
	o := demo.Options{Operations: c.Operations, Seed: c.Seed, Out: s.Stdout, Progress: s.Stderr, JSON: s.flags.JSON, Incident: c.Incident}
	if c.Stay || c.Incident > 0 {
		o.Stay = func(ctx context.Context, p demo.Place) error {
			fmt.Fprintf(s.Stderr, "\nThe node stays up until Ctrl-C. Its console: %s/console\nLog in with %s\nOr, for commands in another terminal: export PAWL_SERVER=%s PAWL_KEY=%s\n", p.Admin, p.Key, p.API, p.Key)
			<-ctx.Done()
			return nil
		}
	}
	return demo.Run(s.ctx, o)
}
