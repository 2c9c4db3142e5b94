// Package cli is the command line of Pawl (2-contracts §6): the server, and
// commands that talk to a server, to a ledger on disk, or to nobody at all.
//
// One file holds one group of commands. Around them: commands.go lists them,
// cli.go runs one and turns its error into an exit status, apiclient.go talks
// to the API, memory.go remembers idempotency keys across interrupted runs
// (7-rules R48), table.go prints for people.
//
// What a command prints to standard output is its answer; everything said
// about the way there goes to standard error. Text that came from elsewhere is
// printed to people without control characters; --json gives the API's JSON as
// it is.
package cli
