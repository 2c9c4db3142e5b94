package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Load reads and checks the file at path; an empty path gives Default. env
// answers ${NAME}; os.LookupEnv is the usual one. The error is a Problems
// unless the file itself cannot be read.
func Load(path string, env func(string) (string, bool)) (Config, error) {
	if path == "" {
		return Default(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return Config{}, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Config{}, unreadable(path, err)
	}
	return Parse(path, data, env)
}

// Parse reads and checks a configuration; what the text leaves out has its
// default. name stands in messages, and ${file:PATH} starts from its folder.
// The error, if any, is a Problems with everything that was found; the Config is
// then what could be read, for [Problems.With] alone.
func Parse(name string, data []byte, env func(string) (string, bool)) (Config, error) {
	c := Default()
	c.origin = &origin{file: name, lines: map[string]int{}}
	body, problem := parseYAML(data)
	if problem != nil {
		problem.File = name
		return Config{}, Problems{*problem}
	}
	d := decoder{
		expander: expander{env: env, dir: filepath.Dir(name)},
		origin:   c.origin,
	}
	if body != nil {
		d.value(body, "", reflect.ValueOf(&c).Elem())
	}
	if found := d.problems.With(c.check()); len(found) > 0 {
		return c, found
	}
	return c, nil
}

// parseYAML gives the only document's body, nil if the file is empty.
func parseYAML(data []byte) (ast.Node, *Problem) {
	if len(data) > maxFile {
		return nil, &Problem{What: "the file is larger than 256 KiB; name the right one"}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if problem := tooDeep(data); problem != nil {
		return nil, problem
	}
	// Duplicates are the decoder's to find: with a remedy, and all at once.
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, &Problem{Line: line(doc.Body), What: "the file holds a second document; remove the line --- and keep one"}
		}
		body = doc.Body
	}
	return body, nil
}

// tooDeep refuses brackets nested beyond reason, which the recursive parser
// would follow until the stack ends. It counts brackets in text and comments
// too; no real configuration comes near.
func tooDeep(data []byte) *Problem {
	depth, at := 0, 1
	for _, b := range data {
		switch b {
		case '\n':
			at++
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > 256 {
			return &Problem{Line: at, What: "brackets are nested too deep; close them"}
		}
	}
	return nil
}

// syntaxProblem keeps the parser's message and line, and drops what it quotes
// of the file, which may hold a secret.
func syntaxProblem(err error) *Problem {
	const remedy = "; check quotes, colons and indentation, and quote values that hold special characters (inside { } and [ ] also \"${NAME}\")"
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		return &Problem{What: "not valid YAML" + remedy}
	}
	message, _, _ := strings.Cut(": "+syntax.Message, `"`)
	p := &Problem{What: "not valid YAML" + strings.TrimRight(message, ": ") + remedy}
	if syntax.Token != nil && syntax.Token.Position != nil {
		p.Line = syntax.Token.Position.Line
	}
	return p
}

// line is where a node starts, 0 if unknown.
func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}
