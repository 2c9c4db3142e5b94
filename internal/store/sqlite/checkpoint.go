package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// sizes are sizes of the log, in pages of 4 KiB, at which something is done.
type sizes struct {
	// passive is how much the log grows from one passive checkpoint, which
	// disturbs nobody, to the next: pages that were written often meanwhile are
	// copied once.
	passive int
	// restart starts the log anew, for which the writer pauses: under steady
	// load passive checkpoints alone never come to its end.
	restart int
	// backlog is how much may be left to copy when the writer pauses.
	backlog int
	// stop keeps the writer waiting for readers that pin the log.
	stop int
}

var usualSizes = sizes{
	passive: 16 << 20 / 4096,
	restart: 64 << 20 / 4096,
	backlog: 1 << 20 / 4096,
	stop:    192 << 20 / 4096,
}

// How long the writer pauses for readers of the old log to end: a moment at
// first, longer when the log has grown past the size to stop at.
const (
	shortPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// checkpoints moves the log into the file on a connection of its own, outside
// the commit path.
type checkpoints struct {
	conn   *conn
	writer chan *conn
	log    *slog.Logger
	sizes  sizes
	// pages is the size of the log after the latest commit.
	pages atomic.Int64
	// due is the size at which the next step is made.
	due atomic.Int64
	// restartAt rises above its usual size while readers pin the log, so that
	// the writer does not pause at every commit.
	restartAt int
	wake      chan struct{}
	cancel    context.CancelFunc
	done      chan struct{}
}

func startCheckpoints(ctx context.Context, path string, d *Driver, opts Options) (*checkpoints, error) {
	c, err := connect(ctx, path, sqlite3.OPEN_READWRITE, "PRAGMA wal_autocheckpoint = 0;")
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &checkpoints{
		conn: c, writer: d.writer, log: opts.Log, sizes: opts.sizes, restartAt: opts.sizes.restart,
		wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
	}
	k.due.Store(int64(k.sizes.passive))
	d.write.db.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		k.committed(pages)
		return nil
	})
	go k.run(life)
	return k, nil
}

// stop ends the loop and closes its connection.
func (k *checkpoints) stop() error {
	k.cancel()
	<-k.done
	return k.conn.close()
}

// committed is told of the log's size by every commit.
func (k *checkpoints) committed(pages int) {
	k.pages.Store(int64(pages))
	if int64(pages) >= k.due.Load() {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

func (k *checkpoints) run(ctx context.Context) {
	defer close(k.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		err := k.step(ctx)
		k.due.Store(k.pages.Load() + int64(k.sizes.passive))
		if err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "checkpoint failed; the log keeps growing until one succeeds", "pages", k.pages.Load(), "error", err)
		}
	}
}

// step copies what it can, and restarts the log once it has grown large. The
// backlog is brought down first, so that the pause is short.
func (k *checkpoints) step(ctx context.Context) error {
	size, copied, err := k.conn.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if size < k.sizes.restart {
		k.restartAt = k.sizes.restart
	}
	if err != nil || size < k.restartAt {
		return err
	}
	for tries := 0; size-copied > k.sizes.backlog && tries < 4; tries++ {
		if size, copied, err = k.conn.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
			return err
		}
	}
	select {
	case w := <-k.writer:
		defer func() { k.writer <- w }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return k.restart(ctx, size)
}

// restart makes the next commit begin at the log's start. It runs while the
// writer pauses.
func (k *checkpoints) restart(ctx context.Context, size int) error {
	pause := shortPause
	if size >= k.sizes.stop {
		pause = longPause
	}
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	k.conn.db.SetInterrupt(ctx)
	defer k.conn.db.SetInterrupt(context.Background())
	_, _, err := k.conn.db.WALCheckpoint("main", sqlite3.CHECKPOINT_RESTART)
	if errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.INTERRUPT) {
		k.restartAt = size + k.sizes.passive
		return err
	}
	k.restartAt = k.sizes.restart
	k.pages.Store(0)
	return err
}

// truncate moves all of the log into the file and empties it, while the writer
// pauses.
func (k *checkpoints) truncate(ctx context.Context) error {
	w, err := acquire(ctx, k.writer, nil)
	if err != nil {
		return err
	}
	defer func() { k.writer <- w }()
	ctx, cancel := context.WithTimeout(ctx, longPause)
	defer cancel()
	w.db.SetInterrupt(ctx)
	defer w.db.SetInterrupt(context.Background())
	_, _, err = w.db.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if err == nil {
		k.pages.Store(0)
	}
	return err
}
