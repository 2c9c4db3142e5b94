// Package exercise is the offline recovery exercise (2-contracts §5): the real
// receiver, store and rules on a temporary ledger, a provider that is played
// on an ephemeral port of 127.0.0.1, and a child process that is killed in the
// worst moments. [Run] leaves a folder of receipts, [Verify] checks such a
// folder without trusting what it says of itself.
//
// What happens is data, a [Fixture]; each of its steps is one check. A replay
// plays what was recorded on the wire once more, on a ledger in memory, through
// the same code: the same answers, verdicts and states must come out.
//
// Nothing outside 127.0.0.1 is dialled: every connection goes through one
// dialer that refuses it and keeps a list.
package exercise
