// Package interop holds tests against other people's implementations: Node's
// crypto and the official Standard Webhooks library for Node. The programs
// they run are in the folder node; make test installs what those need.
package interop
