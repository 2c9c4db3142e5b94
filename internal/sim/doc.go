// Package sim is a provider that misbehaves on purpose, and a receiver that
// does the same on the other side (1-product J2). Both keep their own books, so
// that a ledger can be compared with what really happened.
//
// What goes wrong is drawn from a seed: a [Plan] holds one [Script] for each
// operation, and the same seed gives the same scripts and the same
// [Plan.Hash]. A client names the operation by its number in the input,
// {"n": 17}. A [Server] plays the scripts in three dialects over one book of
// tasks; a [Receiver] verifies what it is sent and remembers it.
//
// No event of a script is a trap without an answer: one that names another task
// is sent only after the client has shown that it knows its task, and one that
// contradicts the end only after that end was acknowledged. [Script.Learnable]
// and [Script.Expected] therefore hold whatever the timing, for a client that
// is not killed and takes callbacks within [Config].Attempts. For one that is
// killed, [Task].Known in the books says what it must still know.
package sim
