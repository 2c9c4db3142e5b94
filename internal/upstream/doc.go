// Package upstream talks to providers that are described as data. A [Spec] says
// where a provider keeps its facts: how a task is created, read, cancelled and
// looked up, which of its words mean which state, and how its callbacks are
// signed. It has JSON Pointers (RFC 6901) and tables, and no expression
// language; one interpreter serves all providers. The presets are embedded.
//
// An [Upstream] is a Spec with the settings of one configuration entry. Its
// methods turn the outside world into plain values: [Upstream.Create] a create
// into one of the classes of 1-product B4, [Upstream.Read] a status read and
// [Upstream.ParseCallback] a callback into the same observation. None decides
// anything about an operation; that is package ledger's.
//
// Values are immutable once built and safe for concurrent use.
package upstream
