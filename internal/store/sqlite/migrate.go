package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/pressly/goose/v3"

	"github.com/pawlhq/pawl/internal/store"
)

// The migrations only go forward; one that was released is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the file to this program's schema and refuses a newer one.
func migrate(ctx context.Context, path string) (err error) {
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
		return newer(has, want)
	}
	_, err = p.Up(ctx)
	return err
}

// checkVersion refuses a file whose schema is not exactly this program's: it
// is read, not migrated.
func checkVersion(c *conn) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	want, err := goose.NumericComponent(names[len(names)-1])
	if err != nil {
		return err
	}
	var has int64
	err = c.each("SELECT max(version_id) FROM goose_db_version WHERE is_applied", nil, func(s *sqlite3.Stmt) {
		has = s.ColumnInt64(0)
	})
	switch {
	case err != nil:
		return err
	case has > want:
		return newer(has, want)
	case has < want:
		return fmt.Errorf("the ledger has the older schema %d, this program reads %d: start the server once to bring it up", has, want)
	}
	return nil
}

func newer(has, want int64) error {
	return fmt.Errorf("%w: it has %d, this one knows %d: use a newer Pawl", store.ErrNewerSchema, has, want)
}
