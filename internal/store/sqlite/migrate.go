package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/pressly/goose/v3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// migrate brings the file to this program's schema and refuses a newer one.
func migrate(ctx context.Context, path string) (err error) {
	return migrateTo(ctx, path, 0)
}

// migrateTo brings the file to a version of the schema, 0 for the newest.
func migrateTo(ctx context.Context, path string, version int64) (err error) {
	db, err := driver.Open(path, func(c *sqlite3.Conn) error {
		return c.Exec(pragmas + "PRAGMA journal_mode = WAL")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	has, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if has > want {
		return store.NewerSchema(has, want)
	}
	if version > 0 {
		_, err = p.UpTo(ctx, version)
	} else {
		_, err = p.Up(ctx)
	}
	return err
}

// Migrate brings the stopped ledger in dir to this program's schema. A folder
// without one is refused, and one that is served is a [LockedError].
func Migrate(ctx context.Context, dir string) error {
	if err := exists(dir); err != nil {
		return err
	}
	d, err := Open(ctx, dir, Options{Copying: true})
	if err != nil {
		return err
	}
	return d.Close()
}

// exists says whether there is a ledger in a folder.
func exists(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
		return fmt.Errorf("sqlite: open: no ledger in %s: name the data folder of a server: %w", dir, err)
	}
	return nil
}

// Migrations are the steps of the schema of the ledger in dir, be it served or
// not.
func Migrations(ctx context.Context, dir string) (all []store.Migration, err error) {
	if err := exists(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fileName)
	r, err := openReader(ctx, path, 1)
	if err != nil {
		return nil, explain(ctx, "open", err)
	}
	err = makePrivate(path)
	if err == nil {
		all, err = r.Migrations(ctx)
	}
	return all, errors.Join(err, r.Close())
}

// Migrations are the steps of the schema of the ledger that is open.
func (r *Reader) Migrations(ctx context.Context) (all []store.Migration, err error) {
	err = r.read(ctx, "read the schema's version", func(c *conn) error {
		all, err = c.migrations()
		return err
	})
	return all, err
}

// migrations are the steps that this program knows or the file has.
func (c *conn) migrations() ([]store.Migration, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	applied := make(map[int64]pawl.Time)
	err = c.each("SELECT version_id, unixepoch(tstamp) FROM goose_db_version WHERE is_applied", nil, func(s *sqlite3.Stmt) {
		applied[s.ColumnInt64(0)] = pawl.Time(s.ColumnInt64(1) * 1_000_000)
	})
	return store.Migrations(names, applied), err
}

// checkVersion refuses a file whose schema is not exactly this program's: it
// is read, not migrated.
func checkVersion(c *conn) error {
	all, err := c.migrations()
	if err != nil {
		return err
	}
	return store.CheckVersion(all)
}
