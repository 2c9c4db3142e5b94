package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrExists means that the folder to be written exists already: nothing was
	// touched. It is a usage error.
	ErrExists = errors.New("the folder exists already; choose one that does not")
	// ErrFailed means that the exercise ended and a check does not hold. The
	// folder was written and tells which.
	ErrFailed = errors.New("exercise: a check does not hold")
	// ErrFixture means that the fixture cannot be played; nothing was written.
	ErrFixture = errors.New("the fixture cannot be played")
)

// Options say what is exercised and where the receipts go.
type Options struct {
	// Out is the folder to be written. It must not exist.
	Out string
	// Fixture is the file of a fixture; empty plays the built-in one.
	Fixture string
	// Log takes the table of checks at the end; nil drops it.
	Log io.Writer
	// Tool is the program's name and version in the receipts; "pawl" if empty.
	Tool string
}

// Run plays the exercise and writes the folder of receipts, whole or not at
// all. It returns nil if every check holds, [ErrFailed] if one does not, and an
// error that wraps [ErrExists] or [ErrFixture] if it could not begin.
//
// The program must give [Child] a chance at its start: see [IsChild].
func Run(ctx context.Context, o Options) error {
	if IsChild() {
		return errors.New("exercise: run: this process is the child of an exercise; it should have called Child")
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Tool == "" {
		o.Tool = "pawl"
	}
	if o.Out == "" {
		return errors.New("exercise: out: is missing; name a folder that does not exist")
	}
	out, err := filepath.Abs(o.Out)
	if err != nil {
		return fmt.Errorf("exercise: out: %w", err)
	}
	if err := absent(out); err != nil {
		return fmt.Errorf("exercise: %s: %w", o.Out, err)
	}
	raw, err := loadFixture(o.Fixture)
	if err != nil {
		return fmt.Errorf("exercise: %w: %w", ErrFixture, err)
	}
	fix, err := ParseFixture(raw)
	if err != nil {
		return fmt.Errorf("exercise: %s: %w: %w", o.Fixture, ErrFixture, err)
	}
	r := &run{o: o, out: out, raw: raw, fix: fix, ring: newKeyring(), dialer: &dialer{}, wire: &wire{}}
	files, err := r.all(ctx)
	if err != nil {
		return fmt.Errorf("exercise: %w", err)
	}
	if err := publish(files, out); err != nil {
		return fmt.Errorf("exercise: %s: %w", o.Out, err)
	}
	if err := writeTable(o.Log, r.checks, fixtureLook(fix)); err != nil {
		return err
	}
	if len(failedOf(r.checks)) > 0 {
		return ErrFailed
	}
	return nil
}

// absent reports nil if nothing is there, not even a link to nothing.
func absent(path string) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return ErrExists
	}
	return err
}

// publish writes the files into a folder beside the final one and gives it its
// name at once.
func publish(files folder, out string) error {
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(parent, "."+strings.TrimPrefix(filepath.Base(out), ".")+".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := errors.Join(files.write(partial), os.Chmod(partial, 0o755)); err != nil {
		return err
	}
	if err := absent(out); err != nil {
		return err
	}
	return os.Rename(partial, out)
}
