package pawl_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const rulesPage = "docs/rules.md"

var (
	// definition is an entry of the page, which begins with its name.
	definition = regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\* `)

	shortName = `(?:[A-J][0-9]|R[0-9]{1,2}|O-[0-9]{3}|` +
		`(?:SW|CB|IK|LR|HT|PD|PG|RL|SF|ID|TM|MO|JS|PR|CO|DB|OP|PM|TR|SC|GO|OA)-[0-9]{2})`
	names = regexp.MustCompile(`\b(` + shortName + `)(?: to (` + shortName + `))?\b`)

	// parts are references that need their document's name.
	parts = regexp.MustCompile(`\b(?:([1-7]-(?:product|contracts|architecture|standards|rules)),? ` +
		`(?:(§[0-9]+(?:(?:,| and) §[0-9]+)*)|("[^"]+")|([A-J])\b)|vector (V[0-9]+)\b)`)
)

// Who meets a short name in the code or the docs can look it up in one page.
func TestEveryRuleReferredToIsDefined(t *testing.T) {
	page, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, m := range definition.FindAllStringSubmatch(string(page), -1) {
		if defined[m[1]] {
			t.Errorf("%s defines %s twice", rulesPage, m[1])
		}
		defined[m[1]] = true
	}
	for name, path := range referredTo(t) {
		if !defined[name] {
			t.Errorf("%s refers to %s, which %s does not define", path, name, rulesPage)
		}
	}
}

var (
	heldBy = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	test   = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// What the page says of the console, of metrics and of privacy names the tests that
// hold it, and every test that it names is there.
func TestRulesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	starts := definition.FindAllStringSubmatchIndex(string(page), -1)
	for i, at := range starts {
		end := len(page)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		name, held := string(page[at[2]:at[3]]), heldBy.FindAllStringSubmatch(string(page[at[0]:end]), -1)
		if family, _, _ := strings.Cut(name, "-"); len(held) == 0 && slices.Contains([]string{"CO", "PM", "PR"}, family) {
			t.Errorf("%s: no test holds it", name)
		}
		for _, m := range held {
			if !tests[m[1]] {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
}

func TestReferencesAreFound(t *testing.T) {
	text := "// See 2-contracts §2 and §3, 3-architecture, \"Due\n" +
		"\t// work\"; 1-product A2 to A4 (1-product\n// H4), 1-product B; SF-10 to SF-12, O-042,\n// vector V7 and 7-rules\n// §5, R37. RFC 9457 §4."
	want := []string{
		"2-contracts §2", "2-contracts §3", `3-architecture "Due work"`, "7-rules §5",
		"A2", "A3", "A4", "B", "H4", "O-042", "R37", "SF-10", "SF-11", "SF-12", "V7",
	}
	if got := references(text); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// referredTo gives every reference of the tree's code and pages, with one of
// the files that make it.
func referredTo(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != "." && (name == "node_modules" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(name)
		if ext != ".go" && ext != ".md" || path == filepath.FromSlash(rulesPage) || path == "docs_rules_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, ref := range references(string(text)) {
			found[ref] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no reference found: the patterns no longer fit the tree")
	}
	return found
}

// references gives the names that text refers to, as the page spells them, in
// order and each once.
func references(text string) []string {
	// A comment's line break may fall inside a reference.
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "//", " ")), " ")
	found := map[string]bool{}
	for _, m := range names.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
		if m[2] != "" {
			for _, name := range between(m[1], m[2]) {
				found[name] = true
			}
		}
	}
	for _, m := range parts.FindAllStringSubmatch(text, -1) {
		document, sections, heading, chapter, vector := m[1], m[2], m[3], m[4], m[5]
		switch {
		case sections != "":
			for section := range strings.SplitSeq(strings.ReplaceAll(sections, " and", ","), ", ") {
				found[document+" "+section] = true
			}
		case heading != "":
			found[document+" "+heading] = true
		default:
			found[chapter+vector] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// between gives the names from first to last of one family: of IK-01 and IK-03
// it makes three. A name without a hyphen has no leading zeros.
func between(first, last string) []string {
	family := strings.TrimRight(first, "0123456789")
	width := 1
	if strings.HasSuffix(family, "-") {
		width = len(first) - len(family)
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(first, family))
	to, _ := strconv.Atoi(strings.TrimPrefix(last, family))
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf("%s%0*d", family, width, n))
	}
	return all
}
