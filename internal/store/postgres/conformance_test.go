package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Run("Plain", func(t *testing.T) {
		t.Parallel()
		conforms(t, pgtest.Database(t))
	})
	t.Run("Lanes", func(t *testing.T) {
		t.Parallel()
		storetest.Lanes(t, opened(pgtest.Database(t)), storetest.Commands())
	})
	t.Run("Pooler", func(t *testing.T) {
		t.Parallel()
		conforms(t, pgtest.Pooled(t, pgtest.Database(t)))
	})
}

// conforms runs the suite on one database, which is emptied for each driver:
// to make one takes longer than most tests.
func conforms(t *testing.T, url string) { storetest.Run(t, opened(url)) }

func opened(url string) storetest.Open {
	return func(t *testing.T) store.Driver {
		d, err := Open(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		empty(t, d)
		return d
	}
}

// tables are all that hold rows of the ledger.
var tables = strings.Fields(`replays idempotency_keys correlations event_keys tasks sources unknown_types tenants api_keys wrapping_keys operations
	events payloads history reviews accounts budgets entries endpoints queues deliveries attempts audits audit_seals artifacts endpoint_sets batches nodes`)

// empty removes all rows. Few are there, and to truncate makes every table and
// index anew.
func empty(t testing.TB, d *Driver) {
	t.Helper()
	err := d.writers.use(context.Background(), func(c *conn) error {
		var errs []error
		for _, name := range tables {
			errs = append(errs, c.exec(context.Background(), "DELETE FROM "+name))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
}
