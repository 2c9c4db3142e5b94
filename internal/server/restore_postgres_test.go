package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// TestRestoreDrillOnPostgres is docs/backup.md for PostgreSQL: pg_dump beside a
// running node, pg_restore into another database, the marks, the check, a node.
func TestRestoreDrillOnPostgres(t *testing.T) {
	t.Parallel()
	url, other := pgtest.Database(t), pgtest.Database(t)
	w := newWorld(t, "body-timestamp", on(t, url))
	w.endpoint()
	running, onItsWay := w.running("running")
	w.told(running, "operation.running")
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/pause", map[string]any{}))
	waiting := w.submit("waiting")
	dump := filepath.Join(t.TempDir(), "pawl.dump")
	tool := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), pgtest.Tool(t, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	tool("pg_dump", "--format=custom", "--file="+dump, "--dbname="+url)
	// After the backup the waiting one is created.
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/resume", nil))
	task := w.state(waiting, "running").at("task_id")
	creates := len(w.provider.created())
	w.drain()

	tool("pg_restore", "--exit-on-error", "--no-owner", "--dbname="+other, dump)
	on(t, other)(&w.cfg, nil)
	doubts := w.doubtedOnPostgres(other)
	if doubts.Operations != 1 {
		t.Errorf("%d operations in doubt, want 1", doubts.Operations)
	}
	w.start()
	w.finish(running, onItsWay)
	w.told(running, "operation.running", "operation.succeeded")
	w.now(waiting, "pending")
	w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/resume", nil))
	w.state(waiting, "unconfirmed")
	w.resolve(waiting, "created", task)
	w.state(waiting, "running")
	if n := len(w.provider.created()); n != creates {
		t.Errorf("%d creates, want %d", n, creates)
	}
}

func (w *world) doubtedOnPostgres(url string) store.Doubts {
	w.Helper()
	d, err := postgres.Open(w.Context(), url, postgres.Options{})
	if err != nil {
		w.Fatal(err)
	}
	c := store.NewCommitter(d, store.Options{})
	since, err := d.LastCommit(w.Context())
	var doubts store.Doubts
	if err == nil {
		doubts, err = store.Doubt(w.Context(), c, d, since)
	}
	if err = errors.Join(err, c.Close(), d.Close()); err != nil {
		w.Fatal(err)
	}
	return doubts
}

// TestCopiedLedgerGoesOn: a node on the copy in PostgreSQL opens the secrets with
// the key of the data folder, knows the callback addresses, and goes on where the
// one on SQLite has stopped.
func TestCopiedLedgerGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, secrets, former string }{
		{"with the key of the folder", "", ""},
		{"with a new key beside it", wrapping, "file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			w := newWorld(t, "media-v2")
			w.endpoint()
			op, wire := w.running("k")
			w.told(op, "operation.running")
			w.drain()
			copyLedger(t, w.cfg.Data, url)
			keyOfFolder := secretOf(t, "base64key://"+keyIn(t, w.cfg.Data))
			w.cfg.Database, w.cfg.Secrets = secretOf(t, url), keyOfFolder
			if c.former != "" {
				w.cfg.Secrets, w.cfg.FormerSecrets = secretOf(t, c.secrets), []config.Secret{keyOfFolder}
			}
			w.start()
			w.finish(op, wire)
			w.told(op, "operation.running", "operation.succeeded")
			w.money("99.4", "0")
			if again := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k")); again.at("id") != op {
				t.Errorf("the repeat made %s", again.at("id"))
			}
		})
	}
}

func copyLedger(t *testing.T, dir, url string) {
	t.Helper()
	from, err := sqlite.OpenStopped(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	to, err := postgres.Open(t.Context(), url, postgres.Options{Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Copy(context.Background(), from, to, nil)
	if err = errors.Join(err, from.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
}

func keyIn(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
