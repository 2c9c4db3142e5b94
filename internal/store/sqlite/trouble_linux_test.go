package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// trouble is something that befalls a data folder, and how it passes.
type trouble struct {
	name string
	// strike returns what takes it away again.
	strike func(t *testing.T, dir string) (recover func())
	// says is what a person is told, is the error that callers know it by.
	says string
	is   error
}

// limitFiles lets no file of this process grow beyond a size, as a full disk
// does; the kernel's signal is ignored, so that the write fails.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	set := func(l unix.Rlimit) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &l); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.Rlimit{Cur: size, Max: was.Max})
	lift = func() { set(was) }
	t.Cleanup(lift)
	return lift
}

// alone runs a test again in a process of its own and reports whether this is
// that one: a limit of files holds for the whole process.
func alone(t *testing.T) bool {
	const mark = "PAWL_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), mark+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// spoil overwrites the root page of a table.
func spoil(t *testing.T, dir, table string) (mend func()) {
	path := filepath.Join(dir, fileName)
	whole := ledgerFile(t, dir)
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := c.Prepare("SELECT rootpage FROM sqlite_schema WHERE name = '" + table + "'")
	if err != nil || !s.Step() {
		t.Fatal(table, err)
	}
	at := (s.ColumnInt64(0) - 1) * 4096
	if err := errors.Join(s.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	put := func(page []byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt(page, at)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(bytes.Repeat([]byte{0xff}, 4096))
	return func() { put(whole[at : at+4096]) }
}

// hold takes the write lock as another program would.
func hold(t *testing.T, dir string) (release func()) {
	c, err := sqlite3.OpenFlags(filepath.Join(dir, fileName), sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// asNobody runs fn as a user who has no right to anybody's files. The thread
// that took that user ends with it.
func asNobody(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		_ = unix.Setfsuid(65534)
		fn()
	}()
	<-done
}

// openTroubles keep a folder from being opened.
var openTroubles = []trouble{
	{"full", func(t *testing.T, _ string) func() { return limitFiles(t, 64<<10) }, "free some space", nil},
	{
		"no rights", func(t *testing.T, dir string) func() { return chmod(t, dir, 0o500) },
		"the data folder is not accessible: give Pawl's user the right to write to it", fs.ErrPermission,
	},
	{"no ledger", overwrite, "pawl.db is damaged or not a ledger: restore a backup", sqlite3.NOTADB},
	{
		"damaged", func(t *testing.T, dir string) func() { return spoil(t, dir, "batches") },
		"pawl.db is damaged: restore a backup", sqlite3.CORRUPT,
	},
	{"newer", outdate, "run the version of Pawl that brought it there", store.ErrNewerSchema},
	{"in use", occupy, fmt.Sprintf("is in use by process %d: stop that one first", os.Getpid()), nil},
}

func chmod(t *testing.T, dir string, mode fs.FileMode) (back func()) {
	set := func(mode fs.FileMode) {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	set(mode)
	return func() { set(0o700) }
}

func overwrite(t *testing.T, dir string) (back func()) {
	whole := ledgerFile(t, dir)
	put := func(content []byte) {
		if err := os.WriteFile(filepath.Join(dir, fileName), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(bytes.Repeat([]byte("no ledger "), 1000))
	return func() { put(whole) }
}

func outdate(t *testing.T, dir string) (back func()) {
	damage(t, dir, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)", nil)
	return func() { damage(t, dir, "DELETE FROM goose_db_version WHERE version_id = 9999", nil) }
}

func occupy(t *testing.T, dir string) (back func()) {
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A folder that cannot be opened is one sentence, keeps every byte of a
// ledger, and opens when the trouble has passed.
func TestOpenInTrouble(t *testing.T) {
	for _, c := range openTroubles {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "full" && !alone(t) {
				return
			}
			dir := t.TempDir()
			if c.name != "full" {
				openClosed(t, dir)
			}
			recover := c.strike(t, dir)
			before := ledgerFile(t, dir)
			open := func() {
				if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want %q in one line", err, c.says)
				} else if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %v is not %v", err, c.is)
				}
			}
			if c.is == fs.ErrPermission {
				asNobody(open)
			} else {
				open()
			}
			if c.name != "full" && !bytes.Equal(before, ledgerFile(t, dir)) {
				t.Error("the refusal has changed the ledger")
			}
			recover()
			openClosed(t, dir)
		})
	}
}

func openClosed(t *testing.T, dir string) {
	t.Helper()
	d, err := Open(t.Context(), dir, Options{})
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ledgerFile is the ledger's file; nothing where there is none.
func ledgerFile(t *testing.T, dir string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return content
}

// commandTroubles strike a ledger before a node opens it.
var commandTroubles = []trouble{
	{
		"full", func(t *testing.T, _ string) func() { return limitFiles(t, 64<<10) },
		"the disk is full, read-only or failing: free some space", sqlite3.IOERR,
	},
	{
		"damaged", func(t *testing.T, dir string) func() { return spoil(t, dir, "operations") },
		"pawl.db is damaged: restore a backup", sqlite3.CORRUPT,
	},
	{"locked", hold, "pawl.db is locked by another program: stop that one first", sqlite3.BUSY},
}

// A command that meets trouble is answered with ErrUnavailable and one
// sentence, leaves nothing, and works when the trouble has passed: at once, or
// for a mended file after a restart.
func TestCommandsInTrouble(t *testing.T) {
	for _, c := range commandTroubles {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "full" && !alone(t) {
				return
			}
			dir := t.TempDir()
			openClosed(t, dir)
			recover := c.strike(t, dir)
			n := openNode(t, dir)
			for _, key := range []string{"a", "b", "a"} {
				err := n.submit(key)
				if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, c.is) {
					t.Fatalf("error %v, want one of an unavailable store", err)
				}
				if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want %q in one line", err, c.says)
				}
			}
			recover()
			if c.name == "damaged" {
				n.close()
				n = openNode(t, dir)
			}
			for _, key := range []string{"a", "b", "a"} {
				if err := n.submit(key); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			}
			if rows, err := n.d.Operations(t.Context(), store.OperationFilter{}, store.Page{Limit: 9}); err != nil || len(rows) != 2 {
				t.Errorf("%d operations, error %v", len(rows), err)
			}
			checkBeside(t, dir)
			n.close()
		})
	}
}

// node is a driver with its committer.
type node struct {
	t *testing.T
	d *Driver
	c *store.Committer
}

func openNode(t *testing.T, dir string) node {
	t.Helper()
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write.db.Exec("PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	return node{t, d, store.NewCommitter(d, store.Options{})}
}

// submit writes more than a small disk holds.
func (n node) submit(key string) error {
	_, err := n.c.Do(n.t.Context(), ledger.Submit{
		Header: rushHead(), Tenant: "t", APIKey: testID(1), Key: key, Window: time.Hour, Up: rushUpstream, Model: "m",
		Input: strings.Repeat("x", 100_000), Deadline: pawl.TimeOf(time.Now().Add(time.Hour)),
	})
	return err
}

func (n node) close() {
	if err := errors.Join(n.c.Close(), n.d.Close()); err != nil {
		n.t.Error(err)
	}
}
