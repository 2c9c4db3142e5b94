package storetest_test

import (
	"testing"

	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

func TestSqliteTmp(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Driver {
		d, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
