//go:build !pawl_first_schema

package postgres

import "embed"

// The migrations only go forward; one that was released is never changed, and
// each leaves a schema that the version before can still work with.
//
//go:embed migrations/*.sql
var migrations embed.FS
