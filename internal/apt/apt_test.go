package apt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/internal/apt"
)

// The first of the names that is there is taken, and nothing is installed.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	second := filepath.Join(dir, "second")
	if err := os.WriteFile(second, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got, err := apt.Program(t.Context(), "none", "first", "second"); err != nil || got != second {
		t.Errorf("found %q, %v; want %s", got, err, second)
	}
	// Without apt-get on the PATH, and without its root, nothing can be installed.
	if got, err := apt.Program(t.Context(), "none", "first"); err == nil {
		t.Errorf("found %q, which is not there", got)
	}
}
