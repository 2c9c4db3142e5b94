// Package ledger is the pure core of Pawl: it decides. Commands turn rows and
// a moment into changed rows and an outcome with a reason; nothing here does
// I/O, reads a clock or draws a random number, so the same command on the same
// rows always decides the same.
//
// Start with [Command] and [Draft]; the rows are in rows.go, one file per
// command beside them, and what they share in observe.go, attach.go, money.go
// and emit.go.
package ledger
