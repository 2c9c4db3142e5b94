// Package apt finds programs that tests need and that are no Go: on the PATH, or
// by installing Debian's package where the tests run as root. Where neither can
// be done the error says what to install, so that no test is skipped.
package apt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Program gives the path of a program that is found under one of the names. If
// there is none, the package that brings it is installed.
func Program(ctx context.Context, pkg string, names ...string) (string, error) {
	find := func() (string, bool) {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil {
				return path, true
			}
		}
		return "", false
	}
	if path, ok := find(); ok {
		return path, nil
	}
	if err := Install(ctx, pkg); err != nil {
		return "", fmt.Errorf("there is no %s: %w", names[0], err)
	}
	if path, ok := find(); ok {
		return path, nil
	}
	return "", fmt.Errorf("the package %s brought no %s", pkg, names[0])
}

// Install installs a package of Debian; a service of it is not started. The
// tests of several packages may come here at once, and apt-get lets in one.
func Install(ctx context.Context, pkg string) error {
	if os.Geteuid() != 0 {
		return errors.New("install it (apt-get install " + pkg + "), or run the tests as root, which then do")
	}
	turn, err := os.OpenFile(filepath.Join(os.TempDir(), "pawl-tests-apt.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer turn.Close()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	for _, args := range [][]string{{"update"}, {"install", "--yes", "--no-install-recommends", pkg}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %.500s", args[0], err, out)
		}
	}
	return nil
}
