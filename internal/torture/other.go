//go:build !linux

package torture

import (
	"errors"
	"os/exec"
)

// diskFaults are the faults of a disk that can be had here.
var diskFaults []Fault

// dieWithParent does nothing where the kernel offers nothing.
func dieWithParent(*exec.Cmd) {}

// limitFiles is possible on Linux alone.
func limitFiles(int, uint64) (lift func() error, err error) {
	return nil, errors.New("the files of another process cannot be limited here")
}
