// Package outbox sends outbound events to the endpoints that want them: it
// claims due deliveries, makes and signs their bodies, POSTs them and records
// what came of it. What an answer means, and when the next attempt is due, is
// the ledger's decision (7-rules §5).
//
// [Outbox.Run] is a thin loop over three steps, which a simulator may call one
// by one: [Outbox.Claim], [Outbox.Act] and [Outbox.Record]. Rows are the truth;
// memory holds the count of slots in use and whose turn it is.
//
// An event is delivered at least once: a process that ends between sending and
// recording sends again, with the same event id and the same bytes.
package outbox
