package pawl_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const fuzzingPage = "docs/fuzzing.md"

// tableRow is a row of the page, whose first two cells are names.
var (
	tableRow    = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+?) \\| (.+?) \\|(?: (.+?) \\|)?$")
	inBackticks = regexp.MustCompile("`([^`]+)`")
	// parserName is that of a function which can only be a parser.
	parserName = regexp.MustCompile(`^(Parse|parse|Unmarshal)([A-Z].*)?$`)
)

func ticked(cell string) (found []string) {
	for _, m := range inBackticks.FindAllStringSubmatch(cell, -1) {
		found = append(found, m[1])
	}
	return found
}

// Every fuzz target has its row in the page and every row its target; every
// function that a row names is there, and every parser is named.
func TestEveryParserIsFuzzed(t *testing.T) {
	page, err := os.ReadFile(fuzzingPage)
	if err != nil {
		t.Fatal(err)
	}
	// Names are "package name".
	targets, parsers := map[string]bool{}, map[string]bool{}
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		dir, second, third := m[1], m[2], m[3]
		names := second
		if m[4] != "" {
			target := ticked(second)
			if len(target) != 1 || targets[dir+" "+target[0]] {
				t.Errorf("%s: the row %q names no target, or one that has a row already", fuzzingPage, m[0])
				continue
			}
			targets[dir+" "+target[0]] = true
			names = third
		}
		for _, name := range ticked(names) {
			parsers[dir+" "+name] = true
		}
	}
	if len(targets) == 0 {
		t.Fatal("no row found: the pattern no longer fits the page")
	}
	for name := range functions(t, true) {
		if _, fn, _ := strings.Cut(name, " "); strings.HasPrefix(fn, "Fuzz") && !targets[name] {
			t.Errorf("%s has no row in %s", name, fuzzingPage)
		} else if strings.HasPrefix(fn, "Fuzz") {
			delete(targets, name)
		}
	}
	for name := range targets {
		t.Errorf("%s has a row in %s and is nowhere", name, fuzzingPage)
	}
	written := functions(t, false)
	for name := range parsers {
		if !written[name] {
			t.Errorf("%s is named in %s and is nowhere", name, fuzzingPage)
		}
	}
	for name := range written {
		if _, fn, _ := strings.Cut(name, " "); parserName.MatchString(fn) && !parsers[name] {
			t.Errorf("%s is a parser that %s does not name: give it a fuzz target, or say there why it has none", name, fuzzingPage)
		}
	}
}

// functions are the names of all functions and methods, with their packages.
func functions(t *testing.T, tests bool) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	all := sources(t, tests)
	for _, s := range all {
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				found[s.dir+" "+fn.Name.Name] = true
			}
		}
	}
	if !slices.ContainsFunc(all, func(s source) bool { return s.dir == "webhook" }) {
		t.Fatal("no source found")
	}
	return found
}
