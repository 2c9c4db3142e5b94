package sqlite

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl/internal/ledger"
)

// relation is a table of rows. It is all that is needed where rows are only
// ever added.
type relation[R any] struct {
	name   string
	fields func(*columns, *R)
	// names are the columns, list is them joined by commas.
	names        []string
	list, insert string
}

func newRelation[R any](name string, fields func(*columns, *R)) relation[R] {
	var c columns
	var row R
	fields(&c, &row)
	list := strings.Join(c.names, ", ")
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(c.names)), ", ")
	return relation[R]{
		name: name, fields: fields, names: c.names, list: list,
		insert: fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", name, list, marks),
	}
}

// keepingFirst makes adding a row again do nothing.
func (t relation[R]) keepingFirst() relation[R] {
	t.insert += " ON CONFLICT DO NOTHING"
	return t
}

// counting makes adding a row again change some of its columns.
func (t relation[R]) counting(key string, changed ...string) relation[R] {
	t.insert += " ON CONFLICT (" + key + ") DO UPDATE SET "
	for i, name := range changed {
		if i > 0 {
			t.insert += ", "
		}
		t.insert += name + " = excluded." + name
	}
	return t
}

// table is a relation whose rows are found and changed by key.
type table[K, R comparable] struct {
	relation[R]
	// keys is how many leading columns are the key.
	keys int
	// row makes a row of which only the key is set.
	row func(K) R
	get string
	// where finds a row by its key.
	where string
}

// maxColumns is how many columns a table may have.
const maxColumns = 128

// columnSet is a set of columns, by their places. It is comparable, as names of
// statements must be.
type columnSet [maxColumns / 64]uint64

func (s *columnSet) add(i int)     { s[i/64] |= 1 << (i % 64) }
func (s columnSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func newTable[K, R comparable](name string, keys int, row func(K) R, fields func(*columns, *R)) table[K, R] {
	rel := newRelation(name, fields)
	if len(rel.names) > maxColumns {
		panic("sqlite: " + name + " has more columns than a change can name")
	}
	where := " WHERE " + strings.Join(rel.names[:keys], " = ? AND ") + " = ?"
	return table[K, R]{
		relation: rel, keys: keys, row: row, where: where,
		get: "SELECT " + rel.list + " FROM " + name + where,
	}
}

// add inserts a row.
func add[R any](c *conn, t *relation[R], row *R) error {
	return c.exec(t.insert, write(c, t, row, 0))
}

// write is the row's columns as values; they are good until the next call.
func write[R any](c *conn, t *relation[R], row *R, limit int) []value {
	c.cols = columns{mode: writing, values: c.cols.values[:0], limit: limit}
	t.fields(&c.cols, row)
	return c.cols.values
}

// change updates the columns that differ. Columns that stay are left out,
// since SQLite rewrites the entries of every index on a column that is set,
// be it to the same value.
func change[K, R comparable](c *conn, t *table[K, R], ch ledger.Change[R]) error {
	c.before = append(c.before[:0], write(c, &t.relation, &ch.Was, 0)...)
	after := write(c, &t.relation, &ch.Now, 0)
	c.args = c.args[:0]
	var set columnSet
	for i := range after {
		if after[i] != c.before[i] {
			set.add(i)
			c.args = append(c.args, after[i])
		}
	}
	c.args = append(c.args, after[:t.keys]...)
	if err := c.exec(updateOf(c, t, set), c.args); err != nil {
		return err
	}
	if n := c.db.Changes(); n != 1 {
		return fmt.Errorf("update of %s changed %d rows", t.name, n)
	}
	return nil
}

// updateOf is the statement that sets some columns.
func updateOf[K, R comparable](c *conn, t *table[K, R], columns columnSet) string {
	key := updateKey{t.name, columns}
	if sql, ok := c.updates[key]; ok {
		return sql
	}
	var set []string
	for i, name := range t.names {
		if columns.has(i) {
			set = append(set, name+" = ?")
		}
	}
	sql := "UPDATE " + t.name + " SET " + strings.Join(set, ", ") + t.where
	if len(c.updates) >= maxStatements {
		clear(c.updates)
	}
	c.updates[key] = sql
	return sql
}

// find reads the row of a key.
func find[K, R comparable](c *conn, t *table[K, R], k K) (row R, ok bool, err error) {
	empty := t.row(k)
	err = c.each(t.get, write(c, &t.relation, &empty, t.keys), func(s *sqlite3.Stmt) {
		row, ok = read(c, &t.relation, s), true
	})
	return row, ok, err
}

// query reads the rows that a condition after FROM selects.
func query[R any](c *conn, t *relation[R], rest string, args ...value) ([]R, error) {
	var rows []R
	err := c.each("SELECT "+t.list+" FROM "+t.name+" "+rest, args, func(s *sqlite3.Stmt) {
		rows = append(rows, read(c, t, s))
	})
	return rows, err
}

func read[R any](c *conn, t *relation[R], s *sqlite3.Stmt) R {
	var row R
	c.cols = columns{mode: reading, stmt: s, values: c.cols.values}
	t.fields(&c.cols, &row)
	return row
}
