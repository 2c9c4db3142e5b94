package store

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
)

// NodeSilentAfter is how long a node that works may go unheard: three of its
// signs of life.
const NodeSilentAfter = 3 * NodeBeat

// NodeBeat is how often a node tells that it lives, and what it holds.
const NodeBeat = 10 * time.Second

// Node is a process that serves a ledger, as it last told of itself.
type Node struct {
	// ID is of one start of the program.
	ID pawl.ID
	// Host is the machine's name, Address where the node's API listens, Version
	// the program's.
	Host, Address, Version string
	// StartedAt and SeenAt are its first and latest sign of life, Unheard the time
	// since; all by the ledger's clock and set by the ledger.
	StartedAt, SeenAt pawl.Time
	Unheard           time.Duration
	// Draining says that it is about to stop and takes nothing new.
	Draining bool
	// Lanes is how many batches it commits at once, Waiting how many commands
	// wait for theirs.
	Lanes, Waiting int64
	// Creates, Reads, Deliveries and Captures are what it has leased or on the
	// wire.
	Creates, Reads, Deliveries, Captures int64
}

// Silent reports whether nothing was heard of the node for so long that it is
// dead, frozen or cut off. What it holds goes to others when its leases end.
func (n Node) Silent() bool { return n.Unheard > NodeSilentAfter }

// State is "silent", "draining" or "alive".
func (n Node) State() string {
	switch {
	case n.Silent():
		return "silent"
	case n.Draining:
		return "draining"
	}
	return "alive"
}

// Roster is who serves a ledger. Nothing is decided by it: work is claimed and
// never assigned, so there is no leader and nobody is thrown out.
type Roster interface {
	// Beat notes a node's sign of life.
	Beat(ctx context.Context, n Node) error
	// Leave takes a node off that stops.
	Leave(ctx context.Context, node pawl.ID) error
	// Nodes are those that have not left, in the order of their start. Who went
	// silent is forgotten after a day.
	Nodes(ctx context.Context) ([]Node, error)
}
