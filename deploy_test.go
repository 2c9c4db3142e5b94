package pawl_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const runbookPage = "docs/runbook.md"

var (
	// registration is how internal/telemetry makes a metric: its kind, its name
	// without the prefix, its help, and what else is in the call.
	registration = regexp.MustCompile(`f\.(gauges?|counters?|histograms?)\("([a-z_]+)", "[^"]*"(.*)\)`)
	quotedWord   = regexp.MustCompile(`"([a-z_]+)"`)

	// metricUse is a metric of ours in a query, with its selector if it has one;
	// label is one in a selector, grouping the labels of a "by".
	metricUse = regexp.MustCompile(`\b(pawl_[a-z_]+)(?:\{([^}]*)\})?`)
	label     = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping  = regexp.MustCompile(`\bby \(([a-z_, ]*)\)`)

	alertHeading = regexp.MustCompile(`(?m)^### (Pawl[A-Za-z]+)$`)
	consolePage  = regexp.MustCompile(`/console(?:/[a-z]+)?`)
)

// alert is a rule of deploy/alerts.yaml.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// Whoever is woken by an alert finds what it means and what to do.
func TestAlertsAndRunbook(t *testing.T) {
	known := registered(t)
	page := readText(t, runbookPage)
	sections := map[string]string{}
	places := alertHeading.FindAllStringSubmatchIndex(page, -1)
	for i, at := range places {
		end := len(page)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		sections[page[at[2]:at[3]]] = page[at[1]:end]
	}
	routes := readText(t, "internal/console/console.go")
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		if seen[a.Alert] {
			t.Errorf("two alerts are called %s", a.Alert)
		}
		seen[a.Alert] = true
		holdQuery(t, a.Alert, a.Expr, known)
		if a.For == "" || !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) ||
			a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s lacks for, severity, summary or description", a.Alert)
		}
		if want := runbookPage + "#" + strings.ToLower(a.Alert); a.Annotations["runbook"] != want {
			t.Errorf("the runbook of %s is %q, want %q", a.Alert, a.Annotations["runbook"], want)
		}
		section, ok := sections[a.Alert]
		if !ok {
			t.Errorf("%s has no section for %s", runbookPage, a.Alert)
			continue
		}
		for _, part := range []string{"**Means.**", "**Look.**", "**Causes.**", "**Do.**", "**Over**"} {
			if !strings.Contains(section, part) {
				t.Errorf("%s: the section of %s lacks %s", runbookPage, a.Alert, part)
			}
		}
		if !consolePage.MatchString(section) {
			t.Errorf("%s: the section of %s names no page of the console", runbookPage, a.Alert)
		}
		delete(sections, a.Alert)
	}
	for name := range sections {
		t.Errorf("%s has a section for %s, and no alert is called so", runbookPage, name)
	}
	for _, path := range consolePage.FindAllString(page, -1) {
		if !strings.Contains(routes, `"GET `+path+`"`) {
			t.Errorf("%s sends to %s, which the console does not have", runbookPage, path)
		}
	}
}

// The dashboard shows what is measured.
func TestDashboardShowsWhatIsMeasured(t *testing.T) {
	known := registered(t)
	var board struct {
		Title  string
		UID    string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(readText(t, "deploy/dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	if board.Title == "" || board.UID == "" || len(board.Panels) == 0 {
		t.Fatalf("the dashboard has title %q, uid %q and %d panels", board.Title, board.UID, len(board.Panels))
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			holdQuery(t, p.Title, target.Expr, known)
		}
	}
}

// Pages send nobody to a figure that does not exist.
func TestPagesNameRealMetrics(t *testing.T) {
	known := registered(t)
	named := 0
	for _, path := range append(pages(t, "docs/*.md"), pages(t, "docs/guides/*.md")...) {
		for _, use := range metricUse.FindAllStringSubmatch(readText(t, path), -1) {
			// Beginnings of other names, the database of an example, and histograms as
			// they are called.
			if strings.HasSuffix(use[1], "_") || use[1] == "pawl_restored" || path == metricsPage {
				continue
			}
			named++
			if _, ok := known[use[1]]; !ok {
				t.Errorf("%s names %s, which is not measured", path, use[1])
			}
		}
	}
	if named == 0 {
		t.Fatal("no metric found: the pattern no longer fits the pages")
	}
}

// holdQuery holds a query against what is measured: names of metrics, labels of
// selectors, labels that are grouped by. It is no parser of PromQL.
func holdQuery(t *testing.T, where, query string, known map[string][]string) {
	t.Helper()
	uses := metricUse.FindAllStringSubmatch(query, -1)
	if len(uses) == 0 && !strings.Contains(query, `up{job="pawl"}`) {
		t.Errorf("%s asks for no figure of Pawl's: %s", where, query)
	}
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(query, pair[:1]) != strings.Count(query, pair[1:]) {
			t.Errorf("%s: %s do not match in %s", where, pair, query)
		}
	}
	group := []string{"instance", "job"}
	for _, use := range uses {
		labels, ok := known[use[1]]
		if !ok {
			t.Errorf("%s uses %s, which is not measured", where, use[1])
		}
		group = append(group, labels...)
		for _, l := range label.FindAllStringSubmatch(use[2], -1) {
			if l[1] != "instance" && l[1] != "job" && !slices.Contains(labels, l[1]) {
				t.Errorf("%s: %s has no label %s", where, use[1], l[1])
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(query, -1) {
		for name := range strings.SplitSeq(by[1], ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(group, name) {
				t.Errorf("%s groups by %s, which none of its figures has", where, name)
			}
		}
	}
}

// registered are all metrics by their names in queries, each with its labels, as
// internal/telemetry registers them.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	for _, path := range pages(t, "internal/telemetry/*.go") {
		for _, m := range registration.FindAllStringSubmatch(readText(t, path), -1) {
			kind, name := m[1], "pawl_"+m[2]
			var labels []string
			for _, w := range quotedWord.FindAllStringSubmatch(m[3], -1) {
				labels = append(labels, w[1])
			}
			if !strings.HasPrefix(kind, "histogram") {
				known[name] = labels
				continue
			}
			known[name+"_bucket"] = append(slices.Clone(labels), "le")
			known[name+"_sum"], known[name+"_count"] = labels, labels
		}
	}
	if len(known) < 40 {
		t.Fatalf("%d metrics found (%v): the pattern no longer fits internal/telemetry", len(known), slices.Sorted(maps.Keys(known)))
	}
	return known
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(readText(t, "deploy/alerts.yaml")), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there is no alert")
	}
	return all
}

func pages(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing is at %s (%v)", pattern, err)
	}
	return found
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
