package upstream

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
)

//go:embed presets/*.yaml
var presets embed.FS

// maxSpec bounds a description, and maxNesting its brackets, which the YAML
// parser would otherwise follow down until the stack ends.
const (
	maxSpec    = 16 << 10
	maxNesting = 32
)

// Preset gives the description of that name, false if there is none: the embedded
// ones, and that of own workers.
func Preset(name string) (Spec, bool) {
	if name == config.PresetWorker {
		return workerSpec, true
	}
	data := PresetText(name)
	if data == nil {
		return Spec{}, false
	}
	spec, err := Parse(data)
	return spec, err == nil
}

// PresetText gives the text of that description, nil if there is none.
func PresetText(name string) []byte {
	data, err := presets.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		return nil
	}
	return data
}

// Presets lists the names of the embedded descriptions, in alphabetical order.
func Presets() []string {
	files, _ := fs.Glob(presets, "presets/*.yaml")
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	slices.Sort(files)
	return files
}

// Parse reads one description from YAML and checks it whole: unknown keys,
// pointers that are none, words that map to no state and calls that cannot be
// made are errors, which say what to write instead.
func Parse(data []byte) (Spec, error) {
	var s Spec
	if len(data) > maxSpec {
		return Spec{}, errors.New("upstream: parse: the description is larger than 16 KiB")
	}
	if tooDeep(data) {
		return Spec{}, errors.New("upstream: parse: brackets are nested too deep; close them")
	}
	if err := decode(data, &s); err != nil {
		return Spec{}, fmt.Errorf("upstream: parse: %s", yaml.FormatError(err, false, false))
	}
	s.inherit()
	if err := s.check(); err != nil {
		return Spec{}, fmt.Errorf("upstream: parse %s: %w", cut(s.Name, 64), err)
	}
	return s, nil
}

// decode reads the one document of a text. It refuses aliases, which let a
// small text stand for an endless one.
func decode(data []byte, s *Spec) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return err
	}
	var found aliases
	bodies := 0
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies++
			ast.Walk(&found, doc.Body)
		}
	}
	if bodies != 1 {
		return errors.New("the text must hold one document")
	}
	if found {
		return errors.New("anchors and aliases are not supported; write the text twice")
	}
	return yaml.UnmarshalWithOptions(data, s, yaml.Strict())
}

// aliases reports whether a tree has any.
type aliases bool

// Visit implements ast.Visitor.
func (a *aliases) Visit(n ast.Node) ast.Visitor {
	if n == nil {
		return nil
	}
	if n.Type() == ast.AliasType || n.Type() == ast.AnchorType {
		*a = true
	}
	return a
}

// inherit gives the common fields to what has none of its own.
func (s *Spec) inherit() {
	shared := []*Fields{}
	for _, call := range []*Call{s.Read, s.Cancel} {
		if call != nil {
			shared = append(shared, &call.Fields)
		}
	}
	if s.Callback != nil {
		shared = append(shared, &s.Callback.Fields)
	}
	for _, f := range shared {
		if *f == (Fields{}) {
			*f = s.Fields
		}
	}
}

func tooDeep(data []byte) bool {
	depth := 0
	for _, b := range data {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxNesting {
			return true
		}
	}
	return false
}

// UnmarshalYAML reads a table of words and refuses what no provider can report:
// pending and unconfirmed are our own states of a task that is not yet known.
func (t *StateTable) UnmarshalYAML(decode func(any) error) error {
	var words map[string]string
	if err := decode(&words); err != nil {
		return err
	}
	*t = make(StateTable, len(words))
	for word, name := range words {
		state, ok := pawl.ParseState(name)
		if !ok || state == pawl.Pending || state == pawl.Unconfirmed {
			return fmt.Errorf("states: %q is no state of a task; write running, succeeded, failed, canceled or expired", cut(name, 64))
		}
		(*t)[word] = state
	}
	return nil
}
