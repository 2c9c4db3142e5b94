package pgtest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/internal/apt"
)

// Tool is the path of one of PostgreSQL's own programs, such as pg_dump. It is
// installed where that can be done.
func Tool(t testing.TB, name string) string {
	t.Helper()
	for tried := false; ; tried = true {
		if bin, err := binaries(); err == nil && executable(filepath.Join(bin, name)) {
			return filepath.Join(bin, name)
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if tried {
			t.Fatalf("%s is not on this machine: install PostgreSQL (Debian: postgresql)", name)
		}
		if err := apt.Install(t.Context(), "postgresql-client"); err != nil {
			t.Fatalf("%s is not on this machine, and could not be installed: %v", name, err)
		}
	}
}
