package pawl_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pawlhq/pawl"

// allowed says which packages of this module each may import: arrows only
// point downward (ARCHITECTURE.md). A package that is missing here fails.
var allowed = map[string][]string{
	".":                     {},
	"webhook":               {},
	"cmd/pawl":              {"internal/cli"},
	"interop":               {},
	"mutate":                {},
	"inbox":                 {"webhook"},
	"client":                {".", "webhook"},
	"pawltest":              {".", "client", "webhook", "internal/config", "internal/server"},
	"examples/certificates": {"inbox", "webhook"},

	"examples/receivers/go": {}, "examples/receivers/go-standardwebhooks": {},
	"internal/apt":                 {},
	"internal/pgtest":              {"internal/apt"},
	"internal/promtest":            {"internal/apt"},
	"internal/pgtest/withpostgres": {"internal/pgtest"},
	"bench":                        {"webhook", "internal/server", "internal/config", "internal/telemetry", "internal/store/sqlite", "internal/store/postgres", "internal/pgtest", "internal/scale", "internal/store", "internal/ledger", "."},
	"internal/scale":               {".", "internal/ledger", "internal/store", "internal/store/sqlite"},
	"internal/strict":              {},
	"internal/config":              {".", "internal/strict"},
	"internal/redact":              {},
	"internal/systemd":             {},
	"internal/telemetry":           {".", "internal/redact", "internal/strict"},
	"internal/ledger":              {"."},
	"internal/egress":              {"internal/telemetry"},
	"internal/watch":               {".", "internal/ledger"},
	"internal/audit":               {".", "internal/ledger", "internal/store"},
	"internal/retention":           {".", "internal/audit", "internal/config", "internal/ledger", "internal/store", "internal/telemetry"},
	"internal/desk":                {".", "internal/ledger", "internal/store", "internal/telemetry", "internal/upstream"},
	"internal/store":               {".", "internal/ledger"},
	"internal/store/memory":        {".", "internal/ledger", "internal/store"},
	"internal/store/sqlite":        {".", "internal/ledger", "internal/store"},
	"internal/store/postgres":      {".", "internal/ledger", "internal/store"},
	"internal/store/storetest":     {".", "internal/ledger", "internal/store", "internal/store/memory"},
	"internal/vault":               {".", "internal/config", "internal/ledger", "internal/store"},
	"internal/listing":             {".", "internal/config", "internal/egress", "internal/strict"},
	"internal/upstream":            {".", "webhook", "internal/config", "internal/egress", "internal/ledger", "internal/listing", "internal/redact", "internal/strict"},
	"internal/sender":              {".", "webhook", "internal/config", "internal/ledger", "internal/listing", "internal/strict"},
	"internal/canary":              {},
	"internal/browser":             {"internal/apt", "internal/demo"},
	"internal/intake":              {".", "webhook", "internal/config", "internal/ledger", "internal/sender", "internal/store", "internal/telemetry", "internal/upstream", "internal/strict"},
	"internal/work":                {".", "internal/egress", "internal/ledger", "internal/store", "internal/telemetry", "internal/upstream"},
	"internal/dialect":             {".", "internal/ledger", "internal/telemetry", "internal/strict"},
	"internal/replay":              {".", "internal/ledger", "internal/sender", "internal/store", "internal/telemetry", "internal/upstream"},
	"internal/render":              {".", "internal/dialect", "internal/ledger", "internal/sender"},
	"internal/outbox":              {".", "webhook", "internal/redact", "internal/render", "internal/egress", "internal/ledger", "internal/store", "internal/strict", "internal/telemetry", "internal/vault", "internal/sender", "internal/dialect"},
	"internal/api/apitest":         {},
	"internal/api":                 {".", "webhook", "internal/config", "internal/dialect", "internal/egress", "internal/ledger", "internal/store", "internal/strict", "internal/telemetry", "internal/upstream", "internal/vault", "internal/watch", "internal/desk", "internal/sender", "internal/listing", "internal/render", "internal/retention"},
	"internal/server":              {".", "internal/audit", "webhook", "internal/api", "internal/config", "internal/dialect", "internal/egress", "internal/intake", "internal/ledger", "internal/outbox", "internal/store", "internal/store/postgres", "internal/store/sqlite", "internal/telemetry", "internal/upstream", "internal/vault", "internal/work", "internal/watch", "internal/desk", "internal/sender", "internal/capture", "internal/strict", "internal/listing", "internal/retention", "internal/replay", "internal/console", "internal/systemd"},
	"internal/console":             {".", "internal/api", "internal/ledger", "internal/watch"},
	"internal/capture":             {".", "internal/egress", "internal/ledger", "internal/store", "internal/strict", "internal/telemetry", "internal/upstream"},
	"internal/sim":                 {".", "webhook"},
	"internal/simulate":            {".", "webhook", "internal/config", "internal/egress", "internal/intake", "internal/ledger", "internal/outbox", "internal/sim", "internal/store", "internal/store/memory", "internal/telemetry", "internal/upstream", "internal/vault", "internal/work"},
	"internal/demo":                {".", "webhook", "internal/config", "internal/ledger", "internal/server", "internal/sim", "internal/store", "internal/store/sqlite"},
	"internal/exercise":            {".", "webhook", "internal/config", "internal/egress", "internal/intake", "internal/ledger", "internal/outbox", "internal/server", "internal/sim", "internal/store", "internal/store/memory", "internal/store/sqlite", "internal/strict", "internal/telemetry", "internal/upstream", "internal/vault", "internal/work"},
	"internal/cli":                 {".", "internal/audit", "client", "webhook", "internal/config", "internal/demo", "internal/doctor", "internal/exercise", "internal/ledger", "internal/server", "internal/sim", "internal/simulate", "internal/store", "internal/store/postgres", "internal/store/sqlite", "internal/strict", "internal/telemetry", "internal/upstream", "internal/vault", "internal/torture", "internal/systemd"},
	"internal/doctor":              {".", "internal/config", "internal/egress", "internal/listing", "internal/server", "internal/store", "internal/store/postgres", "internal/store/sqlite", "internal/upstream"},
	"internal/torture":             {".", "client", "webhook", "internal/config", "internal/demo", "internal/ledger", "internal/server", "internal/sim", "internal/store"},
}

