// Package api serves the native API under /v1 (2-contracts §1). It turns
// requests into commands and rows into JSON; it decides nothing itself.
//
// One file holds one resource. Around them: route.go registers and runs a
// route, mux.go answers what no route takes, auth.go knows who asks, format.go
// reads and writes JSON, page.go pages lists, problem.go holds the one table
// from errors to answers, describe.go makes the OpenAPI document.
//
// The handler is safe for concurrent use. It expects to be wrapped by
// telemetry.HTTP, which gives the request id that problems carry; hand it
// [Panicked] for handlers that panic.
package api
