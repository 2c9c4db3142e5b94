package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// diskEvery is how often the guard looks: at most that long may intake fill
// the disk before it is noticed.
const diskEvery = 2 * time.Second

// diskGuard closes intake while the ledger's disk has too little free space, so
// that what was taken in can still be finished: callbacks of work under way are
// read, events delivered, money settled (1-product I7). It opens again by
// itself. It is safe for concurrent use.
type diskGuard struct {
	dir     string
	minFree func() config.Size
	// free tells the bytes that an ordinary user may still write below dir.
	free    func(dir string) (uint64, error)
	metrics *telemetry.Metrics
	log     *slog.Logger

	closed  atomic.Bool
	unknown atomic.Bool
}

// guard makes the guard of the node's folder and looks for the first time, so
// that nothing is taken in before it has.
func (n *Node) guard() *diskGuard {
	g := &diskGuard{
		dir: n.cfg.Data, minFree: func() config.Size { return n.loaded.Load().Disk.MinFree },
		free: n.wires.free, metrics: n.metrics, log: n.log,
	}
	if g.free == nil {
		g.free = FreeSpace
	}
	g.look()
	return g
}

// full reports whether nothing new may be taken in.
func (g *diskGuard) full() bool { return g.closed.Load() }

// run looks every while until the context ends.
func (g *diskGuard) run(ctx context.Context) {
	ticker := time.NewTicker(diskEvery)
	defer ticker.Stop()
	for {
		g.look()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look decides by the free space of now. Once closed, intake opens only when an
// eighth more than the least is free, so that it does not flap.
func (g *diskGuard) look() {
	free, err := g.free(g.dir)
	if err != nil {
		if !g.unknown.Swap(true) {
			g.log.Error("the free space of the ledger's disk is not known: intake is not guarded", "error", err)
		}
		return // What cannot be measured closes nothing: a full disk is refused by the store.
	}
	g.unknown.Store(false)
	g.metrics.DiskFree.Set(float64(free))
	least := uint64(g.minFree())
	was := g.closed.Load()
	if was {
		least += least / 8
	}
	now := free < least
	if g.closed.Swap(now) == now {
		return
	}
	if now {
		g.metrics.IntakeClosed.Set(1)
		g.log.Error("the ledger's disk is nearly full: submits, hooks and published events are refused until more is free", "free_bytes", free, "min_free_bytes", uint64(g.minFree()))
		return
	}
	g.metrics.IntakeClosed.Set(0)
	g.log.Info("the ledger's disk has room again: intake is open", "free_bytes", free)
}

// FreeSpace is how many bytes an ordinary user may still write below a folder.
func FreeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	for errors.Is(err, unix.EINTR) {
		err = unix.Statfs(dir, &s)
	}
	return s.Bavail * uint64(s.Bsize), err
}
