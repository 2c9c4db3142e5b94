package outbox_test

import (
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/vault"
)

// newVault has a wrapping key of its own.
func newVault(t testing.TB) *vault.Vault {
	t.Helper()
	v, err := vault.New(t.Context(), vault.URL(vault.NewKey()))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// seal is what the ledger keeps of a secret.
func (b *bench) seal(owner pawl.ID, secret string) ledger.Sealed {
	b.Helper()
	s, err := b.opts.Vault.Seal(b.Context(), owner, secret)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
