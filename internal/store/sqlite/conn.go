package sqlite

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// maxStatements bounds the prepared statements of one connection. The fixed
// ones and the common combinations of filters and changes stay far below it.
const maxStatements = 512

// pragmas hold for every connection; foreign_keys and synchronous are settings
// of the connection, not of the file (4-standards DB-07, DB-08).
const pragmas = `PRAGMA busy_timeout = 5000;
PRAGMA foreign_keys = ON;
PRAGMA synchronous = FULL;
PRAGMA trusted_schema = OFF;`

// conn is one connection with its prepared statements, used by one goroutine
// at a time.
type conn struct {
	db      *sqlite3.Conn
	stmts   map[string]*sqlite3.Stmt
	updates map[updateKey]string

	// Scratch space for the row in hand.
	cols         columns
	before, args []value
}

// updateKey names an UPDATE: its table and the set of columns that it sets.
type updateKey struct {
	table string
	set   columnSet
}

func connect(ctx context.Context, path string, flags sqlite3.OpenFlag, extra string) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db, err := sqlite3.OpenFlags(path, flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	if err := db.Exec(pragmas + extra); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	// Plans must not depend on what is bound: where a column of a partial index is
	// compared with a parameter, SQLite compiles the statement anew at every run.
	if _, err := db.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &conn{db: db, stmts: make(map[string]*sqlite3.Stmt), updates: make(map[updateKey]string)}, nil
}

// prepare compiles a statement once.
func (c *conn) prepare(sql string) (*sqlite3.Stmt, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	if len(c.stmts) >= maxStatements {
		c.evict()
	}
	s, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	c.stmts[sql] = s
	return s, nil
}

func (c *conn) evict() {
	for sql, s := range c.stmts {
		if !s.Busy() {
			_ = s.Close()
			delete(c.stmts, sql)
			return
		}
	}
}

// exec runs a statement that returns no rows.
func (c *conn) exec(sql string, args []value) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer release(s)
	if err := bind(s, args); err != nil {
		return err
	}
	return s.Exec()
}

// each calls row for each row of a query.
func (c *conn) each(sql string, args []value, row func(*sqlite3.Stmt)) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer release(s)
	if err := bind(s, args); err != nil {
		return err
	}
	for s.Step() {
		row(s)
	}
	return s.Err()
}

// release ends a statement's run: one that is left open pins its snapshot,
// and the log could not be restarted. Its error is that of the run, already
// returned.
func release(s *sqlite3.Stmt) {
	_ = s.Reset()
	_ = s.ClearBindings()
}

// begin opens a transaction under a context that interrupts what runs in it.
func (c *conn) begin(ctx context.Context, sql string) error {
	c.db.SetInterrupt(ctx)
	return c.exec(sql, nil)
}

// end closes a transaction, interrupted or not.
func (c *conn) end(sql string) error {
	c.db.SetInterrupt(context.Background())
	if c.db.GetAutocommit() {
		return nil
	}
	return c.exec(sql, nil)
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}
