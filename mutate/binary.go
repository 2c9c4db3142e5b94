package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// binaries are the test programs that hold woven patches.
type binaries struct {
	dir string
	// of gives the test program of a package, has the patches that are woven.
	of  map[string]string
	has map[string]bool
	// flags are more flags of a program.
	flags map[string][]string
}

// alone says which patches are not woven: to tests that look at the source files a
// woven file is no mutated one, and scripts start programs without our environment.
func alone(p patch) bool {
	return p.pkg == "." && filepath.Dir(p.file) != "." || strings.HasPrefix(p.run, "TestScripts") || !strings.HasSuffix(p.file, ".go")
}

// build weaves what can be woven of the patches and compiles the packages' tests.
// Where the woven program cannot be built nothing is woven.
func build(ctx context.Context, dir string, patches []patch) (binaries, error) {
	b := binaries{dir: dir, of: map[string]string{}, has: map[string]bool{}, flags: map[string][]string{}}
	overlay, err := b.lay(patches)
	if err != nil {
		return b, err
	}
	packages := map[string]bool{}
	for _, p := range patches {
		if b.has[p.name] {
			packages[p.pkg] = true
		}
	}
	if len(packages) == 0 {
		return b, nil
	}
	// The symbols are for debuggers; writing them takes time.
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", dir + string(filepath.Separator)}
	cmd := exec.CommandContext(ctx, "go", append(args, slices.Sorted(maps.Keys(packages))...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return b, ctx.Err()
		}
		fmt.Printf("the woven program cannot be built, so each patch is tried on its own:\n%s", tail(string(out)))
		clear(b.has)
		return b, nil
	}
	for pkg := range packages {
		root, err := filepath.Abs(pkg)
		if err != nil {
			return b, err
		}
		name := filepath.Base(root)
		if pkg == "." {
			name = moduleName
		}
		b.of[pkg] = filepath.Join(dir, name+".test")
		// Tests of random values would write down how to repeat a failure.
		probe := exec.CommandContext(ctx, b.of[pkg], "-test.run=^$", "-rapid.nofailfile")
		probe.Dir = pkg
		if probe.Run() == nil {
			b.flags[pkg] = []string{"-rapid.nofailfile"}
		}
	}
	return b, nil
}

// moduleName is the last part of the module's path.
const moduleName = "pawl"

// lay writes the woven files and the overlay that puts them in the place of the
// real ones.
func (b *binaries) lay(patches []patch) (overlay string, err error) {
	files := map[string][]patch{}
	for _, p := range patches {
		if !alone(p) {
			files[p.file] = append(files[p.file], p)
		}
	}
	replace := map[string]string{}
	put := func(path, text string) error {
		real, err := filepath.Abs(path)
		if err != nil || replace[real] != "" {
			return err
		}
		replace[real] = filepath.Join(b.dir, fmt.Sprintf("woven%d.go", len(replace)))
		return os.WriteFile(replace[real], []byte(text), 0o600)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		woven, pkg, in, err := weave(string(text), files[file])
		if err != nil {
			return "", err
		}
		if len(in) == 0 {
			continue
		}
		for _, p := range in {
			b.has[p.name] = true
		}
		if err := put(file, woven); err != nil {
			return "", err
		}
		if err := put(filepath.Join(filepath.Dir(file), "pawl_mutation.go"), fmt.Sprintf(helper, pkg)); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(b.dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// test runs a test of a package: with a mutation, or of the program as it is if
// the mutation's name is empty.
func (b *binaries) test(ctx context.Context, pkg, run, mutation string) (string, error) {
	args := []string{"-test.failfast", "-test.v", "-test.timeout=" + testTimeout.String(), "-test.run=" + pattern(run)}
	cmd := exec.CommandContext(ctx, b.of[pkg], append(args, b.flags[pkg]...)...)
	cmd.Dir = pkg
	cmd.Env = append(os.Environ(), selector+"="+mutation)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
