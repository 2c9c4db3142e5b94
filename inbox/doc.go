// Package inbox applies each webhook event once, inside the caller's own
// database transaction.
//
// A sender that gets no answer sends again, so a handler that issues a
// certificate per request issues two. An [Inbox] keeps a row per event in the
// same database as the caller's own tables:
//
//   - [Inbox.Apply] inserts the event's id first (the conflict is the test for
//     a repeat), runs the caller's function in the same transaction and commits
//     both. A function that fails rolls both back, and the sender's repeat
//     starts anew. A repeat of an applied event gets the stored outcome.
//   - [Inbox.Accept] only stores the event, so that the sender is answered at
//     once; [Inbox.Work] then runs the function with retries.
//   - What happens outside the database, such as an e-mail, is an [Effect]: a
//     row with a stable id, written by the same transaction and carried out by
//     [Inbox.Drain]. A crash between the effect and its mark repeats it under
//     the same id, which is its idempotency key at whoever carries it out.
//
// An event is in one of four states: received, waiting, done or review; see
// [State]. [Inbox.Sweep] finds what was accepted and never finished.
//
// It works with database/sql ([SQL]) and with pgx ([Pgx]), on PostgreSQL and
// on SQLite 3.24 or later, and behind any router. An Inbox is safe
// for concurrent use, by any number of processes on one database.
package inbox
