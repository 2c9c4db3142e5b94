package pawl_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	metricsPage    = "docs/metrics.md"
	metricsHeading = "| metric | kind | labels | what it is |\n| --- | --- | --- | --- |\n"
)

var writeMetrics = flag.Bool("write-metrics", false, "write the table of docs/metrics.md anew")

// described is a registration with its help, as [registration] finds them.
var described = regexp.MustCompile(`f\.(gauge|counter|histogram)s?\("([a-z_]+)", "([^"]*)"(.*)\)`)

// The table of docs/metrics.md has every metric, as /metrics describes it.
func TestMetricsTableIsWhole(t *testing.T) {
	var rows []string
	for _, path := range pages(t, "internal/telemetry/*.go") {
		for _, m := range described.FindAllStringSubmatch(readText(t, path), -1) {
			var labels []string
			for _, l := range quotedWord.FindAllStringSubmatch(m[4], -1) {
				labels = append(labels, "`"+l[1]+"`")
			}
			rows = append(rows, fmt.Sprintf("| `pawl_%s` | %s | %s | %s |\n", m[2], m[1], strings.Join(labels, ", "), m[3]))
		}
	}
	if len(rows) < 40 {
		t.Fatalf("%d metrics found: the pattern no longer fits internal/telemetry", len(rows))
	}
	slices.Sort(rows)
	table := metricsHeading + strings.Join(rows, "")
	if *writeMetrics {
		above, _, _ := strings.Cut(readText(t, metricsPage), metricsHeading)
		if err := os.WriteFile(metricsPage, []byte(above+table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page := readText(t, metricsPage); !strings.HasSuffix(page, "\n\n"+table) {
		t.Errorf("%s does not end with what is measured; write it anew: go test . -run TestMetricsTable -count=1 -args -write-metrics", metricsPage)
	}
}
