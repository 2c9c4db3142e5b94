package pawl_test

import (
	"go/ast"
	"slices"
	"testing"
)

// secretComparisons are the functions that hold what was sent against what
// only its rightful sender can know. Each must do so in constant time (C1).
var secretComparisons = map[string][]string{
	"webhook/algorithm.go":              {"matchMAC"},
	"internal/upstream/callback_url.go": {"Operation"},
}

// constantTime are the calls whose time does not depend on how much is right.
var constantTime = []string{"hmac.Equal", "subtle.ConstantTimeCompare"}

func TestSecretsAreComparedInConstantTime(t *testing.T) {
	left := map[string][]string{}
	for file, names := range secretComparisons {
		left[file] = slices.Clone(names)
	}
	for _, s := range sources(t, false) {
		for _, decl := range s.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !slices.Contains(left[s.path], fn.Name.Name) {
				continue
			}
			left[s.path] = slices.DeleteFunc(left[s.path], func(name string) bool { return name == fn.Name.Name })
			if !calls(fn, constantTime) {
				t.Errorf("%s: %s compares a secret and calls none of %v", s.path, fn.Name.Name, constantTime)
			}
		}
	}
	for file, names := range left {
		for _, name := range names {
			t.Errorf("%s has no function %s any more; say here which one compares now", file, name)
		}
	}
}

// calls reports whether a function calls one of package.Function.
func calls(fn *ast.FuncDecl, names []string) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				found = found || slices.Contains(names, pkg.Name+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return found
}
