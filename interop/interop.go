// Package interop holds tests against other people's implementations: Node's
// crypto, the official Standard Webhooks library for Node, and a generator of
// TypeScript clients. The programs they run are in the folder node; make test
// installs what those need.
package interop
