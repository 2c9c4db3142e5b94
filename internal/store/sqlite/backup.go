package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// backupMark is the application id of a backup's file ("pawB"): a ledger that is
// put back by hand, past [Restore], would do again what was done since.
const backupMark = 0x70617742

// Progress is told of what is being done, and how far it is of total; both are 0
// where nobody knows.
type Progress func(step string, done, total int64)

// BackedUp is what a backup holds.
type BackedUp struct {
	// Bytes is the size of the file, Schema the version of its schema.
	Bytes, Schema int64
	// Tables are how many rows each table has.
	Tables map[string]int64
	// Sum is what the check of the ledger's rules has counted; Checked is false
	// where the schema is an older one, of which that cannot be said.
	Sum     store.Summary
	Checked bool
}

// Backup writes the ledger in dir, be it served or not, into a file that does
// not exist yet: one snapshot, checked before it gets its name, readable by its
// owner alone (4-standards DB-01…DB-05). Violation is told of each broken rule;
// such a backup is kept. What is interrupted leaves nothing.
func Backup(ctx context.Context, dir, file string, violation func(ledger.Violation) error, progress Progress) (_ *BackedUp, err error) {
	if err := exists(dir); err != nil {
		return nil, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	if err := absent(file); err != nil {
		return nil, err
	}
	part, err := claimPart(file + ".partial")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part.Name())
			_ = os.Remove(part.Name() + "-journal")
		}
		_ = part.Close()
	}()
	b := backup{part: part.Name(), progress: progress}
	if err := b.write(ctx, filepath.Join(dir, fileName)); err != nil {
		return nil, err
	}
	if err := b.check(ctx, violation); err != nil {
		return nil, err
	}
	if err := part.Sync(); err != nil {
		return nil, err
	}
	if err := absent(file); err != nil {
		return nil, err
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return nil, err
	}
	return &b.done, syncFolder(filepath.Dir(file))
}

