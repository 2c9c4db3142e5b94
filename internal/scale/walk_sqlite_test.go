package scale_test

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// stepsMost is how many steps of SQLite's machine a statement may take: a list
// takes up to nine for each row that it looks at, and forty where it looks into
// the row's metadata.
func stepsMost(sql string) int {
	if strings.Contains(sql, "json_each") {
		return 50 * most
	}
	return 12 * most
}

// openOnly are the partial indexes that hold what is open, dead or to be
// removed: their size is that of the work, and figures are counted in them.
var openOnly = regexp.MustCompile(`INDEX (operations_open|operations_due|operations_leased|operations_waiting|reviews_open|deliveries_due|deliveries_dead|` +
	`deliveries_leased|artifacts_due|artifacts_leased|events_parked|endpoints_disabled)\b`)

// traced is what a statement did at most in one run.
type traced struct {
	steps int
	page  string
}

// tracer hears of every statement of the connections to one ledger.
type tracer struct {
	mu   sync.Mutex
	on   bool
	seen map[string]traced
}

// walkSQLite has SQLite itself tell of each statement and count its steps, and
// looks at how each is carried out.
func walkSQLite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	tr := &tracer{seen: make(map[string]traced)}
	l := &large{
		config: "data: " + dir + "\n",
		open:   func(ctx context.Context) (store.Driver, error) { return sqlite.Open(ctx, dir, sqlite.Options{}) },
		watch: func(*testing.T) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.on = true
		},
	}
	sqlite3.AutoExtension(func(c *sqlite3.Conn) error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if name := c.Filename("main"); !tr.on || name == nil || !strings.HasPrefix(name.String(), dir) {
			return nil
		}
		return c.Trace(sqlite3.TRACE_PROFILE, func(_ sqlite3.TraceEvent, of, _ any) error {
			s := of.(*sqlite3.Stmt)
			tr.took(s.SQL(), s.Status(sqlite3.STMTSTATUS_VM_STEP, true), l.page.Load().(string))
			return nil
		})
	})
	l.walk(t)

	seen := tr.end()
	statements := slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Compare(seen[b].steps, seen[a].steps) })
	if len(statements) == 0 {
		t.Fatal("no statement was seen")
	}
	t.Logf("%d statements; the longest took %d steps at %s: %.300s", len(statements), seen[statements[0]].steps, seen[statements[0]].page, statements[0])
	expectIdle(t, func(piece string) bool {
		return slices.ContainsFunc(statements, func(sql string) bool { return strings.Contains(sql, piece) })
	})
	c, err := sqlite3.OpenFlags(filepath.Join(dir, "pawl.db"), sqlite3.OPEN_READONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	small := smallTables(t, c)
	for _, sql := range statements {
		if took := seen[sql]; took.steps > stepsMost(sql) {
			t.Errorf("%d steps at %s: %s", took.steps, took.page, sql)
		}
		for _, line := range planOf(t, c, sql) {
			if walks(line, small) {
				t.Errorf("walks over a whole table at %s: %s\n%s", seen[sql].page, line, sql)
			}
		}
	}
}

// took keeps the most that a statement did.
func (tr *tracer) took(sql string, steps int, page string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if was, ok := tr.seen[sql]; !ok || was.steps < steps {
		tr.seen[sql] = traced{steps, page}
	}
}

// end stops it; what was seen no longer changes.
func (tr *tracer) end() map[string]traced {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.on = false
	return tr.seen
}

// smallTables are those that did not grow with the ledger, and what statements
// call their own intermediate results.
func smallTables(t *testing.T, c *sqlite3.Conn) []string {
	small := []string{"names", "known"}
	for _, name := range column(t, c, "SELECT name FROM sqlite_schema WHERE type = 'table'", 0) {
		if len(column(t, c, "SELECT 1 FROM "+name+" LIMIT 2001", 0)) <= 2000 {
			small = append(small, name)
		}
	}
	return small
}

// column are the values of one column of a query's answer.
func column(t *testing.T, c *sqlite3.Conn, sql string, n int) (values []string) {
	t.Helper()
	s, _, err := c.Prepare(sql)
	if err != nil {
		t.Fatal(sql, err)
	}
	defer s.Close()
	for s.Step() {
		values = append(values, s.ColumnText(n))
	}
	if err := s.Err(); err != nil {
		t.Fatal(sql, err)
	}
	return values
}

// planOf is how a statement is carried out; those that are about the connection
// have no plan.
func planOf(t *testing.T, c *sqlite3.Conn, sql string) []string {
	switch word, _, _ := strings.Cut(sql, " "); word {
	case "BEGIN", "COMMIT", "ROLLBACK", "PRAGMA":
		return nil
	}
	return column(t, c, "EXPLAIN QUERY PLAN "+sql, 3)
}

// walks reports whether a line of a plan is about all of something large.
func walks(line string, small []string) bool {
	name, scan := strings.CutPrefix(line, "SCAN ")
	name, how, _ := strings.Cut(name, " ")
	switch {
	case strings.Contains(line, "AUTOMATIC"):
		return true
	case !scan, slices.Contains(small, name), strings.HasPrefix(name, "("):
		return false
	case name == "CONSTANT", strings.HasPrefix(how, "VIRTUAL TABLE"):
		return false
	}
	return !openOnly.MatchString(how)
}

// TestPlansThatWalk: what the test looks for is found.
func TestPlansThatWalk(t *testing.T) {
	for line, want := range map[string]bool{
		"SCAN operations": true, "SCAN events USING COVERING INDEX events_by_tenant": true, "SCAN o": true,
		"SEARCH p USING AUTOMATIC COVERING INDEX (owner=?)":                      true,
		"SEARCH operations USING INDEX operations_by_tenant (tenant=? AND id<?)": false, "SCAN operations USING COVERING INDEX operations_open": false,
		"SCAN tenants": false, "SCAN m VIRTUAL TABLE INDEX 1:": false, "SCAN CONSTANT ROW": false, "USE TEMP B-TREE FOR ORDER BY": false,
	} {
		if got := walks(line, []string{"tenants"}); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
