package cli

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pawlhq/pawl/internal/torture"
)

type tortureCmd struct {
	Database        string `help:"PostgreSQL server on which a database may be made, which is dropped after; SQLite with one node without it." placeholder:"URL"`
	RestartDatabase string `help:"Shell command that kills the database server and starts it again; without one that is not done." placeholder:"COMMAND"`
	Nodes           int    `help:"How many nodes share the database." default:"3"`
	Operations      int    `help:"How many jobs are submitted." default:"500"`
	Faults          int    `help:"How many faults strike." default:"30"`
	Seed            uint64 `help:"Draws the faults: the same seed plans the same ones." default:"1"`
}

// Help teaches by example, and lists the faults.
func (tortureCmd) Help() string {
	return `Real nodes on one ledger, a simulated provider that loses, repeats and corrupts, and a receiver that verifies, each with books of its own. While jobs are submitted, nodes are killed, frozen until their leases have run out, and stopped; their connections to the database are cut, delayed and refused by a proxy, and ended by the database; on SQLite their disk is full. Then everything must come to rest, the ledger is checked, and all books are compared. Each fault is a line on standard error; the report has a line for each of the six invariants. Exit status 1 if one does not hold; the nodes' logs and the ledger are kept then.

The same seed plans the same faults; what each of them meets is chance. 100 faults take some minutes.

` + examples(`pawl torture`, `pawl torture --database postgres://postgres@127.0.0.1/postgres --operations 2000 --faults 100 --seed 7`,
		`pawl torture --database postgres://postgres@127.0.0.1/postgres --restart-database "pg_ctl restart -m immediate -D /var/lib/postgresql/data"`)
}

func (c *tortureCmd) Run(s *session) error {
	if c.Nodes < 1 || c.Operations < 1 || c.Faults < 1 {
		return usage("--nodes, --operations and --faults must be at least 1")
	}
	if c.RestartDatabase != "" && c.Database == "" {
		return usage("--restart-database is for a --database")
	}
	o := torture.Options{
		Database: c.Database, Nodes: c.Nodes, Operations: c.Operations, Faults: c.Faults, Seed: c.Seed,
		Out: s.Stdout, Progress: s.Stderr, JSON: s.flags.JSON,
	}
	if c.RestartDatabase != "" {
		o.Restart = func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, "sh", "-c", c.RestartDatabase).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %.500s", err, strings.TrimSpace(string(out)))
			}
			return nil
		}
	}
	return torture.Run(s.ctx, o)
}
