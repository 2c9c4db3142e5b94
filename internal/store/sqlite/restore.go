package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
)

// restoring is the folder within the data folder in which a ledger is made ready.
const restoring = "restoring"

// Restore brings the backup in a file back into the data folder dir, in which no
// ledger may be. Ready makes the ledger safe to serve, before it gets its name;
// since is the latest commit that it knows of. What is interrupted is begun anew
// the next time. A folder that is served is a [LockedError].
func Restore(ctx context.Context, file, dir string, ready func(d *Driver, since pawl.Time) error, progress Progress) (err error) {
	if err := backupFile(file); err != nil {
		return err
	}
	if err := prepareFolder(dir); err != nil {
		return explain(ctx, "restore", err)
	}
	held, err := lock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if err := unused(dir); err != nil {
		return err
	}
	work := filepath.Join(dir, restoring)
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := prepareFolder(work); err != nil {
		return explain(ctx, "restore", err)
	}
	path := filepath.Join(work, fileName)
	if err := copyFile(ctx, file, path, progress); err != nil {
		return explain(ctx, "restore", err)
	}
	progress("checking the file", 0, 0)
	if err := prepareFile(ctx, path, 0); err != nil {
		return err
	}
	if err := holdsLedger(ctx, path); err != nil {
		return fmt.Errorf("%s is no backup: %w", file, err)
	}
	if err := makeReady(ctx, work, ready); err != nil {
		return err
	}
	if err := syncFile(path); err != nil {
		return explain(ctx, "restore", err)
	}
	if err := os.Rename(path, filepath.Join(dir, fileName)); err != nil {
		return err
	}
	return syncFolder(dir)
}

// backupFile refuses what is no backup, as far as can be seen from outside.
func backupFile(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("there is no backup %s: %w", file, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file: name the backup itself", file)
	}
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		return fmt.Errorf("%s has a log beside it (%s-wal): it is the file of a ledger in use, or a copy of one without what is in the log; make a backup with \"pawl backup\"", file, filepath.Base(file))
	}
	return nil
}

// holdsLedger refuses a database of something else, which would get the tables of
// an empty ledger.
func holdsLedger(ctx context.Context, path string) error {
	c, err := connect(ctx, path, sqlite3.OPEN_READONLY, "")
	if err != nil {
		return explain(ctx, "open "+filepath.Base(path), err)
	}
	var found int64
	err = c.each("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('goose_db_version', 'batches', 'operations')", nil,
		func(s *sqlite3.Stmt) { found = s.ColumnInt64(0) })
	if err == nil && found < 3 {
		err = errors.New("there is no ledger in it, it is a database of something else")
	}
	return errors.Join(err, c.close())
}

// unused refuses a folder with a ledger, or with parts of one: its log would be
// taken for that of the restored one.
func unused(dir string) error {
	for _, name := range [...]string{fileName, fileName + "-wal", fileName + "-shm", fileName + "-journal"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s holds a ledger already (%s): nothing is written over; move pawl.db, pawl.db-wal and pawl.db-shm away, or name another folder", dir, name), err)
		}
	}
	return nil
}

func copyFile(ctx context.Context, from, to string, progress Progress) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(out, in, 16<<20)
		done += n
		progress("copying bytes", done, info.Size())
		if errors.Is(err, io.EOF) {
			return out.Sync()
		}
		if err != nil {
			return err
		}
	}
}

// makeReady opens the ledger, which brings its schema up to date and turns the
// log on again, and closes it, which leaves everything in one file.
func makeReady(ctx context.Context, dir string, ready func(*Driver, pawl.Time) error) (err error) {
	d, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	since, err := d.LastCommit(ctx)
	if err != nil {
		return err
	}
	return ready(d, since)
}

func syncFile(path string) error {
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return errors.New("the log could not be moved into the file")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
