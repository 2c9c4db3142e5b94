// Package webhook signs and verifies webhooks.
//
// A [Scheme] is data: which headers carry the event id, the timestamp and the
// signature, of which parts the signed text is made, by which algorithm, how
// the signature and the secret are written, and how old a request may be. One
// piece of code reads that data for every scheme, so a rule such as "a header
// that occurs twice is refused" holds for all of them.
//
//	scheme                 signed text                                  signature
//	standard-webhooks      id "." timestamp "." body                    v1,BASE64 (list)
//	standard-webhooks-v1a  id "." timestamp "." body                    v1a,BASE64 (list)
//	media-v2               task id "." timestamp "." hex SHA-256(body)  BASE64
//	body-timestamp         timestamp "." body                           sha256=HEX
//	stripe                 timestamp "." body                           t=TIMESTAMP,v1=HEX (list)
//	github                 body                                         sha256=HEX
//	slack                  "v0:" timestamp ":" body                     v0=HEX
//	zoom                   "v0:" timestamp ":" body                     v0=HEX
//	websub                 body                                         METHOD=HEX
//	rfc9421                HTTP Message Signatures (RFC 9421)           sig1=:BASE64: (list)
//
// The signature is an HMAC-SHA256 by a secret that both sides hold, except that
// standard-webhooks-v1a, and rfc9421 with such a key, sign with Ed25519: the receiver holds a public key and
// could not sign itself; websub is verified with SHA-384 and SHA-512 as well.
//
// Verification works on the raw body as received; a body that was decoded and
// encoded again does not verify. It proves who sent the bytes and that they are
// fresh (300 s either way; stripe: not older; github and websub, which sign no time,
// and zoom: of any age). It does not prove that they are new: the caller
// still has to consume each event once, by an id that the signature covers.
//
// Secrets are parsed once into a [Key], which never shows itself in a log.
// Nothing here keeps state or reads a clock, and everything may be used from
// several goroutines at once.
package webhook
