package sqlite

import (
	"os"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// The schema after all migrations is kept beside them, so that a migration is
// reviewed by what it leads to.
func TestSchema(t *testing.T) {
	want, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	err = openTest(t, Options{}).write.each(`SELECT sql FROM sqlite_schema
		WHERE sql IS NOT NULL AND name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%' ORDER BY tbl_name, type DESC, name`, nil,
		func(s *sqlite3.Stmt) { got.WriteString(s.ColumnText(0) + ";\n") })
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the migrations lead to another schema than schema.sql:\n%s", got.String())
	}
}
