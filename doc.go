// Package pawl holds the words of Pawl, the catch that keeps asynchronous
// jobs from slipping: the states an operation may be in and the moves between
// them, the verdicts on events, money, identifiers, reviews and the errors of
// the field. It imports the standard library only, performs no I/O and reads
// no clock, so every other room of the program can share it.
//
// One word per concept, the same in code, SQL, JSON, flags and screens:
//
//   - An operation is our own record of one intended piece of work; its id
//     exists before any network call.
//   - A task is the provider's job; its id is learned from the provider, and
//     an operation has at most one.
//   - An event is one immutable fact with a stable id, inbound from a source
//     or outbound to endpoints.
//   - An upstream is a provider described as data; a source is a place that
//     inbound events come from.
//   - An endpoint is a URL that a tenant wants events delivered to; a delivery
//     is one event for one endpoint; an attempt is one try of a delivery.
//   - An account holds what a tenant may spend, a reservation what one
//     operation holds until it is settled or released.
//   - A review is something that a person must decide.
//
// Values of this package are safe for concurrent use: they are plain data.
package pawl