// stdOnly are the packages that import the standard library and this module
// alone, outside their tests.
var stdOnly = []string{".", "webhook", "client", "internal/ledger"}

type source struct {
	path string // relative to the module
	dir  string
	file *ast.File
	fset *token.FileSet
	size int // lines
}

func sources(t *testing.T, tests bool) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") != tests {
			return nil
		}
		text, err := os.ReadFile(laidOver(t, path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{path, filepath.ToSlash(filepath.Dir(path)), file, fset, strings.Count(string(text), "\n")})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// laidOver is the file that stands in for path in a mutated build (mutate).
func laidOver(t *testing.T, path string) string {
	t.Helper()
	overlay := os.Getenv("PAWL_OVERLAY")
	if overlay == "" {
		return path
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if instead, ok := list.Replace[real]; ok {
		return instead
	}
	return path
}

func TestImportsPointDownward(t *testing.T) {
	for _, s := range sources(t, false) {
		may, known := allowed[s.dir]
		if !known {
			t.Errorf("%s: package %s has no place in the list of rooms; add it to this test and to ARCHITECTURE.md", s.path, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			rest, ours := strings.CutPrefix(path, module)
			if !ours {
				if slices.Contains(stdOnly, s.dir) && strings.Contains(strings.SplitN(path, "/", 2)[0], ".") {
					t.Errorf("%s imports %s: this package uses the standard library only", s.path, path)
				}
				continue
			}
			dir := strings.TrimPrefix(rest, "/")
			if dir == "" {
				dir = "."
			}
			if !slices.Contains(may, dir) {
				t.Errorf("%s imports %s, which is not below it", s.path, dir)
			}
		}
	}
}

func TestBudgets(t *testing.T) {
	for _, s := range sources(t, false) {
		if s.size > 600 {
			t.Errorf("%s has %d lines, more than 600", s.path, s.size)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if lines := s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line; lines > 100 {
					t.Errorf("%s: %s has %d lines, more than 100", s.path, n.Name, lines)
				}
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: init: say it where it is used", s.path)
				}
			case *ast.InterfaceType:
				if n.Methods.NumFields() > 8 {
					t.Errorf("%s: an interface of %d methods, more than 8", s.path, n.Methods.NumFields())
				}
			}
			return true
		})
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	packageDocs := make(map[string]bool)
	for _, s := range sources(t, false) {
		packageDocs[s.dir] = packageDocs[s.dir] || s.file.Doc != nil
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					t.Errorf("%s: %s has no doc comment", s.path, d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: type %s has no doc comment", s.path, ts.Name)
					}
				}
			}
		}
	}
	for dir, ok := range packageDocs {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	text := d.Recv.List[0].Type
	if star, ok := text.(*ast.StarExpr); ok {
		text = star.X
	}
	if generic, ok := text.(*ast.IndexListExpr); ok {
		text = generic.X
	}
	if generic, ok := text.(*ast.IndexExpr); ok {
		text = generic.X
	}
	name, ok := text.(*ast.Ident)
	return !ok || name.IsExported()
}

// The core is pure, and nothing goes out but through egress.
func TestNoClockInTheCoreAndOneWayOut(t *testing.T) {
	for _, s := range sources(t, false) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := from.Name + "." + sel.Sel.Name
			pure := s.dir == "." || s.dir == "internal/ledger" || s.dir == "webhook"
			if pure && (name == "time.Now" || name == "time.Since" || from.Name == "os") {
				t.Errorf("%s uses %s: the core is told the time and does no I/O", s.path, name)
			}
			if name == "http.DefaultClient" || name == "http.DefaultTransport" || name == "http.Get" || name == "http.Post" {
				t.Errorf("%s uses %s: calls go out through internal/egress", s.path, name)
			}
			return true
		})
	}
}
