// Package vault encrypts the secrets of the ledger at rest, with a keeper of
// the Go CDK: what signs deliveries, and the key that callback addresses are
// derived from. The key that encrypts them, the wrapping key, is given by the
// configuration as a URL or is in a file of the data folder (2-contracts §6).
//
// A secret is sealed for its owner, the row that holds it, and opens for no
// other. It names the key that it was sealed with, so that a wrong key is told
// apart from damage (PR-09). Only edges hold a [Vault]: the API, which shows a secret
// once, and the outbox, which signs; the core passes sealed secrets along.
package vault
