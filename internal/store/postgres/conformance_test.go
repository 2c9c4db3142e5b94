package postgres

import (
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Driver {
		d, err := Open(t.Context(), pgtest.Database(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
