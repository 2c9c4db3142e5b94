package postgres

import (
	"fmt"
	"strings"
)

// relation is a table of rows. It is all that is needed where rows are only
// ever added.
type relation[R any] struct {
	name   string
	fields func(*columns, *R)
	// names and kinds are the columns, list is the names joined by commas.
	names        []string
	kinds        []kind
	list, insert string
}

func newRelation[R any](name string, fields func(*columns, *R)) relation[R] {
	var c columns
	var row R
	fields(&c, &row)
	list := strings.Join(c.names, ", ")
	return relation[R]{
		name: name, fields: fields, names: c.names, kinds: c.kinds, list: list,
		insert: fmt.Sprintf("INSERT INTO %s (%s) SELECT * FROM unnest(%s)", name, list, marks(c.kinds)),
	}
}

// marks are arguments that are arrays of the given kinds.
func marks(kinds []kind) string {
	var b strings.Builder
	for i, k := range kinds {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d::%s[]", i+1, k.name)
	}
	return b.String()
}

// keepingFirst makes adding a row again do nothing.
func (t relation[R]) keepingFirst() relation[R] {
	t.insert += " ON CONFLICT DO NOTHING"
	return t
}

// counting makes adding a row again change some of its columns.
func (t relation[R]) counting(key string, changed ...string) relation[R] {
	for i, name := range changed {
		changed[i] = name + " = excluded." + name
	}
	t.insert += " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(changed, ", ")
	return t
}

// read makes the row of what a SELECT of the columns gave.
func (t *relation[R]) read(row [][]byte) R {
	var r R
	t.fields(&columns{mode: reading, row: row}, &r)
	return r
}

// sets is a writer of rows; a limit other than zero ends it after so many
// columns.
func (t *relation[R]) writer(limit int) *columns {
	kinds := t.kinds
	if limit > 0 {
		kinds = kinds[:limit]
	}
	c := &columns{mode: writing, limit: limit, sets: make([]array, len(kinds))}
	for i, k := range kinds {
		c.sets[i].kind = k
	}
	return c
}

// add writes one more row.
func (t *relation[R]) add(c *columns, row *R) {
	c.next = 0
	t.fields(c, row)
}

// values are the arguments that the rows written make.
func (c *columns) values() []value {
	all := make([]value, len(c.sets))
	for i := range c.sets {
		all[i] = c.sets[i].value()
	}
	return all
}

func (c *columns) rows() int { return c.sets[0].n }

// table is a relation whose rows are found and changed by key.
type table[K, R comparable] struct {
	relation[R]
	// keys is how many leading columns are the key.
	keys int
	// row makes a row of which only the key is set, key is a row's key.
	row func(K) R
	key func(R) K
	// claimed says that absent rows are locked by a placeholder, since whoever
	// finds them absent may make them.
	claimed bool

	// get reads rows by their keys, lock locks them too, in the order of keys.
	get, lock string
	// place makes placeholders of what is absent and tells which, remove takes
	// them away.
	place, remove string
	update        string
}

// newTable makes a table and its statements. Rows are looked up one by one along
// the key's index, by a subquery that cannot be turned around: a plan that is
// kept from when the table was nearly empty would walk over it for each key.
// What is changed was locked before, so a row stays where it was found (ctid).
func newTable[K, R comparable](name string, keys int, row func(K) R, key func(R) K, fields func(*columns, *R)) table[K, R] {
	t := table[K, R]{relation: newRelation(name, fields), keys: keys, row: row, key: key}
	var asked, match, set []string
	for i, column := range t.names {
		if i >= keys {
			set = append(set, fmt.Sprintf("%s = k.%s", column, column))
			continue
		}
		asked = append(asked, column)
		match = append(match, fmt.Sprintf("x.%s = k.%s", column, column))
	}
	of := strings.Join(asked, ", ")
	wanted := fmt.Sprintf("unnest(%s) AS k(%s)", marks(t.kinds[:keys]), of)
	one := fmt.Sprintf("FROM %s x WHERE %s OFFSET 0", name, strings.Join(match, " AND "))
	if keys == 1 {
		t.get = fmt.Sprintf("SELECT %s FROM %s t WHERE t.%s = ANY($1::%s[])", t.columns("t"), name, t.names[0], t.kinds[0].name)
		t.lock = t.get + " ORDER BY t." + t.names[0] + " FOR NO KEY UPDATE"
	} else {
		t.get = fmt.Sprintf("SELECT t.* FROM %s, LATERAL (SELECT %s %s) t", wanted, t.columns("x"), one)
		t.lock = fmt.Sprintf("SELECT t.* FROM (SELECT * FROM %s ORDER BY %s) k, LATERAL (SELECT %s %s FOR NO KEY UPDATE) t",
			wanted, numbers(keys), t.columns("x"), one)
	}
	t.place = fmt.Sprintf("INSERT INTO %s (%s) SELECT * FROM %s ORDER BY %s ON CONFLICT DO NOTHING RETURNING %[2]s", name, of, wanted, numbers(keys))
	t.remove = fmt.Sprintf("DELETE FROM %s t USING %s, LATERAL (SELECT x.ctid %s) f WHERE t.ctid = f.ctid", name, wanted, one)
	t.update = fmt.Sprintf("UPDATE %s t SET %s FROM unnest(%s) AS k(%s), LATERAL (SELECT x.ctid %s) f WHERE t.ctid = f.ctid",
		name, strings.Join(set, ", "), marks(t.kinds), t.list, one)
	return t
}

// claims makes a table one whose absent rows are locked too.
func (t table[K, R]) claims() table[K, R] {
	t.claimed = true
	return t
}

// columns are all columns under an alias.
func (t *relation[R]) columns(alias string) string {
	return alias + "." + strings.Join(t.names, ", "+alias+".")
}

func numbers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(all, ", ")
}

// written are the arguments for rows found by key.
func (t *table[K, R]) written(keys []K) []value {
	c := t.writer(t.keys)
	for _, k := range keys {
		row := t.row(k)
		t.add(c, &row)
	}
	return c.values()
}
