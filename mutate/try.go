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
	"time"
)

// testTimeout bounds one run of the tests: a mutation may make them hang,
// which is noticing too.
const testTimeout = 2 * time.Minute

// fate is what became of a patch.
type fate string

const (
	killedFate   fate = "killed"
	survivedFate fate = "SURVIVED"
	brokenFate   fate = "broken"
)

// result is how the try of a patch ended.
type result struct {
	fate   fate
	detail string
}

// sound runs the named tests of all patches over the tree as it is: a test
// that fails anyway kills nothing.
func (b *binaries) sound(ctx context.Context, patches []patch) error {
	tests := map[string][]string{}
	for _, p := range patches {
		if !slices.Contains(tests[p.pkg], p.run) {
			tests[p.pkg] = append(tests[p.pkg], p.run)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		for _, name := range tests[pkg] {
			out, err := b.whole(ctx, pkg, name)
			if err != nil {
				return fmt.Errorf("%s %s fails without any mutation:\n%s", pkg, name, tail(out))
			}
			if !strings.Contains(out, "--- PASS: ") {
				return fmt.Errorf("%s has no test %s", pkg, name)
			}
		}
	}
	return nil
}

// whole runs a test over the tree as it is; the woven program without a mutation is
// that, too.
func (b *binaries) whole(ctx context.Context, pkg, name string) (string, error) {
	if b.of[pkg] != "" {
		return b.test(ctx, pkg, name, "")
	}
	return goTest(ctx, pkg, "-run", pattern(name), "-v")
}

// try runs a patch's tests over the tree with the patch laid over it.
func (b *binaries) try(ctx context.Context, p patch) result {
	// A test that starts a program of its own may not hand the mutation's name down:
	// nothing survives before it was tried on its own, too.
	if b.has[p.name] {
		if r := judged(ctx, func() (string, error) { return b.test(ctx, p.pkg, p.run, p.name) }); r.fate == killedFate {
			return r
		}
	}
	dir, err := os.MkdirTemp("", "pawl-mutate-")
	if err != nil {
		return result{brokenFate, err.Error()}
	}
	defer os.RemoveAll(dir)
	overlay, err := lay(dir, p)
	if err != nil {
		return result{brokenFate, err.Error()}
	}
	return judged(ctx, func() (string, error) { return goTest(ctx, p.pkg, "-run", pattern(p.run), "-overlay", overlay) })
}

// judged says what the end of a run makes of its mutation.
func judged(ctx context.Context, run func() (string, error)) result {
	out, err := run()
	switch {
	case err == nil:
		return result{survivedFate, ""}
	case ctx.Err() != nil:
		return result{brokenFate, "interrupted"}
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return result{brokenFate, "the mutated program does not compile:\n" + tail(out)}
	case strings.Contains(out, "--- FAIL: ") || strings.Contains(out, "panic: "):
		return result{killedFate, ""}
	}
	return result{brokenFate, tail(out)}
}

// lay writes the mutated file and the overlay that puts it in the place of the
// real one; it gives the overlay's path.
func lay(dir string, p patch) (string, error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return "", err
	}
	mutated, err := p.apply(string(text))
	if err != nil {
		return "", err
	}
	real, err := filepath.Abs(p.file)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "mutated.go")
	overlay := filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {real: file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, []byte(mutated), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, list, 0o600)
}

func goTest(ctx context.Context, pkg string, args ...string) (string, error) {
	args = append([]string{"test", "-vet=off", "-failfast", "-count=1", "-timeout", testTimeout.String()}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	// Tests that read the sources read the mutated one too.
	if i := slices.Index(args, "-overlay"); i >= 0 {
		cmd.Env = append(os.Environ(), "PAWL_OVERLAY="+args[i+1])
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// pattern matches a test's name whole; a subtest follows after a slash.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}

func tail(out string) string {
	const most = 2000
	return out[max(0, len(out)-most):]
}
