package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/pawlhq/pawl/internal/store"
)

// The migrations only go forward; one that was released is never changed, and
// each leaves a schema that the version before can still work with.
//
//go:embed migrations/*.sql
var migrations embed.FS

// The table lock that keeps two nodes from migrating at once. A node that dies
// while it holds it loses it when the lease ends.
const (
	migrationLease = 30 * time.Second
	migrationBeat  = 5 * time.Second
	migrationPoll  = 250 * time.Millisecond
	migrationTries = 240
)

// migrate brings the database to this program's schema and refuses a newer one.
func migrate(ctx context.Context, at address) (err error) {
	cfg := at.config.ConnConfig.Copy()
	// Nothing of a migration is worth preparing, and a pooler may be in between.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableLeaseDuration(migrationLease), lock.WithTableHeartbeatInterval(migrationBeat),
		lock.WithTableLockTimeout(migrationPoll, migrationTries), lock.WithTableLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLocker(locker))
	if err != nil {
		return err
	}
	// Without the lock first: the usual start finds nothing to do. An error is one
	// of an empty database, or is met again below.
	if has, want, err := p.GetVersions(ctx); err == nil && has >= want {
		return atMost(has, want)
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	has, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	return atMost(has, want)
}

func atMost(has, want int64) error {
	if has > want {
		return newer(has, want)
	}
	return nil
}

// checkVersion refuses a database whose schema is not exactly this program's:
// it is read, not migrated.
func checkVersion(ctx context.Context, c *conn) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	want, err := goose.NumericComponent(names[len(names)-1])
	if err != nil {
		return err
	}
	var has int64
	var found bool
	err = c.each(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL", nil, func(row [][]byte) error {
		found = row[0][0] != 0
		return nil
	})
	if err == nil && !found {
		return errors.New("there is no ledger in this database: start a server on it first")
	}
	if err == nil {
		err = c.each(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied", nil, func(row [][]byte) error {
			has = fromInt(row[0])
			return nil
		})
	}
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
