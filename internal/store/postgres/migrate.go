package postgres

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

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
	return migrateTo(ctx, at, 0)
}

// migrateTo brings the database to a version of the schema, 0 for the newest.
func migrateTo(ctx context.Context, at address, version int64) (err error) {
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
	if version > 0 {
		_, err = p.UpTo(ctx, version)
		return err
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
		return store.NewerSchema(has, want)
	}
	return nil
}

// Migrate brings the schema of a database to this program's, of an empty one
// too, under a lock in a table: nodes may start and run meanwhile.
func Migrate(ctx context.Context, url string) error {
	at, err := locate(url)
	if err == nil {
		err = migrate(ctx, at)
	}
	return explain(ctx, "migrate", err)
}

// Migrations are the steps of the schema of a database, with or without nodes.
func Migrations(ctx context.Context, url string) (all []store.Migration, err error) {
	at, err := locate(url)
	if err != nil {
		return nil, explain(ctx, "open", err)
	}
	r, err := openReader(ctx, at, 1)
	if err != nil {
		return nil, explain(ctx, "open", err)
	}
	err = r.read(ctx, "read the schema's version", func(c *conn) error {
		all, err = c.migrations(ctx)
		return err
	})
	return all, errors.Join(err, r.Close())
}

// The time of a step is one without a zone, by the server's clock.
const (
	findVersions = "SELECT to_regclass('goose_db_version') IS NOT NULL"
	allVersions  = "SELECT version_id, tstamp AT TIME ZONE current_setting('TimeZone') FROM goose_db_version WHERE is_applied"
)

// migrations are the steps that this program knows or the database has.
func (c *conn) migrations(ctx context.Context) ([]store.Migration, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var found bool
	applied := make(map[int64]pawl.Time)
	err = c.each(ctx, findVersions, nil, func(row [][]byte) error {
		found = row[0][0] != 0
		return nil
	})
	if err == nil && found {
		err = c.each(ctx, allVersions, nil, func(row [][]byte) error {
			applied[fromInt(row[0])] = fromInstant(row[1])
			return nil
		})
	}
	return store.Migrations(names, applied), err
}

// checkVersion refuses a database whose schema is not exactly this program's:
// it is read, not migrated.
func checkVersion(ctx context.Context, c *conn) error {
	all, err := c.migrations(ctx)
	if err != nil {
		return err
	}
	if !store.Begun(all) {
		return errors.New("there is no ledger in this database: start a server on it first")
	}
	return store.CheckVersion(all)
}
