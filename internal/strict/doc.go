// Package strict holds the parsers for what comes over the wire: JSON, times,
// Retry-After and Idempotency-Key. Each is bounded, accepts one published
// grammar and nothing beside it, and names that grammar at the function.
//
// Errors say where and why, never what: no value of the input is repeated in
// them, so they may be shown to a caller and written to a log. Object names do
// appear, shortened, inside JSON pointers.
//
// All functions are pure and safe for concurrent use. Byte slices that are
// handed in are never changed; a Value points into them.
package strict
