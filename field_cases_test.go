package pawl_test

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

const fieldCasesPage = "docs/field-cases.md"

// fieldCase is a row of the page: the case, then the package and name of its
// test, or why there is none yet.
var fieldCase = regexp.MustCompile(`(?m)^\| (O-\d{3}) \| ([^|]+) \| ([^|]*) \|$`)

// dueCases are the kinds of cases that must have tests by now: first and last
// number of each.
var dueCases = map[string][2]int{
	"A": {1, 10}, "B": {11, 24}, "C": {25, 40}, "D": {41, 48}, "E": {49, 55}, "F": {56, 62}, "G": {63, 74}, "H": {75, 80},
	"K": {107, 115}, "L": {116, 118}, "M": {119, 127}, "N": {128, 132}, "O": {133, 136},
}

// Every case from the field has a test that is named after it, or says when it
// will have one.
func TestEveryFieldCaseHasItsTest(t *testing.T) {
	page, err := os.ReadFile(fieldCasesPage)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{} // package and function
	for _, s := range sources(t, true) {
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[s.dir+" "+fn.Name.Name] = true
			}
		}
	}
	listed := map[string]bool{}
	for _, row := range fieldCase.FindAllStringSubmatch(string(page), -1) {
		name, where := row[1], strings.TrimSpace(row[2])
		listed[name] = true
		if where == "later" {
			if strings.TrimSpace(row[3]) == "" {
				t.Errorf("%s: %s is later, and does not say why", fieldCasesPage, name)
			}
			continue
		}
		if !tests[where] {
			t.Errorf("%s: %s names %q, and there is no such test", fieldCasesPage, name, where)
		}
		if !strings.Contains(where, strings.ReplaceAll(name, "-", "")) {
			t.Errorf("%s: the test %q is not named after %s", fieldCasesPage, where, name)
		}
	}
	for kind, span := range dueCases {
		for n := span[0]; n <= span[1]; n++ {
			if name := fmt.Sprintf("O-%03d", n); !listed[name] {
				t.Errorf("%s lacks %s, of kind %s", fieldCasesPage, name, kind)
			}
		}
	}
}
