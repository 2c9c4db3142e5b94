package store

import (
	"context"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Commands takes commands to be decided: a [Committer], or what stands for one
// in the simulator. An error means that the command may or may not have taken
// effect.
type Commands interface {
	// Do has one command decided.
	Do(ctx context.Context, command ledger.Command) (ledger.Outcome, error)
	// DoAll has several decided, in one commit if there is room. The results
	// are in the order of the commands.
	DoAll(ctx context.Context, commands ...ledger.Command) []Result
}
