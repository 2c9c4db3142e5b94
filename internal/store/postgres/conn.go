package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxStatements bounds the prepared statements of one connection. The fixed
// ones and the common combinations of filters stay far below it; what comes
// later is sent unnamed.
const maxStatements = 256

// conn is one connection, used by one goroutine at a time.
type conn struct {
	pgx *pgx.Conn
	pg  *pgconn.PgConn
	// prepared are the names of the prepared statements by their text; nil where
	// none may be prepared, since the next one may run on another connection of
	// a pooler.
	prepared map[string]string
	// broken is set by an error of the connection itself.
	broken bool
}

// preparedData is where a connection keeps its prepared statements.
const preparedData = "pawl.prepared"

func (p *pool) conn(c *pgx.Conn) *conn {
	out := &conn{pgx: c, pg: c.PgConn()}
	if p.prepares {
		data := out.pg.CustomData()
		prepared, ok := data[preparedData].(map[string]string)
		if !ok {
			prepared = make(map[string]string)
			data[preparedData] = prepared
		}
		out.prepared = prepared
	}
	return out
}

// prepare is the name of a statement on this connection; "" is none.
func (c *conn) prepare(ctx context.Context, sql string) (string, error) {
	if c.prepared == nil {
		return "", nil
	}
	if name, ok := c.prepared[sql]; ok || len(c.prepared) >= maxStatements {
		return name, nil
	}
	sd, err := c.pgx.Prepare(ctx, sql, sql)
	if err != nil {
		return "", c.failed(err)
	}
	c.prepared[sql] = sd.Name
	return sd.Name, nil
}

// failed notes whether an error is of the connection.
func (c *conn) failed(err error) error {
	if err != nil && c.pg.IsClosed() {
		c.broken = true
	}
	return err
}

// pipe gathers statements that go to the server together and run in their
// order. The first that fails ends it, and fails what surrounds it.
type pipe struct {
	ctx   context.Context
	c     *conn
	batch pgconn.Batch
	steps []step
	err   error
}

type step struct {
	// row is given each row of the answer, good during the call; nil drops them.
	row func([][]byte) error
	// done is told how many rows there were or were changed.
	done func(int64) error
}

func (c *conn) pipe(ctx context.Context) *pipe { return &pipe{ctx: ctx, c: c} }

// inBinary asks for arguments and answers in binary form.
var inBinary = []int16{pgx.BinaryFormatCode}

// query adds a statement that gives rows.
func (p *pipe) query(sql string, args []value, row func([][]byte) error) {
	p.add(sql, args, step{row: row})
}

// exec adds a statement that changes rows.
func (p *pipe) exec(sql string, args []value, done func(int64) error) {
	p.add(sql, args, step{done: done})
}

func (p *pipe) add(sql string, args []value, s step) {
	if p.err != nil {
		return
	}
	var name string
	if name, p.err = p.c.prepare(p.ctx, sql); p.err != nil {
		return
	}
	raw := make([][]byte, len(args))
	for i, a := range args {
		raw[i] = a
	}
	if name != "" {
		p.batch.ExecPrepared(name, raw, inBinary, inBinary)
	} else {
		p.batch.ExecParams(sql, raw, nil, inBinary, inBinary)
	}
	p.steps = append(p.steps, s)
}

// run sends what was gathered and reads all answers.
func (p *pipe) run() error {
	if p.err != nil || len(p.steps) == 0 {
		return p.err
	}
	steps := p.steps
	p.steps = nil
	results := p.c.pg.ExecBatch(p.ctx, &p.batch)
	var failed error
	for i := 0; results.NextResult(); i++ {
		err := steps[i].take(results.ResultReader())
		failed = errors.Join(failed, err)
	}
	err := results.Close()
	p.batch = pgconn.Batch{}
	return p.c.failed(errors.Join(err, failed))
}

func (s step) take(r *pgconn.ResultReader) error {
	var failed error
	for r.NextRow() {
		if s.row != nil && failed == nil {
			failed = s.row(r.Values())
		}
	}
	tag, err := r.Close()
	if err != nil {
		return nil // The whole tells it.
	}
	if s.done != nil && failed == nil {
		failed = s.done(tag.RowsAffected())
	}
	return failed
}

// each runs one statement and calls row for each row of its answer.
func (c *conn) each(ctx context.Context, sql string, args []value, row func([][]byte) error) error {
	p := c.pipe(ctx)
	p.query(sql, args, row)
	return p.run()
}

// exec runs one statement that gives no rows.
func (c *conn) exec(ctx context.Context, sql string, args ...value) error {
	return c.each(ctx, sql, args, nil)
}

// query reads the rows that a condition after FROM selects.
func query[R any](ctx context.Context, c *conn, t *relation[R], rest string, args ...value) ([]R, error) {
	var rows []R
	err := c.each(ctx, "SELECT "+t.list+" FROM "+t.name+" "+rest, args, into(t, &rows))
	return rows, err
}

// into appends each row read to a slice.
func into[R any](t *relation[R], rows *[]R) func([][]byte) error {
	return func(row [][]byte) error {
		*rows = append(*rows, t.read(row))
		return nil
	}
}

// find reads the row of a key.
func find[K, R comparable](ctx context.Context, c *conn, t *table[K, R], k K) (row R, ok bool, err error) {
	err = c.each(ctx, t.get, t.written([]K{k}), func(r [][]byte) error {
		row, ok = t.read(r), true
		return nil
	})
	return row, ok, err
}

// unnamed is a pipe whose statements are not kept prepared.
func (c *conn) unnamed(ctx context.Context) *pipe {
	once := *c
	once.prepared = nil
	return once.pipe(ctx)
}
