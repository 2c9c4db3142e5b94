package doctor

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// change runs statements in a database.
func change(t *testing.T, database, text string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}
