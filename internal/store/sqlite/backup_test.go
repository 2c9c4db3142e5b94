package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

func noProgress(string, int64, int64) {}

func noViolation(t *testing.T) func(ledger.Violation) error {
	return func(v ledger.Violation) error { t.Errorf("%s: %s: %s", v.Row, v.Rule, v.Detail); return nil }
}

// loadedFolder is a closed ledger of n operations.
func loadedFolder(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := store.NewCommitter(d, store.Options{})
	err = storetest.Load(t.Context(), c, n)
	if err = errors.Join(err, c.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestBackupWhileServed: beside a writer that goes on, the backup is one moment
// of the ledger (DB-01, DB-02, DB-05): it has what was committed before it began,
// log included, and its rules hold. Its mode is 0600 whatever the umask (DB-03).
func TestBackupWhileServed(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c := store.NewCommitter(d, store.Options{})
	defer c.Close()
	if err := storetest.Load(t.Context(), c, 50); err != nil {
		t.Fatal(err)
	}
	before, err := d.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			out, err := c.Do(context.Background(), ledger.EnsureTenant{Header: store.NewHeader(""), Name: "t" + strings.Repeat("x", n%200), Currency: "USD", Opening: 1})
			if err == nil && out.Err != nil {
				err = out.Err
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	was := unix.Umask(0)
	got, err := Backup(t.Context(), dir, filepath.Join(out, "b.db"), noViolation(t), noProgress)
	unix.Umask(was)
	close(stop)
	if err := errors.Join(err, <-stopped); err != nil {
		t.Fatal(err)
	}
	for _, c := range before {
		if got.Tables[c.Table] < c.Rows {
			t.Errorf("%s has %d rows, and had %d before", c.Table, got.Tables[c.Table], c.Rows)
		}
	}
	if !got.Checked || got.Sum.Operations != 50 || got.Sum.Violations != 0 {
		t.Errorf("checked %v: %+v", got.Checked, got.Sum)
	}
	info, err := os.Stat(filepath.Join(out, "b.db"))
	if err != nil || info.Mode() != 0o600 || info.Size() != got.Bytes {
		t.Errorf("%v, %v", info, err)
	}
	if left := names(t, out); len(left) != 1 {
		t.Errorf("in the folder are %v", left)
	}
}

// TestBackupRefused: what exists stays as it is, and what fails leaves nothing.
func TestBackupRefused(t *testing.T) {
	dir, out := loadedFolder(t, 30), t.TempDir()
	file := filepath.Join(out, "b.db")
	try := func(ctx context.Context, dir, want string) {
		t.Helper()
		if _, err := Backup(ctx, dir, file, noViolation(t), noProgress); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, write := range []func(string) error{
		func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		func(path string) error { return os.Symlink("nowhere", path) },
	} {
		if err := write(file); err != nil {
			t.Fatal(err)
		}
		try(t.Context(), dir, "exists already")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	try(t.Context(), t.TempDir(), "no ledger in")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	try(canceled, dir, "context canceled")
	// Another one is under way.
	f, err := claimPart(file + ".partial")
	if err != nil {
		t.Fatal(err)
	}
	try(t.Context(), dir, "another backup is being written")
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		t.Fatal(err)
	}
	// A page in the middle of the ledger is damaged.
	text, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for i := len(text) / 2; i < len(text)/2+3*4096; i++ {
		text[i] = 0x55
	}
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, fileName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	try(t.Context(), damaged, "damaged")
	if left := names(t, out); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// What a killed one left is taken over.
	if err := os.WriteFile(file+".partial", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(t.Context(), dir, file, noViolation(t), noProgress); err != nil {
		t.Error(err)
	}
	if left := names(t, out); len(left) != 1 || left[0] != "b.db" {
		t.Errorf("in the folder are %v", left)
	}
}

// TestRestore: the same rows come back, in WAL (DB-03), in one file of the owner.
func TestRestore(t *testing.T) {
	dir, out := loadedFolder(t, 30), t.TempDir()
	file, back := filepath.Join(out, "b.db"), filepath.Join(out, "back")
	made, err := Backup(t.Context(), dir, file, noViolation(t), noProgress)
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	ready := func(d *Driver, since pawl.Time) error {
		last, err := d.LastCommit(t.Context())
		asked = err == nil && since == last && since.IsSet()
		return err
	}
	if err := Restore(t.Context(), file, back, ready, noProgress); err != nil || !asked {
		t.Fatalf("%v, asked %v", err, asked)
	}
	if left := names(t, back); len(left) != 2 || left[0] != "pawl.db" || left[1] != "pawl.lock" {
		t.Errorf("in the folder are %v", left)
	}
	info, err := os.Stat(filepath.Join(back, fileName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	c, err := connect(t.Context(), filepath.Join(back, fileName), sqlite3.OPEN_READWRITE, "")
	if err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "application_id": "0", "integrity_check": "ok"} {
		var got string
		if err := c.each("PRAGMA "+pragma, nil, func(s *sqlite3.Stmt) { got = s.ColumnText(0) }); err != nil || got != want {
			t.Errorf("%s is %q, want %q; %v", pragma, got, want, err)
		}
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
	r, err := OpenReadOnly(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.glance(t.Context())
	if err = errors.Join(err, r.Close()); err != nil || !maps.Equal(m.tables, made.Tables) {
		t.Errorf("rows %v, want %v; %v", m.tables, made.Tables, err)
	}
}

// TestRestoreRefused: nothing is written over, and what fails leaves the folder
// as it was.
func TestRestoreRefused(t *testing.T) {
	dir, out := loadedFolder(t, 5), t.TempDir()
	file := filepath.Join(out, "b.db")
	if _, err := Backup(t.Context(), dir, file, noViolation(t), noProgress); err != nil {
		t.Fatal(err)
	}
	fine := func(*Driver, pawl.Time) error { return nil }
	try := func(file, dir, want string, ready func(*Driver, pawl.Time) error) {
		t.Helper()
		if err := Restore(t.Context(), file, dir, ready, noProgress); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	try(file, dir, "holds a ledger already (pawl.db)", fine)
	logAlone := t.TempDir()
	if err := os.WriteFile(filepath.Join(logAlone, "pawl.db-wal"), []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	try(file, logAlone, "holds a ledger already (pawl.db-wal)", fine)
	served, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	try(file, filepath.Dir(served.lock.Name()), "in use by process", fine)
	empty := t.TempDir()
	try(filepath.Join(out, "none"), empty, "there is no backup", fine)
	try(out, empty, "is no file", fine)
	try(alien(t, ""), empty, "there is no ledger in it", fine)
	try(alien(t, "CREATE TABLE goose_db_version (version_id INTEGER, is_applied INTEGER, tstamp TEXT)"), empty, "there is no ledger in it", fine)
	try(file, empty, "not today", func(*Driver, pawl.Time) error { return errors.New("not today") })
	if err := os.WriteFile(filepath.Join(out, "b.db-wal"), []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	try(file, empty, "has a log beside it", fine)
	if left := names(t, empty); len(left) > 1 {
		t.Errorf("left behind: %v", left)
	}
	// By hand it is refused.
	byHand := t.TempDir()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(byHand, fileName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), byHand, Options{}); !errors.Is(err, ErrBackup) {
		t.Errorf("a backup put there by hand: %v", err)
	}
}

// alien is a database of another program, with one more statement.
func alien(t *testing.T, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "other.db")
	c, err := connect(t.Context(), file, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE, "CREATE TABLE t (a);"+more)
	if err == nil {
		err = c.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFromEarlierVersions: a ledger of every earlier schema, with data in it, is
// backed up as it is, and opens with the same rows under the newest schema. What
// fills it is today's program, as long as no migration changes what the first
// schema has; from then on it must be files that were kept.
func TestFromEarlierVersions(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for version := int64(1); version < int64(len(files)); version++ {
		dir := t.TempDir()
		path := filepath.Join(dir, fileName)
		if err := migrateTo(t.Context(), path, version); err != nil {
			t.Fatal(err)
		}
		c, err := connect(t.Context(), path, sqlite3.OPEN_READWRITE, writerPragmas)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.exec("BEGIN", nil), c.save(storetest.Whole(3)), c.exec("COMMIT", nil), c.close()); err != nil {
			t.Fatal(err)
		}
		all, err := Migrations(t.Context(), dir)
		if err != nil || all[version-1].AppliedAt == 0 || all[version].AppliedAt != 0 {
			t.Errorf("version %d: %v, %v", version, all, err)
		}
		if _, err := OpenReadOnly(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "pawl migrate up") {
			t.Errorf("version %d is read: %v", version, err)
		}
		saved, err := Backup(t.Context(), dir, filepath.Join(t.TempDir(), "b.db"), noViolation(t), noProgress)
		if err != nil || saved.Schema != version || saved.Checked || saved.Tables["operations"] != 3 {
			t.Errorf("version %d, backed up: %+v, %v", version, saved, err)
		}
		if err := Migrate(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		counts, err := d.Counts(t.Context())
		for _, c := range counts {
			if c.Rows != 3 {
				t.Errorf("from version %d: %s has %d rows, want 3", version, c.Table, c.Rows)
			}
		}
		if err = errors.Join(err, d.Close()); err != nil {
			t.Error(err)
		}
	}
}
