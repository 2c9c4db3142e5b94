package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// fill puts finished operations into the ledger: one is lived through, the
// node is stopped, and its rows are written again under other ids. They are
// only there to be in the way.
func (b *bench) fill(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	if err := b.submitOne(ctx, 0, "fill", false); err != nil {
		return err
	}
	if err := b.drained(ctx); err != nil {
		return err
	}
	b.stop()
	db, err := sqlite3.Open(filepath.Join(b.dir, b.name+"-1", "pawl.db"))
	if err != nil {
		return err
	}
	if err := errors.Join(db.Exec(copies(n)), db.Close()); err != nil {
		return err
	}
	return b.serve()
}

// copies are the statements that multiply every row of a finished operation.
// An id keeps its first six bytes, the time, so that the copies sort together;
// the rest is a number and what tells rows of one operation apart.
func copies(n int) string {
	id := func(column string) string {
		return fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN NULL ELSE unhex(hex(substr(%[1]s,1,6))||printf('70%%08x',n.i)||hex(substr(%[1]s,12,5))) END", column)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "PRAGMA synchronous=OFF; BEGIN; CREATE TEMP TABLE numbers AS WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i < %d) SELECT i FROM s;\n", n)
	for _, t := range []struct{ name, ids, own string }{
		{"operations", "id result", "task"},
		{"events", "id operation result", "task external_id"},
		{"event_keys", "event", "task external_id"},
		{"tasks", "operation", "task"},
		{"idempotency_keys", "operation", "value"},
		{"deliveries", "id event operation", ""},
		{"attempts", "id delivery", ""},
		{"history", "operation id event", ""},
		{"entries", "id operation", ""},
		{"payloads", "owner", ""},
	} {
		fmt.Fprintf(&b, "CREATE TEMP TABLE c_%[1]s AS SELECT * FROM %[1]s WHERE %[2]s;\n", t.name, selection[t.name])
		set := []string{}
		for _, c := range strings.Fields(t.ids) {
			set = append(set, c+"="+id(c))
		}
		for _, c := range strings.Fields(t.own) {
			set = append(set, fmt.Sprintf("%[1]s=CASE WHEN %[1]s='' THEN '' ELSE %[1]s||'-'||n.i END", c))
		}
		fmt.Fprintf(&b, "CREATE TEMP TABLE d_%[1]s AS SELECT c.*, n.i AS copy_no FROM c_%[1]s c, numbers n;\n", t.name)
		for i, s := range set {
			set[i] = strings.ReplaceAll(s, "n.i", "copy_no")
		}
		fmt.Fprintf(&b, "UPDATE d_%[1]s SET %[2]s;\nALTER TABLE d_%[1]s DROP COLUMN copy_no;\nINSERT OR IGNORE INTO %[1]s SELECT * FROM d_%[1]s;\nDROP TABLE d_%[1]s;\n", t.name, strings.Join(set, ", "))
	}
	b.WriteString("COMMIT;\n")
	return b.String()
}

// selection finds the rows of the finished operations.
var selection = map[string]string{
	"operations":       "state = 4",
	"events":           "operation IS NOT NULL",
	"event_keys":       "1",
	"tasks":            "operation IS NOT NULL",
	"idempotency_keys": "purpose = 'operation'",
	"deliveries":       "operation IS NOT NULL",
	"attempts":         "1",
	"history":          "1",
	"entries":          "operation IS NOT NULL",
	"payloads":         "1",
}
