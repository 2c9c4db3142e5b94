package sqlite

import (
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// errPowerOff is what every access gets when the power is off.
var errPowerOff error = sqlite3.IOERR

// drive is SQLite's way to the files of a disk: the usual one, locks and
// shared memory included, but nothing counts as synced that the disk was not
// told to sync.
type drive struct {
	vfs.VFS
	disk *disk
}

// kinds are the files of a ledger. Others are temporary and die with their
// process anyway.
var kinds = map[vfs.OpenFlag]string{vfs.OPEN_MAIN_DB: "file", vfs.OPEN_WAL: "log", vfs.OPEN_MAIN_JOURNAL: "journal"}

func (v drive) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	kind, ours := kinds[flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL)]
	if !ours {
		return vfsutil.WrapOpenFilename(v.VFS, name, flags)
	}
	path := name.String()
	open := func() (f vfs.File, out vfs.OpenFlag, err error) {
		d := v.disk
		if f, out, err = vfsutil.WrapOpenFilename(v.VFS, name, flags); err != nil {
			return f, out, err
		}
		d.open++
		// As the usual VFS does, the first sync of a new log or journal syncs
		// the folder too.
		fresh := kind != "file" && flags&vfs.OPEN_CREATE != 0
		return &handle{File: f, disk: d, inode: d.inodeOf(path), kind: kind, fresh: fresh}, out, nil
	}
	var f vfs.File
	out := flags
	err := v.disk.step("open the "+kind, func() {}, func() (err error) {
		f, out, err = open()
		return err
	})
	return f, out, err
}

func (v drive) Delete(name string, syncFolder bool) error {
	return v.disk.step("delete", func() { delete(v.disk.names, name) }, func() error {
		err := v.VFS.Delete(name, syncFolder)
		if err == nil && syncFolder {
			v.disk.syncFolder()
		}
		return err
	})
}

func (v drive) Access(name string, flags vfs.AccessFlag) (bool, error) {
	if v.disk.dead() {
		return false, errPowerOff
	}
	return v.VFS.Access(name, flags)
}

// handle is an open file of the disk.
type handle struct {
	vfs.File
	disk  *disk
	inode *inode
	kind  string
	fresh bool
}

func (h *handle) ReadAt(p []byte, at int64) (int, error) {
	if h.disk.dead() {
		return 0, errPowerOff
	}
	return h.File.ReadAt(p, at)
}

func (h *handle) WriteAt(p []byte, at int64) (n int, err error) {
	err = h.disk.step("write to the "+h.kind, func() { h.disk.note(h.inode, at, p) }, func() (err error) {
		n, err = h.File.WriteAt(p, at)
		return err
	})
	return n, err
}

func (h *handle) Truncate(size int64) error {
	return h.disk.step("cut the "+h.kind, func() { h.disk.note(h.inode, size, nil) }, func() error {
		return h.File.Truncate(size)
	})
}

// SizeHint lets a file grow before it is written to.
func (h *handle) SizeHint(size int64) error {
	was, err := h.Size()
	if err != nil || was >= size {
		return err
	}
	return h.disk.step("grow the "+h.kind, func() { h.disk.note(h.inode, size, nil) }, func() error {
		return vfsutil.WrapSizeHint(h.File, size)
	})
}

// syncTime is about what the sync of a fast disk takes: meanwhile the next
// batch fills.
const syncTime = 100 * time.Microsecond

// Sync tells the disk, and spares the machine's own.
func (h *handle) Sync(vfs.SyncFlag) error {
	time.Sleep(syncTime)
	return h.disk.step("sync the "+h.kind, func() {}, func() error {
		h.disk.sync(h.inode)
		if h.fresh {
			h.fresh = false
			h.disk.syncFolder()
		}
		return nil
	})
}

func (h *handle) Lock(level vfs.LockLevel) error {
	if h.disk.dead() {
		return errPowerOff
	}
	return h.File.Lock(level)
}

func (h *handle) Close() error {
	h.disk.mu.Lock()
	h.disk.open--
	h.disk.mu.Unlock()
	return h.File.Close()
}

func (h *handle) LockState() vfs.LockLevel { return vfsutil.WrapLockState(h.File) }

// SharedMemory is the usual: another process's memory is not lost by a
// crash of the tests' disk, but nobody believes it after a restart.
func (h *handle) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(h.File) }

// DeviceCharacteristics promises no atomic writes, which the disk has not.
func (h *handle) DeviceCharacteristics() vfs.DeviceCharacteristic {
	const atomic = vfs.IOCAP_ATOMIC | vfs.IOCAP_BATCH_ATOMIC | vfs.IOCAP_SAFE_APPEND | vfs.IOCAP_SEQUENTIAL
	return h.File.DeviceCharacteristics() &^ atomic
}
