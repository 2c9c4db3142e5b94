package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// names are what Chromium is called where it is installed.
var names = [...]string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// chromium finds the browser: on the PATH, else Debian's package is installed if
// we are root.
func chromium(ctx context.Context) (string, error) {
	for range 2 {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil {
				return path, nil
			}
		}
		if err := install(ctx); err != nil {
			return "", fmt.Errorf("there is no Chromium on the PATH: %w", err)
		}
	}
	return "", errors.New("the package chromium brought no browser that is on the PATH")
}

// install installs Debian's package. Tests of several packages may come here at
// once, and apt-get lets in one.
func install(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("install it (apt-get install chromium), or run the tests as root, which then do")
	}
	turn, err := os.OpenFile(filepath.Join(os.TempDir(), "pawl-browser-install.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer turn.Close()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	for _, args := range [][]string{{"update"}, {"install", "--yes", "--no-install-recommends", "chromium"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
