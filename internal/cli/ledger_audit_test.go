package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/audit"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/retention"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/vault"
)

// sealedAudit is a folder with a ledger whose audit has a sealed line.
func sealedAudit(t *testing.T) (dir string) {
	dir = t.TempDir()
	d, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := store.NewCommitter(d, store.Options{})
	unlocked, err := vault.Unlock(t.Context(), c, d, server.WrappingKeys(config.Config{Data: dir}))
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.KeyOf(unlocked.Root)
	if err != nil {
		t.Fatal(err)
	}
	h := store.NewHeader("someone")
	h.Now = pawl.TimeOf(time.Now().Add(-time.Hour))
	if _, err := c.Do(t.Context(), ledger.RecordAccess{Header: h, Tenant: "acme", Action: "event.body", Detail: "was"}); err != nil {
		t.Fatal(err)
	}
	r := retention.New(retention.Options{
		Store: c, Reader: d, AuditKey: key, Settings: config.NewLive(retention.Settings{Audit: 24 * time.Hour, Keys: time.Hour}),
		Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	})
	if err := r.Pass(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLedgerCheckOfTheAudit: a line of the audit that was changed by hand is
// found, under another wrapping key too; what it says is not repeated. Without
// the key the check says what it cannot find.
func TestLedgerCheckOfTheAudit(t *testing.T) {
	dir := sealedAudit(t)
	w := newWorld(t, gone(t))
	check := func() result { return w.run("ledger", "check", "--data", dir) }
	check().want(t, ExitDone, ": 0 violations\n", "")
	damage(t, dir, "UPDATE audits SET detail = 'hunter2' WHERE detail = 'was'")
	told := "audit seal 1: the audit is only added to: the lines between the beginning and "
	check().want(t, ExitFailed, told, "")

	w.run("key", "rewrap", "--data", dir).want(t, ExitDone, "retired", "")
	check().want(t, ExitFailed, told, "")
	damage(t, dir, "UPDATE audits SET detail = 'was' WHERE detail = 'hunter2'")
	check().want(t, ExitDone, ": 0 violations\n", "")

	if err := os.Remove(filepath.Join(dir, "secret.key")); err != nil {
		t.Fatal(err)
	}
	check().want(t, ExitDone, ": 0 violations\n", "without their key")
	damage(t, dir, "DELETE FROM audits WHERE detail = 'was'")
	check().want(t, ExitFailed, "audit seal 1: the audit is only added to: 1 of 1 lines ", "")
}
