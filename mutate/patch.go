package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patch is one mutation: one line of one file put in another's place, and the
// tests that must notice.
type patch struct {
	// name is that of its file, without the ending.
	name string
	// why says what the mutated program would do wrong.
	why string
	// file is the mutated file, was and now its line before and after, without
	// indentation. Where the line stands more than once, the first one that
	// follows the line after is meant.
	file, after, was, now string
	// pkg and run say which tests must fail.
	pkg, run string
}

// readPatches reads every patch of a folder.
func readPatches(dir string) ([]patch, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	patches := make([]patch, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := parsePatch(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		p.name = strings.TrimSuffix(filepath.Base(file), ".patch")
		patches = append(patches, p)
	}
	return patches, nil
}

// parsePatch reads one patch:
//
//	# what goes wrong
//	file internal/ledger/observe.go
//	test ./internal/ledger TestName
//	after a line above it (only where the next one is not unique)
//	-the line as it is
//	+the line as it becomes
func parsePatch(text string) (patch, error) {
	var p patch
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\r\n")
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "# "):
			p.why = strings.TrimSpace(p.why + " " + line[2:])
		case word == "file":
			p.file = rest
		case word == "after":
			p.after = strings.TrimSpace(rest)
		case word == "test":
			p.pkg, p.run, _ = strings.Cut(rest, " ")
		case strings.HasPrefix(line, "-"):
			p.was = strings.TrimSpace(line[1:])
		case strings.HasPrefix(line, "+"):
			p.now = strings.TrimSpace(line[1:])
		default:
			return p, fmt.Errorf("cannot read the line %q", line)
		}
	}
	if p.why == "" || p.file == "" || p.run == "" || p.was == "" || p.was == p.now {
		return p, fmt.Errorf("a patch needs a reason, a file, a test and two different lines")
	}
	return p, nil
}

// apply gives the file's text with the patch in it. The line must be there
// exactly once: a patch that fits nowhere tests nothing.
func (p patch) apply(text string) (string, error) {
	lines := strings.Split(text, "\n")
	i, err := p.find(lines)
	if err != nil {
		return "", err
	}
	indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], "\t "))]
	lines[i] = indent + p.now
	return strings.Join(lines, "\n"), nil
}

// find gives the index of the one line that is meant.
func (p patch) find(lines []string) (int, error) {
	if p.after != "" {
		i, err := only(lines, p.after)
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", p.name, p.file, err)
		}
		for j := i + 1; j < len(lines); j++ {
			if strings.TrimSpace(lines[j]) == p.was {
				return j, nil
			}
		}
		return 0, fmt.Errorf("%s: %s: no line %q follows", p.name, p.file, p.was)
	}
	i, err := only(lines, p.was)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", p.name, p.file, err)
	}
	return i, nil
}

// only gives the index of the line that is there exactly once.
func only(lines []string, want string) (int, error) {
	found := -1
	for i, line := range lines {
		if strings.TrimSpace(line) != want {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("the line %q stands there twice; name one before it with \"after\"", want)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("the line %q is no longer there; write the patch anew", want)
	}
	return found, nil
}
