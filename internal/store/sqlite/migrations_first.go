//go:build pawl_first_schema

package sqlite

import "embed"

// A program built like this knows the first schema alone: the older node of the
// upgrade drill (cmd/pawl).
//
//go:embed migrations/0001_ledger.sql
var migrations embed.FS
