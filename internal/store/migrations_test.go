package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// TestMigrations: what is there, what is pending, and what only a newer program
// knows.
func TestMigrations(t *testing.T) {
	files := []string{"migrations/0001_ledger.sql", "migrations/0002_copies.sql"}
	for _, c := range []struct {
		applied map[int64]pawl.Time
		want    []store.Migration
		err     string
	}{
		{map[int64]pawl.Time{0: 5, 1: 7}, []store.Migration{{1, "0001_ledger.sql", 7}, {2, "0002_copies.sql", 0}}, "older schema 1, this program reads 2"},
		{map[int64]pawl.Time{1: 7, 2: 9}, []store.Migration{{1, "0001_ledger.sql", 7}, {2, "0002_copies.sql", 9}}, ""},
		{map[int64]pawl.Time{1: 7, 2: 9, 3: 11}, []store.Migration{{1, "0001_ledger.sql", 7}, {2, "0002_copies.sql", 9}, {3, "", 11}}, "it has 3, this one knows 2"},
	} {
		got := store.Migrations(files, c.applied)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.applied, got, c.want)
		}
		err := store.CheckVersion(got)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: %v, want %q", c.applied, err, c.err)
		}
		if newer := strings.Contains(c.err, "this one knows"); newer != errors.Is(err, store.ErrNewerSchema) {
			t.Errorf("%v: %v", c.applied, err)
		}
	}
}
