package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// smallLedger is a folder with a ledger of one tenant with one operation that
// holds 0.3 USD of 10, and the ids of operation and account.
func smallLedger(t *testing.T) (dir string, op, account pawl.ID) {
	dir = t.TempDir()
	d, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := store.NewCommitter(d, store.Options{})
	do := func(command ledger.Command) any {
		out, err := c.Do(context.Background(), command)
		if err != nil || out.Err != nil {
			t.Fatal(err, out.Err)
		}
		return out.Value
	}
	tenant := do(ledger.EnsureTenant{Name: "acme", Currency: "USD", Opening: 10_000_000_000}).(ledger.Tenant)
	submitted := do(ledger.Submit{
		Tenant: "acme", Key: "k", Window: time.Hour, Up: ledger.Upstream{Name: "studio"}, Model: "m", Input: "{}",
		Deadline: pawl.TimeOf(time.Now().Add(time.Hour)), Metered: true, Price: pawl.Money{Amount: 300_000_000, Currency: "USD"},
	}).(ledger.Submitted)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, submitted.Operation.ID, tenant.Account
}

func damage(t *testing.T, dir, sql string) {
	t.Helper()
	c, err := sqlite3.OpenFlags(filepath.Join(dir, "pawl.db"), sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(sql); err != nil || c.Changes() != 1 {
		t.Fatalf("%s: %d rows changed, %v", sql, c.Changes(), err)
	}
}

// TestLedgerCheck: the exit status tells whether the ledger is sound, and each
// line names a row and the rule that it breaks.
func TestLedgerCheck(t *testing.T) {
	dir, op, account := smallLedger(t)
	w := newWorld(t, gone(t))
	check := func(args ...string) result {
		return w.run(append([]string{"ledger", "check", "--data", dir}, args...)...)
	}
	check().want(t, ExitDone, "1 operations, 1 accounts, 0 endpoints checked: 0 violations\n", "")

	damage(t, dir, "UPDATE operations SET reserved = reserved + 1000000000")
	r := check()
	r.want(t, ExitFailed, "1 operations, 1 accounts, 0 endpoints checked: 2 violations\n", "")
	rule := ": a reservation ends once, no charge is above it, and the sums agree: "
	for _, line := range []string{
		op.Text(pawl.PrefixOperation) + rule + "its entries leave 0.300000000 reserved, and 1.300000000 is held\n",
		account.Text(pawl.PrefixAccount) + rule + "reserved is 0.300000000, and its operations hold 1.300000000\n",
	} {
		if !strings.Contains(r.stdout, line) {
			t.Errorf("no line %q in %q", line, r.stdout)
		}
	}
	r = check("--json")
	var doc struct {
		Operations int
		Violations []struct{ Row, Rule, Detail string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.status != ExitFailed {
		t.Fatalf("status %d, %v: %s", r.status, err, r.stdout)
	}
	if len(doc.Violations) != 2 || doc.Violations[0].Row != op.Text(pawl.PrefixOperation) || doc.Operations != 1 {
		t.Errorf("%+v", doc)
	}

	damage(t, dir, "UPDATE operations SET reserved = reserved - 1000000000")
	check().want(t, ExitDone, "0 violations\n", "")
}
