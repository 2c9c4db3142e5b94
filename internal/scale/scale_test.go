package scale

import (
	"testing"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// TestFilledLedgerIsSound holds that the check finds nothing in a ledger that
// was filled, and that it is about what was asked for.
func TestFilledLedgerIsSound(t *testing.T) {
	d, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()

	if err := Fill(t.Context(), d, t.TempDir(), 3*Lives, nil); err != nil {
		t.Fatal(err)
	}

	n := 0
	sum, err := store.Check(t.Context(), d, func(v ledger.Violation) error {
		if n++; n < 20 {
			t.Error(v)
		}
		return nil
	}, nil)
	if err != nil || sum.Operations != 3*Lives {
		t.Fatal(sum, err)
	}
}
