package simulate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/simulate"
)

// planted is a bug that the simulator must find: lines of the program that are
// replaced, and the rules of which one must be seen to break.
type planted struct {
	name  string
	rules []string // one of them
	edits []edit
}

type edit struct{ file, was, now string }

// searched is how many seeds a planted bug may take.
const searched = 400

// searchEnv makes the test binary a search: it holds the first seed and the
// last.
const searchEnv = "PAWL_SIMULATE_SEARCH"

// readPlanted reads a planted bug:
//
//	# what goes wrong
//	rule a rule that breaks
//	file internal/ledger/observe.go
//	-a line as it is
//	+the line as it becomes
func readPlanted(t *testing.T, path string) planted {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := planted{name: strings.TrimSuffix(filepath.Base(path), ".patch")}
	file := ""
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "#":
		case word == "rule":
			p.rules = append(p.rules, rest)
		case word == "file":
			file = rest
		case line[0] == '-':
			p.edits = append(p.edits, edit{file: file, was: strings.TrimSpace(line[1:])})
		case line[0] == '+':
			p.edits[len(p.edits)-1].now = strings.TrimSpace(line[1:])
		default:
			t.Fatalf("%s: cannot read %q", path, line)
		}
	}
	return p
}

// overlay writes the changed files and gives the file that puts them in the
// place of the real ones: the tree itself is never touched.
func (p planted) overlay(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	texts := map[string]string{}
	for _, e := range p.edits {
		text, ok := texts[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		lines, found := strings.Split(text, "\n"), 0
		for i, line := range lines {
			if strings.TrimSpace(line) == e.was {
				lines[i] = e.now
				found++
			}
		}
		if found != 1 {
			t.Fatalf("%s: the line %q is in %s %d times; write the patch anew", p.name, e.was, e.file, found)
		}
		texts[e.file] = strings.Join(lines, "\n")
	}
	replace := map[string]string{}
	for file, text := range texts {
		changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// Each planted bug is found by some seed, under the rule that it breaks
// (docs/simulation.md).
func TestPlantedBugsAreFound(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/planted/*.patch")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d planted bugs, %v", len(files), err)
	}
	for _, file := range files {
		p := readPlanted(t, file)
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(t.TempDir(), "simulate.test")
			build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", p.overlay(t, root), "-o", binary, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			search := exec.Command(binary, "-test.run", "^TestSearch$", "-test.v")
			search.Env = append(os.Environ(), fmt.Sprintf("%s=1-%d", searchEnv, searched))
			var out bytes.Buffer
			search.Stdout, search.Stderr = &out, &out
			if err := search.Run(); err == nil {
				t.Fatalf("no seed up to %d finds it:\n%s", searched, out.String())
			}
			if !slices.ContainsFunc(p.rules, func(rule string) bool { return strings.Contains(out.String(), "FOUND "+rule+":") }) {
				t.Errorf("it is not found by any of the rules %q:\n%s", p.rules, out.String())
			}
			t.Log(out.String())
		})
	}
}

// TestSearch is what a binary with a planted bug runs: it fails at the first
// seed that finds one.
func TestSearch(t *testing.T) {
	var first, last uint64
	if _, err := fmt.Sscanf(os.Getenv(searchEnv), "%d-%d", &first, &last); err != nil {
		return
	}
	for seed := first; seed <= last; seed++ {
		if r := simulate.Run(seed, simulate.Options{}); r.Failed() {
			for _, v := range r.Violations {
				t.Errorf("seed %d: FOUND %s", seed, v)
			}
			return
		}
	}
}
