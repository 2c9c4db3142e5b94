package cli

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
)

// TestLedgerCheckOnPostgres: the ledger in a database is checked as one in a
// folder is, and none is restored where there is none; a URL that makes no sense is not repeated.
func TestLedgerCheckOnPostgres(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	w := newWorld(t, gone(t))
	// Nor is one made where it should have been brought back.
	w.run("restore", "--database", s.URL()).want(t, ExitFailed, "", "there is no ledger in this database")
	r := w.run("ledger", "check", "--database", s.URL())
	r.want(t, ExitFailed, "", "there is no ledger in this database")
	d, err := postgres.Open(t.Context(), s.URL(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := store.NewCommitter(d, store.Options{})
	out, err := c.Do(t.Context(), ledger.EnsureTenant{Header: store.NewHeader(""), Name: "acme", Currency: "USD", Opening: 1})
	if err != nil || out.Err != nil {
		t.Fatal(err, out.Err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	w.run("ledger", "check", "--database", s.URL()).want(t, ExitDone, "0 operations, 1 accounts, 0 endpoints checked: 0 violations\n", "")
	r = w.run("ledger", "check", "--database", "mysql://u:hunter2@h/d")
	r.want(t, ExitUsage, "", "write postgres://")
	if strings.Contains(r.stderr, "hunter2") {
		t.Errorf("the URL is repeated: %s", r.stderr)
	}
}

// TestKeyWrapping: what is printed is 32 bytes in base64, another one each time.
func TestKeyWrapping(t *testing.T) {
	w := newWorld(t, gone(t))
	seen := map[string]bool{}
	for range 3 {
		r := w.run("key", "wrapping")
		text := strings.TrimSuffix(r.stdout, "\n")
		key, err := base64.StdEncoding.DecodeString(text)
		if r.status != ExitDone || err != nil || len(key) != 32 || seen[text] {
			t.Errorf("status %d, %q, %v", r.status, r.stdout, err)
		}
		seen[text] = true
	}
}
