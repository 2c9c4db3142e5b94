package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl/internal/store"
)

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	update(t, d, 1, audit(1, "x"))
	for name, want := range map[string]fs.FileMode{
		".": 0o700 | fs.ModeDir, "pawl.db": 0o600, "pawl.db-wal": 0o600, "pawl.db-shm": 0o600, "pawl.lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, Options{})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("error %v, want that of a folder locked by %d", err, os.Getpid())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestReopenFindsEverything(t *testing.T) {
	dir := t.TempDir()
	for n := 1; n <= 3; n++ {
		d, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		update(t, d, n, audit(n, "x"))
		for b := 1; b <= n; b++ {
			if ok, err := d.Committed(t.Context(), testID(b)); err != nil || !ok {
				t.Errorf("life %d: batch %d: committed %v, error %v", n, b, ok, err)
			}
		}
		if got := len(audited(t, d)); got != n {
			t.Errorf("life %d: %d rows", n, got)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, "pawl.db-wal")); err == nil && info.Size() > 0 {
			t.Errorf("life %d left a log of %d bytes", n, info.Size())
		}
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write.exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("open: %v", err)
	}
	if _, err := OpenReadOnly(t.Context(), dir); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("open read-only: %v", err)
	}
}

func TestOpenReadOnly(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReadOnly(t.Context(), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	update(t, d, 1, audit(1, "x"))
	look := func(when string) {
		t.Helper()
		r, err := OpenReadOnly(t.Context(), dir)
		if err != nil {
			t.Fatal(when, err)
		}
		if rows, err := r.Audits(t.Context(), store.AuditFilter{}, store.Page{Limit: 9}); err != nil || len(rows) != 1 {
			t.Errorf("%s: rows %v, error %v", when, rows, err)
		}
		if err := r.Close(); err != nil {
			t.Error(when, err)
		}
		if _, err := r.Tenants(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: after close: %v", when, err)
		}
	}
	look("running")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	look("stopped")
}

func TestOpenSaysWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	damaged := t.TempDir()
	for path, text := range map[string]string{file: "x", filepath.Join(damaged, "pawl.db"): strings.Repeat("not a database ", 1000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		filepath.Join(file, "data"): "not a directory",
		damaged:                     "pawl.db is damaged or not a ledger: restore a backup",
	} {
		if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestExplain(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want string
		is   error
	}{
		{t.Context(), &fs.PathError{Op: "open", Path: "x", Err: unix.EROFS}, "the data folder is read-only", unix.EROFS},
		{t.Context(), &fs.PathError{Op: "open", Path: "x", Err: unix.EACCES}, "the data folder is not accessible", fs.ErrPermission},
		{t.Context(), sqlite3.FULL, "the disk is full", sqlite3.FULL},
		{t.Context(), sqlite3.READONLY_DIRECTORY, "the data folder is read-only", sqlite3.READONLY},
		{t.Context(), sqlite3.CORRUPT, "restore a backup", sqlite3.CORRUPT},
		{done, sqlite3.INTERRUPT, "sqlite: open: context canceled", context.Canceled},
	} {
		err := explain(c.ctx, "open", c.err)
		if !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.is) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	if explain(done, "open", nil) != nil {
		t.Error("no error was explained")
	}
}

func TestPragmasOfEveryConnection(t *testing.T) {
	d := openTest(t, Options{Readers: 3})
	conns := []*conn{d.write, d.checkpoints.conn}
	for range 3 {
		c := <-d.pool
		defer func() { d.pool <- c }()
		conns = append(conns, c)
	}
	for i, c := range conns {
		for pragma, want := range map[string]string{
			"foreign_keys": "1", "synchronous": "2", "journal_mode": "wal", "busy_timeout": "5000", "trusted_schema": "0",
		} {
			var got string
			err := c.each("PRAGMA "+pragma, nil, func(s *sqlite3.Stmt) { got = s.ColumnText(0) })
			if err != nil || got != want {
				t.Errorf("connection %d: %s is %q, want %q; error %v", i, pragma, got, want, err)
			}
		}
	}
}
