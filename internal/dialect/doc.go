// Package dialect speaks the two foreign dialects of 2-contracts §2 and §3 from
// our side: media-v2 and body-timestamp. It has their words, the bodies of
// their callbacks, which the outbox sends, and the fronts that serve their
// calls over the same commands as /v1.
//
// What a front needs of the API it asks of a [Backend]: who calls, what they may,
// and the commands themselves. Nothing of that is decided here.
package dialect
