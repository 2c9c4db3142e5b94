package sqlite

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// openTest opens a new ledger that is closed at the test's end.
func openTest(t testing.TB, opts Options) *Driver {
	t.Helper()
	d, err := Open(context.Background(), t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func testID(n int) pawl.ID { return pawl.NewID(pawl.Time(1_760_000_000_000_000+n), uint64(n)) }

// update saves rows in a transaction of its own.
func update(t testing.TB, d *Driver, batch int, rows *ledger.Rows) {
	t.Helper()
	err := d.Update(context.Background(), testID(batch), func(tx store.Tx) error { return tx.Save(rows) })
	if err != nil {
		t.Fatal(err)
	}
}

// audit is the smallest change there is.
func audit(n int, detail string) *ledger.Rows {
	return &ledger.Rows{Audits: []ledger.Audit{{ID: testID(n), Detail: detail}}}
}

// audited are the details of all audits, newest first.
func audited(t testing.TB, d *Driver) []string {
	t.Helper()
	rows, err := d.Audits(context.Background(), store.AuditFilter{}, store.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var details []string
	for _, r := range rows {
		details = append(details, r.Detail)
	}
	return details
}
