package torture

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskFaults are the faults of a disk that can be had here.
var diskFaults = []Fault{Full}

// dieWithParent has a process killed when this one is, however that ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// limitFiles lets no file of a process grow beyond a size, which the kernel
// answers like a full disk; what it returns lifts that.
func limitFiles(pid int, size uint64) (lift func() error, err error) {
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &was); err != nil {
		return nil, err
	}
	err = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}, nil)
	return func() error { return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &was, nil) }, err
}
