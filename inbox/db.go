package inbox

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Dialect is the kind of database.
type Dialect int

// The dialects.
const (
	// PostgreSQL at its default isolation level, read committed, or above.
	PostgreSQL Dialect = iota + 1
	// SQLite with a busy timeout, so that writers wait for each other.
	SQLite
)

// DB is a caller's database, whose transactions are of type T. Take one from
// [SQL] or [Pgx].
type DB[T any] struct {
	dialect Dialect
	begin   func(context.Context) (tx[T], error)
}

// tx is one transaction: the caller's own, and what the inbox does with it.
type tx[T any] struct {
	native   T
	exec     func(ctx context.Context, query string, args ...any) (rows int64, err error)
	query    func(ctx context.Context, query string, args ...any) (rows, error)
	commit   func(context.Context) error
	rollback func(context.Context) error
}

// rows is what database/sql and pgx have in common.
type rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}

// SQL is a database behind database/sql. The functions that the inbox runs are
// given the *sql.Tx.
func SQL(db *sql.DB, dialect Dialect) DB[*sql.Tx] {
	bind := func(query string) string { return query }
	if dialect == PostgreSQL {
		bind = numbered
	}
	return DB[*sql.Tx]{dialect: dialect, begin: func(ctx context.Context) (tx[*sql.Tx], error) {
		native, err := db.BeginTx(ctx, nil)
		if err != nil {
			return tx[*sql.Tx]{}, err
		}
		return tx[*sql.Tx]{
			native: native,
			exec: func(ctx context.Context, query string, args ...any) (int64, error) {
				result, err := native.ExecContext(ctx, bind(query), args...)
				if err != nil {
					return 0, err
				}
				return result.RowsAffected()
			},
			query: func(ctx context.Context, query string, args ...any) (rows, error) {
				return native.QueryContext(ctx, bind(query), args...)
			},
			commit:   func(context.Context) error { return native.Commit() },
			rollback: func(context.Context) error { return native.Rollback() },
		}, nil
	}}
}

// PgxTx is what the inbox needs of a pgx.Tx; the package does not import pgx.
type PgxTx[Tag PgxTag, Rows PgxRows] interface {
	Exec(ctx context.Context, sql string, args ...any) (Tag, error)
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// PgxTag is what the inbox needs of a pgconn.CommandTag.
type PgxTag interface{ RowsAffected() int64 }

// PgxRows is what the inbox needs of pgx.Rows.
type PgxRows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close()
}

// Pgx is a PostgreSQL database behind pgx: give it the Begin method of a pool,
// as in inbox.Pgx(pool.Begin). The functions that the inbox runs are given the
// pgx.Tx.
func Pgx[T PgxTx[Tag, Rows], Tag PgxTag, Rows PgxRows](begin func(context.Context) (T, error)) DB[T] {
	return DB[T]{dialect: PostgreSQL, begin: func(ctx context.Context) (tx[T], error) {
		native, err := begin(ctx)
		if err != nil {
			return tx[T]{}, err
		}
		return tx[T]{
			native: native,
			exec: func(ctx context.Context, query string, args ...any) (int64, error) {
				tag, err := native.Exec(ctx, numbered(query), args...)
				if err != nil {
					return 0, err
				}
				return tag.RowsAffected(), nil
			},
			query: func(ctx context.Context, query string, args ...any) (rows, error) {
				return native.Query(ctx, numbered(query), args...)
			},
			commit:   native.Commit,
			rollback: native.Rollback,
		}, nil
	}}
}

// numbered writes ? as $1, $2, … No statement of this package holds a ? for
// anything else.
func numbered(query string) string {
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// in runs fn in a transaction that commits if fn returns nil.
func (db DB[T]) in(ctx context.Context, fn func(tx[T]) error) error {
	t, err := db.begin(ctx)
	if err != nil {
		return err
	}
	// A rollback after the commit does nothing. The caller's context may have
	// ended, which must not keep the connection in the transaction.
	defer func() { _ = t.rollback(context.WithoutCancel(ctx)) }()
	if err := fn(t); err != nil {
		return err
	}
	return t.commit(ctx)
}

// each reads every row of a query; read is given the row's Scan.
func (t tx[T]) each(ctx context.Context, read func(scan func(...any) error) error, query string, args ...any) error {
	found, err := t.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer closeRows(found)
	for found.Next() {
		if err := read(found.Scan); err != nil {
			return err
		}
	}
	return found.Err()
}

// closeRows closes either kind of rows: only one of them returns an error, and
// Err has told it already.
func closeRows(found rows) {
	switch r := found.(type) {
	case interface{ Close() error }:
		_ = r.Close()
	case interface{ Close() }:
		r.Close()
	}
}
