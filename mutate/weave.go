package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Weaving puts many mutations into one program, which takes on the one that the
// environment names: compiling and linking cost far more than the tests do. A
// mutated function stands beside the real one, which hands its calls over; a
// mutated table is chosen as the program starts.

// selector is the variable that names the mutation.
const selector = "PAWL_MUTATION"

// helper is added to each package that something is woven into.
const helper = `package %s

import "os"

var pawlMutation = os.Getenv("` + selector + `")

func pawlMutated[T any](name string, mutated, whole T) T {
	if pawlMutation == name {
		return mutated
	}
	return whole
}
`

// weave gives the text of a file with the patches in it, its package's name and the
// patches that it holds: the others must be tried on their own.
func weave(text string, patches []patch) (woven, pkg string, in []patch, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return "", "", nil, err
	}
	w := weaver{text: text, at: func(p token.Pos) int { return fset.Position(p).Offset }}
	for _, p := range patches {
		mutated, err := p.apply(text)
		if err != nil {
			return "", "", nil, err
		}
		// One line is another: what is before it stays, and so does what is behind it.
		from := 0
		for mutated[from] == text[from] {
			from++
		}
		if w.patch(file, p, from, mutated) {
			in = append(in, p)
		}
	}
	return w.done(), file.Name.Name, in, nil
}

// edit puts text in place of what is between two offsets.
type edit struct {
	from, to int
	text     string
}

type weaver struct {
	text  string
	at    func(token.Pos) int
	edits []edit
	// named are the functions whose parameters have been given names.
	named  map[*ast.FuncDecl]bool
	copies strings.Builder
}

// patch weaves the mutation of what is at an offset; false if it cannot be.
func (w *weaver) patch(file *ast.File, p patch, offset int, mutated string) bool {
	grown := len(mutated) - len(w.text)
	for _, d := range file.Decls {
		from, to := w.at(d.Pos()), w.at(d.End())
		if offset < from || offset >= to {
			continue
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			return w.function(d, p, mutated[from:to+grown])
		case *ast.GenDecl:
			return w.variable(d, p, offset, mutated, grown)
		}
	}
	return false
}

// function adds a mutated copy of a function and lets the function call it.
func (w *weaver) function(d *ast.FuncDecl, p patch, mutated string) bool {
	// A copy that is called is not itself deferred, so that it could not recover.
	if d.Body == nil || d.Name.Name == "init" || d.Name.Name == "main" || strings.Contains(mutated, "recover()") {
		return false
	}
	name := d.Name.Name + "_" + strings.Map(identifier, p.name)
	call := name
	if d.Recv != nil {
		if len(d.Recv.List[0].Names) != 1 || d.Recv.List[0].Names[0].Name == "_" {
			return false
		}
		call = d.Recv.List[0].Names[0].Name + "." + name
	}
	arguments := w.arguments(d)
	statement := fmt.Sprintf("if pawlMutation == %q { %s(%s); return }\n", p.name, call, arguments)
	if d.Type.Results != nil {
		statement = fmt.Sprintf("if pawlMutation == %q { return %s(%s) }\n", p.name, call, arguments)
	}
	body := w.at(d.Body.Lbrace) + 1
	w.edits = append(w.edits, edit{body, body, "\n" + statement})
	begin := w.at(d.Name.Pos()) - w.at(d.Pos())
	w.copies.WriteString("\n" + mutated[:begin] + name + mutated[begin+len(d.Name.Name):] + "\n")
	return true
}

// arguments lists a function's parameters, which are given names where they have
// none.
func (w *weaver) arguments(d *ast.FuncDecl) string {
	var all []string
	for _, field := range d.Type.Params.List {
		if len(field.Names) == 0 {
			name := fmt.Sprintf("pawl%d", len(all))
			all = append(all, name)
			w.name(d, edit{w.at(field.Type.Pos()), w.at(field.Type.Pos()), name + " "})
		}
		for _, ident := range field.Names {
			name := ident.Name
			if name == "_" {
				name = fmt.Sprintf("pawl%d", len(all))
				w.name(d, edit{w.at(ident.Pos()), w.at(ident.End()), name})
			}
			all = append(all, name)
		}
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			all[len(all)-1] += "..."
		}
	}
	if w.named == nil {
		w.named = map[*ast.FuncDecl]bool{}
	}
	w.named[d] = true
	return strings.Join(all, ", ")
}

func (w *weaver) name(d *ast.FuncDecl, e edit) {
	if !w.named[d] {
		w.edits = append(w.edits, e)
	}
}

// variable lets the program choose between two values of a variable as it starts.
func (w *weaver) variable(d *ast.GenDecl, p patch, offset int, mutated string, grown int) bool {
	if d.Tok != token.VAR {
		return false
	}
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		for _, v := range spec.Values {
			from, to := w.at(v.Pos()), w.at(v.End())
			if offset < from || offset >= to {
				continue
			}
			w.edits = append(w.edits,
				edit{from, from, fmt.Sprintf("pawlMutated(%q, %s, ", p.name, mutated[from:to+grown])},
				edit{to, to, ")"})
			return true
		}
	}
	return false
}

// done applies the edits, the last one first.
func (w *weaver) done() string {
	slices.SortStableFunc(w.edits, func(a, b edit) int { return b.from - a.from })
	text := w.text
	for _, e := range w.edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text + w.copies.String()
}

// identifier keeps what may be part of a name in Go.
func identifier(r rune) rune {
	if r == '-' {
		return '_'
	}
	return r
}
