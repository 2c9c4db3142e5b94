package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const loom = `package p

import "strings"

const limit = 1

var moves = map[string]int{
	"a": 1,
	"b": 2,
}

type t[K comparable] struct{ all map[K]int }

// get looks.
func (x *t[K]) get(key K, _ int, rest ...string) (n int, ok bool) {
	n, ok = x.all[key]
	return n + len(rest), ok
}

func (*t[K]) unnamed() int {
	return 3
}

func join(string, ...int) {
	_ = strings.ToUpper("a")
}

func safe() (n int) {
	defer func() { _ = recover() }()
	return 4
}
`

// Functions and variables take mutations, several each; what cannot is left out.
// The program that comes of it is one, and without a mutation's name the same.
func TestWeave(t *testing.T) {
	patches := []patch{
		{name: "one-more", was: "return n + len(rest), ok", now: "return n + len(rest) + 1, ok"},
		{name: "always", was: "n, ok = x.all[key]", now: "n, ok = x.all[key], true"},
		{name: "move-a", was: `"a": 1,`, now: `"a": 10,`},
		{name: "move-b", was: `"b": 2,`, now: ``},
		{name: "lower", was: `_ = strings.ToUpper("a")`, now: `_ = strings.ToLower("a")`},
		{name: "constant", was: "const limit = 1", now: "const limit = 2"},
		{name: "nobody", was: "return 3", now: "return 4"},
		{name: "recovers", was: "return 4", now: "return 5"},
	}
	woven, pkg, in, err := weave(loom, patches)
	if err != nil || pkg != "p" {
		t.Fatalf("package %q, %v", pkg, err)
	}
	var names []string
	for _, p := range in {
		names = append(names, p.name)
	}
	if want := []string{"one-more", "always", "move-a", "move-b", "lower"}; !slices.Equal(names, want) {
		t.Errorf("woven: %v, want %v", names, want)
	}
	for _, part := range []string{
		"{\nif pawlMutation == \"always\" { return x.get_always(key, pawl1, rest...) }\n",
		"if pawlMutation == \"one-more\" { return x.get_one_more(key, pawl1, rest...) }\n",
		"func (x *t[K]) get_always(key K, _ int, rest ...string) (n int, ok bool) {\n\tn, ok = x.all[key], true\n",
		"func join(pawl0 string, pawl1 ...int) {\nif pawlMutation == \"lower\" { join_lower(pawl0, pawl1...); return }\n",
		"func join_lower(string, ...int) {\n\t_ = strings.ToLower(\"a\")\n}\n",
	} {
		if !strings.Contains(woven, part) {
			t.Errorf("nothing is %q in\n%s", part, woven)
		}
	}
	compiles(t, woven)
}

// compiles checks the types of a woven file, whose helper here imports nothing.
func compiles(t *testing.T, woven string) {
	t.Helper()
	stub := strings.NewReplacer("%s", "p", `import "os"`, "", `os.Getenv("PAWL_MUTATION")`, `""`).Replace(helper)
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{"woven.go": strings.Replace(woven, `import "strings"`, "", 1), "helper.go": stub,
		"strings.go": "package p\nvar strings struct{ ToUpper, ToLower func(string) string }\n"} {
		file, err := parser.ParseFile(fset, name, text, 0)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		files = append(files, file)
	}
	if _, err := new(types.Config).Check("p", fset, files, nil); err != nil {
		t.Errorf("%v in\n%s", err, woven)
	}
}

func TestWeaveNeedsItsLine(t *testing.T) {
	if _, _, _, err := weave(loom, []patch{{name: "x", was: "return 7", now: "return 8"}}); err == nil {
		t.Error("a patch that fits nowhere was woven")
	}
}
