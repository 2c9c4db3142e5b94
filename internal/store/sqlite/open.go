package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// fileName is the ledger's file within the data folder.
const fileName = "pawl.db"

// Options are the settings of a driver. The zero value is good.
type Options struct {
	// Readers is how many connections read at once; 4 where it is zero.
	Readers int
	// Log takes warnings about checkpoints; nil drops them.
	Log *slog.Logger
	// Copying opens also a ledger that is an unfinished copy of another one.
	Copying bool

	// sizes are smaller in tests.
	sizes sizes
	// vfs names SQLite's way to the files; the tests have one that loses power.
	vfs string
}

func (o Options) withDefaults() Options {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.sizes == (sizes{}) {
		o.sizes = usualSizes
	}
	return o
}

// source is the file's name as SQLite takes it.
func (o Options) source(path string) string {
	if o.vfs == "" {
		return path
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: url.Values{"vfs": {o.vfs}}.Encode()}).String()
}

// Open opens the ledger in the data folder dir, which it makes if need be, and
// brings its schema up to date. The folder belongs to this process until
// [Driver.Close]: a second one gets a [LockedError]. A schema that is newer
// than this program is refused with store.ErrNewerSchema.
func Open(ctx context.Context, dir string, opts Options) (*Driver, error) {
	d, err := open(ctx, dir, opts.withDefaults())
	if locked := (*LockedError)(nil); errors.As(err, &locked) {
		return nil, locked
	}
	return d, explain(ctx, "open", err)
}

func open(ctx context.Context, dir string, opts Options) (_ *Driver, err error) {
	if err := prepareFolder(dir); err != nil {
		return nil, err
	}
	held, err := lock(dir)
	if err != nil {
		return nil, err
	}
	d := &Driver{lock: held, writer: make(chan *conn, 1), clock: newClock()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.abandon())
		}
	}()
	path := filepath.Join(dir, fileName)
	if err := createPrivate(path); err != nil {
		return nil, err
	}
	source := opts.source(path)
	if err := refuseBackup(ctx, source); err != nil {
		return nil, err
	}
	if err := migrate(ctx, source); err != nil {
		return nil, err
	}
	if d.write, err = connect(ctx, source, sqlite3.OPEN_READWRITE, writerPragmas); err != nil {
		return nil, err
	}
	if err := d.write.complete(opts.Copying); err != nil {
		return nil, err
	}
	if d.batch, err = lastBatch(d.write); err != nil {
		return nil, err
	}
	if d.Reader, err = openReader(ctx, source, opts.Readers); err != nil {
		return nil, err
	}
	if err := makePrivate(path); err != nil {
		return nil, err
	}
	if d.checkpoints, err = startCheckpoints(ctx, source, d, opts); err != nil {
		return nil, err
	}
	d.writer <- d.write
	return d, nil
}

// OpenReadOnly opens the ledger in dir for reading alone. It takes no lock, so
// it works beside a running server and on a stopped one. The ledger must have
// exactly this program's schema.
func OpenReadOnly(ctx context.Context, dir string) (*Reader, error) {
	if err := exists(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fileName)
	r, err := openReader(ctx, path, 1)
	if err != nil {
		return nil, explain(ctx, "open", err)
	}
	if err := makePrivate(path); err != nil {
		return nil, errors.Join(explain(ctx, "open", err), r.Close())
	}
	if err := r.read(ctx, "open", checkVersion); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// OpenUntouched is [OpenReadOnly] of any schema that leaves the folder exactly as
// it is, whoever asks: a ledger without a log is read as a file that nobody
// changes, so no log and no index come into being beside it, which its node, under
// another user, could not open. It is for a short look: of a node that starts
// meanwhile it sees nothing. A log without an index is refused with
// [ErrNoIndex].
func OpenUntouched(ctx context.Context, dir string) (*Reader, error) {
	if err := exists(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fileName)
	logged, err := holds(path + "-wal")
	if err != nil {
		return nil, err
	}
	indexed, err := holds(path + "-shm")
	if err != nil {
		return nil, err
	}
	switch {
	case logged && !indexed:
		return nil, ErrNoIndex
	case !indexed:
		path = (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "immutable=1"}).String()
	}
	r, err := openReader(ctx, path, 1)
	return r, explain(ctx, "open", err)
}

// ErrNoIndex says that a ledger has a log that nobody has opened where it lies: it
// was copied without its index. The next start reads it.
var ErrNoIndex = errors.New("sqlite: open: the ledger has a log and no index of it, which reading would make")

// holds says whether a file is there and has something in it.
func holds(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > 0, err
}

// makePrivate gives the log and its index, which come into being with the
// first read, the mode of the file. Those of a running server have it already.
func makePrivate(path string) error {
	for _, name := range []string{path + "-wal", path + "-shm"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// prepareFolder makes the data folder private. A folder that is another
// user's, as in a container's volume, is left as it is: the files are private
// all the same.
func prepareFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// createPrivate makes the file before SQLite would, which does not ask for a
// mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}
