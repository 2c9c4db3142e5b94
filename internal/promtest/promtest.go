// Package promtest has alerting rules judged by Prometheus itself: tests hand in
// series and say which alerts fire when, and promtool, found or installed, says
// whether they do.
package promtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/apt"
)

// Case is a stretch of time with its figures.
type Case struct {
	Name string
	// Interval is the time between two values.
	Interval time.Duration
	// Series are the values by series, such as up{job="pawl"}, in promtool's
	// notation: "0 1", "_" for none, "0+1x5".
	Series map[string]string
	// Firing are the alerts that fire at moments after the beginning: these and no
	// others.
	Firing map[time.Duration][]string
}

// Check has promtool read rules and fails the test with what it finds wrong in
// them.
func Check(t testing.TB, rules string) {
	t.Helper()
	run(t, "check", "rules", rules)
}

// Test holds a file of rules, evaluated every while, against cases.
func Test(t testing.TB, rules string, every time.Duration, cases ...Case) {
	t.Helper()
	type sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	type series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	type query struct {
		Expr    string   `json:"expr"`
		At      string   `json:"eval_time"`
		Samples []sample `json:"exp_samples"`
	}
	type test struct {
		Name     string   `json:"name"`
		Interval string   `json:"interval"`
		Series   []series `json:"input_series"`
		Queries  []query  `json:"promql_expr_test"`
	}
	file := struct {
		Rules []string `json:"rule_files"`
		Every string   `json:"evaluation_interval"`
		Tests []test   `json:"tests"`
	}{Every: every.String()}
	path, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	file.Rules = []string{path}
	for _, c := range cases {
		one := test{Name: c.Name, Interval: c.Interval.String(), Series: []series{}}
		for name, values := range c.Series {
			one.Series = append(one.Series, series{name, values})
		}
		slices.SortFunc(one.Series, func(a, b series) int { return cmp.Compare(a.Series, b.Series) })
		for at, alerts := range c.Firing {
			q := query{Expr: `max by (alertname) (ALERTS{alertstate="firing"})`, At: at.String(), Samples: []sample{}}
			for _, name := range alerts {
				q.Samples = append(q.Samples, sample{fmt.Sprintf("{alertname=%q}", name), 1})
			}
			one.Queries = append(one.Queries, q)
		}
		slices.SortFunc(one.Queries, func(a, b query) int { return cmp.Compare(a.At, b.At) })
		file.Tests = append(file.Tests, one)
	}
	// JSON is YAML.
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "test", "rules", path)
}

func run(t testing.TB, args ...string) {
	t.Helper()
	tool, err := apt.Program(t.Context(), "prometheus", "promtool")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", args[0], err, out)
	}
}
