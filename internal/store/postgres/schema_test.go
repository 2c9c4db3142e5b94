package postgres

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// own are the tables that one driver keeps for itself.
var own = []string{"batches", "endpoint_sets", "goose_db_version", "goose_lock", "nodes"}

// families are the types that stand for one of SQLite's.
var families = map[string][]string{
	"INTEGER": {"bigint", "integer", "smallint", "boolean", "timestamp with time zone"},
	"TEXT":    {"text"},
	"BLOB":    {"uuid", "bytea"},
}

var (
	tableStart  = regexp.MustCompile(`^CREATE TABLE (\w+) \($`)
	columnLine  = regexp.MustCompile(`^\t([a-z_0-9]+) (INTEGER|TEXT|BLOB)\b`)
	indexedLine = regexp.MustCompile(`^CREATE INDEX (\w+) ON (\w+) `)
)

// sqliteSchema reads the columns of each table, with their types, and the
// indexes of the schema that SQLite's migrations lead to.
func sqliteSchema(t *testing.T) (columns map[string]map[string]string, indexes []string) {
	t.Helper()
	text, err := os.ReadFile("../sqlite/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	columns = map[string]map[string]string{}
	var table string
	for line := range strings.Lines(string(text)) {
		if m := tableStart.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			table, columns[m[1]] = m[1], map[string]string{}
		} else if m := columnLine.FindStringSubmatch(line); m != nil {
			columns[table][m[1]] = m[2]
		} else if m := indexedLine.FindStringSubmatch(line); m != nil && !slices.Contains(own, m[2]) {
			indexes = append(indexes, m[1])
		}
	}
	for _, table := range own {
		delete(columns, table)
	}
	slices.Sort(indexes)
	return columns, indexes
}

// TestSchemaOfBothDrivers: every table has the same columns and indexes in both
// drivers, so that none is forgotten in one of them.
func TestSchemaOfBothDrivers(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	got := map[string]map[string]string{}
	read := func(sql string, row func(a, b, c string)) {
		t.Helper()
		err := d.each(context.Background(), "read the schema", sql, nil, func(r [][]byte) error {
			row(string(r[0]), string(r[1]), string(r[2]))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Partitions have the columns of what they are parts of.
	read(`SELECT c.table_name::text, c.column_name::text, c.data_type::text FROM information_schema.columns c
		JOIN pg_class r ON r.oid = c.table_name::regclass WHERE c.table_schema = 'public' AND NOT r.relispartition`,
		func(table, column, kind string) {
			if slices.Contains(own, table) {
				return
			}
			if got[table] == nil {
				got[table] = map[string]string{}
			}
			got[table][column] = kind
		})
	want, wantIndexes := sqliteSchema(t)
	if len(want) < 20 {
		t.Fatalf("only %d tables of SQLite were found", len(want))
	}
	for table, columns := range want {
		for column, kind := range columns {
			if there := got[table][column]; !slices.Contains(families[kind], there) {
				t.Errorf("%s.%s is %s in SQLite and %q here", table, column, kind, there)
			}
			delete(got[table], column)
		}
	}
	for table, columns := range got {
		for column := range columns {
			t.Errorf("%s.%s is not in SQLite", table, column)
		}
	}
	var indexes []string
	read(`SELECT indexname::text, tablename::text, '' FROM pg_indexes i JOIN pg_class r ON r.oid = i.tablename::regclass
		WHERE schemaname = 'public' AND NOT r.relispartition AND indexname NOT LIKE '%_pkey'`,
		func(index, table, _ string) {
			if !slices.Contains(own, table) {
				indexes = append(indexes, index)
			}
		})
	slices.Sort(indexes)
	if !slices.Equal(indexes, wantIndexes) {
		t.Errorf("indexes\n%v, and in SQLite\n%v", indexes, wantIndexes)
	}
}
