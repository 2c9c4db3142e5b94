// Package simulate runs whole life cycles of operations from a seed: several
// nodes on one ledger in memory, providers and receivers that misbehave,
// people who decide, clocks that jump, and a fault between any two steps
// (3-architecture, "Simulation and proof").
//
// What runs is the program itself: the steps of internal/work and
// internal/outbox, the handler of internal/intake, the interpreter of
// internal/upstream, the batches of internal/store and the ledger's rules. Only
// the network, the clocks and the database are played. One thing runs at a
// time, in an order that the seed draws: a step gives way where it waits for a
// commit or for the wire, and whatever is due next goes on. The same seed gives
// the same run, to the last row.
//
// Providers and receivers keep books of their own. After each run, when nothing
// is due any more, the ledger is held against its own invariants and against
// those books. [Run] runs one seed, [Sweep] many, [Shrink] makes a failing run
// small.
//
// Start with run.go. The world is in world.go, its agenda in agenda.go, a node
// in node.go; what the world does of itself is one small file a kind: people_*.go
// and mishaps.go.
package simulate