func absent(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s exists already: name another file", file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// claimPart makes the file that a backup is written into, or takes over the one
// of a backup that was killed. One that is being written is left alone.
func claimPart(path string) (_ *os.File, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another backup is being written to %s", path)
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if there, err := os.Lstat(path); err != nil || !os.SameFile(mine, there) {
		return nil, fmt.Errorf("another backup has just been written to %s", path)
	}
	return f, errors.Join(f.Truncate(0), f.Chmod(0o600))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// glance is what a ledger is between two commits.
type glance struct {
	batch  int64
	schema int64
	tables map[string]int64
}

type backup struct {
	part          string
	progress      Progress
	before, after glance
	done          BackedUp
}

// write copies one snapshot, between two looks at the ledger.
func (b *backup) write(ctx context.Context, path string) (err error) {
	r, err := openReader(ctx, path, 1)
	if err != nil {
		return explain(ctx, "open", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := makePrivate(path); err != nil {
		return explain(ctx, "open", err)
	}
	if b.before, err = r.glance(ctx); err != nil {
		return err
	}
	if err := b.vacuum(ctx, r); err != nil {
		return err
	}
	b.after, err = r.glance(ctx)
	return err
}

// vacuum is told how far it is by the size of what it writes.
func (b *backup) vacuum(ctx context.Context, r *Reader) error {
	c, err := acquire(ctx, r.pool, r.closed)
	if err != nil {
		return err
	}
	defer func() { r.pool <- c }()
	var total int64
	err = c.each("SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)", nil, func(s *sqlite3.Stmt) {
		total = s.ColumnInt64(0)
	})
	if err != nil {
		return explain(ctx, "back up", err)
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-ticker.C:
				if info, err := os.Stat(b.part); err == nil {
					b.progress("writing bytes", min(info.Size(), total), total)
				}
			}
		}
	}()
	c.db.SetInterrupt(ctx)
	err = c.exec("VACUUM INTO ?", []value{textValue(b.part)})
	c.db.SetInterrupt(context.Background())
	stop()
	<-watched
	return explain(ctx, "back up", err)
}

// glance looks at everything in one snapshot.
func (r *Reader) glance(ctx context.Context) (m glance, err error) {
	m.tables = make(map[string]int64)
	err = r.read(ctx, "count rows", func(c *conn) error {
		all, err := c.migrations()
		if err != nil {
			return err
		}
		for _, step := range all {
			if step.AppliedAt != 0 {
				m.schema = step.Version
			}
		}
		if m.batch, err = lastBatch(c); err != nil {
			return err
		}
		var names []string
		err = c.each("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'", nil, func(s *sqlite3.Stmt) {
			names = append(names, s.ColumnText(0))
		})
		for _, name := range names {
			if err == nil {
				err = c.each("SELECT count(*) FROM "+name, nil, func(s *sqlite3.Stmt) { m.tables[name] = s.ColumnInt64(0) })
			}
		}
		return err
	})
	return m, err
}

// check proves that the file is whole, that it is the ledger as it was between
// the two looks, and that it keeps the rules.
func (b *backup) check(ctx context.Context, violation func(ledger.Violation) error) (err error) {
	b.progress("checking the file", 0, 0)
	if err := prepareFile(ctx, b.part, backupMark); err != nil {
		return err
	}
	r, err := openReader(ctx, b.part, 1)
	if err != nil {
		return explain(ctx, "open the backup", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m, err := r.glance(ctx)
	if err != nil {
		return err
	}
	quiet := b.before.batch == b.after.batch
	switch {
	case m.schema != b.before.schema && m.schema != b.after.schema,
		m.batch < b.before.batch || m.batch > b.after.batch,
		quiet && !maps.Equal(m.tables, b.before.tables):
		return errors.New("the backup is not what the ledger was: nothing was kept; try again, and look at the disk if it happens twice")
	}
	info, err := os.Stat(b.part)
	if err != nil {
		return err
	}
	b.done = BackedUp{Bytes: info.Size(), Schema: m.schema, Tables: m.tables}
	if err := r.read(ctx, "read the schema's version", checkVersion); err != nil {
		if errors.Is(err, store.ErrNewerSchema) {
			return err
		}
		return nil // An older schema: it has been counted, and is judged after the upgrade.
	}
	total := m.tables["operations"]
	b.done.Sum, err = store.Check(ctx, r, violation, func(n int) { b.progress("checking operations", int64(n), total) })
	b.done.Checked = err == nil
	return err
}

// prepareFile checks a ledger's file that nobody has open, and gives it a mark.
func prepareFile(ctx context.Context, path string, mark int64) (err error) {
	c, err := connect(ctx, path, sqlite3.OPEN_READWRITE, "PRAGMA journal_mode = DELETE;")
	if err != nil {
		return explain(ctx, "open "+filepath.Base(path), err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	var found string
	if err := c.each("PRAGMA integrity_check(1)", nil, func(s *sqlite3.Stmt) { found = s.ColumnText(0) }); err != nil {
		return explain(ctx, "check "+filepath.Base(path), err)
	}
	if found != "ok" {
		return fmt.Errorf("sqlite: %s is damaged: %s", filepath.Base(path), found)
	}
	return explain(ctx, "mark "+filepath.Base(path), c.db.Exec(fmt.Sprintf("PRAGMA application_id = %d", mark)))
}

// ErrBackup is the error of a backup that was put in a ledger's place by hand.
var ErrBackup = errors.New("pawl.db is a backup that was put there by hand: move it away and bring it back with \"pawl restore\", so that nothing is submitted twice")

// refuseBackup refuses a file that is a backup. What a power cut left unfinished
// is rolled back by the first look, which must therefore be able to write.
func refuseBackup(ctx context.Context, path string) error {
	c, err := connect(ctx, path, sqlite3.OPEN_READWRITE, "")
	if err != nil {
		return err
	}
	var mark int64
	err = c.each("PRAGMA application_id", nil, func(s *sqlite3.Stmt) { mark = s.ColumnInt64(0) })
	if err == nil && mark == backupMark {
		err = ErrBackup
	}
	return errors.Join(err, c.close())
}
