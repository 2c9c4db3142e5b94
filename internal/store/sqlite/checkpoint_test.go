package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// smallSizes make checkpoints happen within a short test.
var smallSizes = sizes{passive: 64, restart: 256, backlog: 32, stop: 2048}

// load commits n batches of about 120 KB while readers look on, and returns
// the largest size of the log seen.
func load(t *testing.T, d *Driver, dir string, n int) (largest int64) {
	t.Helper()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := d.Audits(t.Context(), store.AuditFilter{}, store.Page{Limit: 1}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for i := range n {
		var rows ledger.Rows
		for j := range 30 {
			rows.Audits = append(rows.Audits, ledger.Audit{ID: testID(1000*(i+1) + j), Detail: strings.Repeat("x", 4000)})
		}
		update(t, d, i, &rows)
		info, err := os.Stat(filepath.Join(dir, "pawl.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	close(stop)
	readers.Wait()
	return largest
}

func TestLogStaysBounded(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(t.Context(), dir, Options{sizes: smallSizes})
	if err != nil {
		t.Fatal(err)
	}
	// 100 batches write 12 MB of rows and, with indexes, more pages than that.
	largest := load(t, d, dir, 100)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if limit := int64(smallSizes.stop) * 4096; largest > limit/2 {
		t.Errorf("the log grew to %d bytes, more than half of %d", largest, limit)
	}
	if info, err := os.Stat(filepath.Join(dir, "pawl.db")); err != nil || info.Size() < 10<<20 {
		t.Errorf("the file holds %v bytes, error %v; the load was too small to tell", info.Size(), err)
	}
}

// A reader that stays pins the log; once it ends, the log starts anew.
func TestO117LogRecoversFromPinnedSnapshot(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(t.Context(), dir, Options{sizes: smallSizes})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	update(t, d, 9999, audit(1, "first"))
	err = d.read(t.Context(), "hold", func(c *conn) error {
		if rows, err := query(c, &audits, ""); err != nil || len(rows) != 1 {
			t.Errorf("rows %v, error %v", rows, err)
		}
		load(t, d, dir, 20)
		rows, err := query(c, &audits, "")
		if len(rows) != 1 {
			t.Errorf("the snapshot has changed: %d rows", len(rows))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pinned := d.checkpoints.pages.Load()
	lowest := pinned
	for n := 0; lowest >= int64(smallSizes.restart) && n < 2000; n++ {
		update(t, d, n, audit(10_000_000+n, "after"))
		lowest = min(lowest, d.checkpoints.pages.Load())
	}
	if pinned <= int64(smallSizes.restart) || lowest >= int64(smallSizes.restart) {
		t.Errorf("the log had %d pages while pinned and %d at best afterwards", pinned, lowest)
	}
}
