package store

import (
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Options are the bounds of a [Committer] and its hooks. A zero field has the
// default given with it.
type Options struct {
	// Waiting bounds the commands in the queue, 4096, and WaitingBytes what
	// they carry, 64 MiB.
	Waiting      int
	WaitingBytes int
	// Batch bounds the commands of one transaction, 256, and BatchBytes what
	// they carry, 8 MiB: larger ones gained little and waited longer.
	Batch      int
	BatchBytes int
	// Patience is how long one batch may take, 10 s: the time limit of one
	// transaction, of asking for a commit's outcome, and of starting further
	// tries.
	Patience time.Duration
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
	// OnCommit is called after each commit, before its answers are released,
	// by the goroutine that commits: it must not block.
	OnCommit func(Commit)
}

// Commit is what [Options.OnCommit] learns of one commit.
type Commit struct {
	// Rows are the rows as committed. They are read during the call only.
	Rows *ledger.Rows
	// Commands is how many were decided and Took the time from the start of
	// the transaction to its end.
	Commands int
	Took     time.Duration
}

func (o Options) withDefaults() Options {
	o.Waiting = orElse(o.Waiting, 4096)
	o.WaitingBytes = orElse(o.WaitingBytes, 64<<20)
	o.Batch = orElse(o.Batch, 256)
	o.BatchBytes = orElse(o.BatchBytes, 8<<20)
	o.Patience = orElse(o.Patience, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnCommit == nil {
		o.OnCommit = func(Commit) {}
	}
	return o
}

func orElse[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}
