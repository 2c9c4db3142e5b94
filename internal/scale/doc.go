// Package scale fills a ledger with as many operations as are wanted, for tests
// and measurements: a few hundred lives are lived through by the ledger's own
// commands, and their rows are written again and again under other ids, each
// time a little earlier. Sums, counters and sequences follow, so that the check
// of the ledger finds nothing.
package scale
