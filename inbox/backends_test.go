package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// insertCertificate is the caller's own table.
const (
	certificates      = `CREATE TABLE certificates (student TEXT PRIMARY KEY)`
	insertCertificate = `INSERT INTO certificates (student) VALUES ('%s')`
)

// stage is a caller's application on one kind of database: a table of its own
// and an inbox.
type stage interface {
	apply(ctx context.Context, e inbox.Event, work work) (inbox.Outcome, error)
	accept(ctx context.Context, e inbox.Event) (inbox.Outcome, error)
	work(ctx context.Context, work work) (int, error)
	drain(ctx context.Context, do func(context.Context, inbox.Effect) error) (int, error)
	operator
}

// operator is what a person sees and does.
type operator interface {
	Sweep(ctx context.Context, age duration, limit int) ([]inbox.Record, error)
	Get(ctx context.Context, source, id string) (inbox.Record, error)
	Retry(ctx context.Context, source, id string) error
	certificates(t *testing.T) int
}

// work is a caller's function, with insert standing for its own statements.
type work func(insert func(statement string) error, e inbox.Event, effects *inbox.Effects) ([]byte, error)

// backends runs a test on every kind of database.
func backends(t *testing.T, opts inbox.Options, test func(t *testing.T, s stage)) {
	t.Run("sqlite", func(t *testing.T) {
		file := "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate"
		test(t, onSQL(t, "sqlite3", file, inbox.SQLite, opts))
	})
	t.Run("postgres by database/sql", func(t *testing.T) {
		test(t, onSQL(t, "pgx", pgtest.Database(t), inbox.PostgreSQL, opts))
	})
	t.Run("postgres by pgx", func(t *testing.T) {
		test(t, onPgx(t, pgtest.Database(t), opts))
	})
}

type app[T any] struct {
	*inbox.Inbox[T]
	run   func(ctx context.Context, tx T, statement string) error
	count func(ctx context.Context) (int, error)
}

func onSQL(t *testing.T, driver, dsn string, dialect inbox.Dialect, opts inbox.Options) stage {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	in := inbox.New(inbox.SQL(db, dialect), opts)
	a := app[*sql.Tx]{
		Inbox: in,
		run: func(ctx context.Context, tx *sql.Tx, statement string) error {
			_, err := tx.ExecContext(ctx, statement)
			return err
		},
		count: func(ctx context.Context) (n int, err error) {
			err = db.QueryRowContext(ctx, `SELECT count(*) FROM certificates`).Scan(&n)
			return n, err
		},
	}
	if _, err := db.Exec(certificates); err != nil {
		t.Fatal(err)
	}
	migrate(t, in)
	return a
}

func onPgx(t *testing.T, url string, opts inbox.Options) stage {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	in := inbox.New(inbox.Pgx(pool.Begin), opts)
	a := app[pgx.Tx]{
		Inbox: in,
		run: func(ctx context.Context, tx pgx.Tx, statement string) error {
			_, err := tx.Exec(ctx, statement)
			return err
		},
		count: func(ctx context.Context) (n int, err error) {
			err = pool.QueryRow(ctx, `SELECT count(*) FROM certificates`).Scan(&n)
			return n, err
		},
	}
	if _, err := pool.Exec(t.Context(), certificates); err != nil {
		t.Fatal(err)
	}
	migrate(t, in)
	return a
}

func migrate[T any](t *testing.T, in *inbox.Inbox[T]) {
	t.Helper()
	for range 2 { // it may be run again
		if err := in.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (a app[T]) fn(w work) inbox.Func[T] {
	return func(ctx context.Context, tx T, e inbox.Event, effects *inbox.Effects) ([]byte, error) {
		return w(func(statement string) error { return a.run(ctx, tx, statement) }, e, effects)
	}
}

func (a app[T]) apply(ctx context.Context, e inbox.Event, w work) (inbox.Outcome, error) {
	return a.Apply(ctx, e, a.fn(w))
}

func (a app[T]) accept(ctx context.Context, e inbox.Event) (inbox.Outcome, error) {
	return a.Accept(ctx, e)
}

func (a app[T]) work(ctx context.Context, w work) (int, error) { return a.Work(ctx, a.fn(w)) }

func (a app[T]) drain(ctx context.Context, do func(context.Context, inbox.Effect) error) (int, error) {
	return a.Drain(ctx, do)
}

func (a app[T]) certificates(t *testing.T) int {
	t.Helper()
	n, err := a.count(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// certify issues one certificate per student; the statement fails for a
// student who has one, as it would in a table without the primary key do harm.
func certify(insert func(string) error, e inbox.Event, _ *inbox.Effects) ([]byte, error) {
	return []byte("certificate of " + e.ID), insert(fmt.Sprintf(insertCertificate, e.ID))
}
