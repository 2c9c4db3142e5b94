// Package sqlite keeps the ledger in one SQLite file. Start with [Open]; a
// program that only looks uses [OpenReadOnly].
//
// One connection writes, in one immediate transaction per batch; a small pool
// of connections reads. Every connection syncs fully in WAL mode, so a commit
// that returned survives a power cut (4-standards DB-08). Checkpoints run on a
// connection of their own, outside the commit path.
package sqlite
