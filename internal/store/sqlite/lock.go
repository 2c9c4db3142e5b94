package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LockedError says that another process has the data folder open.
type LockedError struct {
	// Dir is the data folder, PID the process that holds it, 0 where unknown.
	Dir string
	PID int
}

// Error says who holds the folder and what to do.
func (e *LockedError) Error() string {
	return fmt.Sprintf("sqlite: open: data folder %s is in use by process %d: stop that one first", e.Dir, e.PID)
}

// lock takes the folder for this process until the file is closed. The kernel
// frees it when the process dies, so it never needs to be cleaned up by hand.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "pawl.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data folder: %w", err)
		}
		text, _ := io.ReadAll(io.LimitReader(f, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return nil, &LockedError{Dir: dir, PID: pid}
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
