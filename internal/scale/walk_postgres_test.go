package scale_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
)

// rowsMost is how many rows one step of a plan may touch. The planner may find a
// tenant's rows along the ids where those are many, and passes the others' then.
const rowsMost = 5 * most

// touched is what a statement read at most in one run.
type touched struct {
	rows  float64
	where string
}

// walkPostgres has the server explain each statement after it ran, with the rows
// that each step of its plan touched.
func walkPostgres(t *testing.T) {
	s, err := pgtest.Start(t.Context(), "shared_preload_libraries=auto_explain", "auto_explain.log_analyze=on", "auto_explain.log_timing=off",
		"auto_explain.log_format=json", "log_error_verbosity=terse")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	l := &large{
		config: fmt.Sprintf("database: %s\ndata: %s\nsecrets: base64key://%s\n", s.URL(), t.TempDir(), base64.StdEncoding.EncodeToString(make([]byte, 32))),
		open: func(ctx context.Context) (store.Driver, error) {
			return postgres.Open(ctx, s.URL(), postgres.Options{})
		},
		// As the server itself would do in a while.
		watch: func(t *testing.T) {
			onServer(t, s.URL(), "VACUUM ANALYZE", "ALTER DATABASE postgres SET auto_explain.log_min_duration = 0")
		},
	}
	l.walk(t)

	seen := make(map[string]touched)
	for plan := range plans(t, s.Log()) {
		rows, where := plan.Plan.most()
		if was, ok := seen[plan.Text]; !ok || was.rows < rows {
			seen[plan.Text] = touched{rows, where}
		}
	}
	statements := slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Compare(seen[b].rows, seen[a].rows) })
	if len(statements) == 0 {
		t.Fatalf("no statement was explained:\n%.2000s", s.Log())
	}
	t.Logf("%d statements; the longest touched %.0f rows: %.300s", len(statements), seen[statements[0]].rows, statements[0])
	expectIdle(t, func(piece string) bool {
		return slices.ContainsFunc(statements, func(sql string) bool { return strings.Contains(sql, piece) })
	})
	for _, sql := range statements {
		if did := seen[sql]; did.rows > rowsMost {
			t.Errorf("%.0f rows of %s: %s", did.rows, did.where, sql)
		}
	}
}

func onServer(t *testing.T, url string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(sql, err)
		}
	}
}

// explained is one statement that ran.
type explained struct {
	Text string `json:"Query Text"`
	Plan node
}

// node is one step of a plan. Its rows are those of one loop, on average.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Checked  float64 `json:"Rows Removed by Index Recheck"`
	Plans    []node
}

// most is what the hardest step of a plan touched, and what it is.
func (n node) most() (rows float64, where string) {
	rows, where = (n.Rows+n.Filtered+n.Checked)*n.Loops, strings.TrimSpace(n.Relation+" ("+n.Type+")")
	for _, below := range n.Plans {
		if more, there := below.most(); more > rows {
			rows, where = more, there
		}
	}
	return rows, where
}

// plans are those in a server's log, where the lines of one begin with tabs.
func plans(t *testing.T, log string) func(func(explained) bool) {
	return func(yield func(explained) bool) {
		var text strings.Builder
		for line := range strings.SplitSeq(log+"\n", "\n") {
			if strings.HasPrefix(line, "\t") && text.Len() > 0 {
				text.WriteString(line)
				continue
			}
			if text.Len() > 0 {
				var found explained
				if err := json.Unmarshal([]byte(text.String()), &found); err != nil {
					t.Fatalf("%v: %.1000s", err, text.String())
				}
				if !yield(found) {
					return
				}
				text.Reset()
			}
			if strings.Contains(line, "duration: ") && strings.HasSuffix(line, "plan:") {
				text.WriteString(" ")
			}
		}
	}
}

// TestPlansAreRead: the hardest step of a plan is found in a log.
func TestPlansAreRead(t *testing.T) {
	log := "x LOG:  duration: 0.1 ms  plan:\n\t{\n\t  \"Query Text\": \"SELECT 1\",\n\t  \"Plan\": {\"Node Type\": \"Limit\", \"Actual Rows\": 10, \"Actual Loops\": 1, \"Plans\": [\n" +
		"\t    {\"Node Type\": \"Seq Scan\", \"Relation Name\": \"events\", \"Actual Rows\": 10, \"Actual Loops\": 2, \"Rows Removed by Filter\": 90}]}\n\t}\nx LOG:  other\n"
	var got []string
	for p := range plans(t, log) {
		rows, where := p.Plan.most()
		got = append(got, p.Text+" "+strconv.Itoa(int(rows))+" "+where)
	}
	if want := []string{"SELECT 1 200 events (Seq Scan)"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
