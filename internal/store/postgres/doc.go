// Package postgres keeps the ledger in a PostgreSQL database that several nodes
// may share. Start with [Open]; a program that only looks uses [OpenReadOnly].
//
// A batch is one transaction of few statements, each over arrays of rows. It
// takes its locks in one order: claims, queues of work, operations, events,
// sources, reviews, accounts, budgets, endpoints and their sets, queues of
// deliveries, deliveries; within a table in the order of keys. A row that is
// absent is locked by a placeholder under its key, which nobody else sees. So
// two batches wait for each other but never in a circle, and no statement fails
// because of what another node does (docs/decisions/postgresql-locks.md).
//
// Nothing depends on the state of a session: with Options.Pooler each statement
// is sent unnamed, and the driver works through a pooler that hands out
// connections for one transaction at a time.
package postgres
