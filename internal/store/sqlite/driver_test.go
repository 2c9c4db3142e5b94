package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func TestErrorAndPanicRollBack(t *testing.T) {
	d := openTest(t, Options{})
	wanted := errors.New("no")
	err := d.Update(t.Context(), testID(1), func(tx store.Tx) error {
		return errors.Join(tx.Save(audit(1, "error")), wanted)
	})
	if !errors.Is(err, wanted) {
		t.Errorf("error %v, want what fn returned", err)
	}
	func() {
		defer func() {
			if p := recover(); p != "oh" {
				t.Errorf("panic %v was swallowed", p)
			}
		}()
		_ = d.Update(t.Context(), testID(2), func(tx store.Tx) error {
			_ = tx.Save(audit(2, "panic"))
			panic("oh")
		})
	}()
	update(t, d, 3, audit(3, "good"))
	if got := audited(t, d); len(got) != 1 || got[0] != "good" {
		t.Errorf("rows %v, want only the good one", got)
	}
	for n, want := range map[int]bool{1: false, 2: false, 3: true} {
		if got, err := d.Committed(t.Context(), testID(n)); err != nil || got != want {
			t.Errorf("batch %d: committed %v, error %v", n, got, err)
		}
	}
}

func TestFailedCommit(t *testing.T) {
	d := openTest(t, Options{})
	d.write.db.CommitHook(func() bool { return false })
	err := d.Update(t.Context(), testID(1), func(tx store.Tx) error { return tx.Save(audit(1, "lost")) })
	var failed *store.CommitError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want a CommitError", err)
	}
	if ok, err := d.Committed(t.Context(), testID(1)); ok || err != nil {
		t.Errorf("committed %v, error %v", ok, err)
	}
	d.write.db.CommitHook(nil)
	update(t, d, 2, audit(2, "kept"))
	if got := audited(t, d); len(got) != 1 || got[0] != "kept" {
		t.Errorf("rows %v", got)
	}
}

func TestFullDisk(t *testing.T) {
	d := openTest(t, Options{})
	if err := d.write.db.Exec("PRAGMA max_page_count = 100"); err != nil {
		t.Fatal(err)
	}
	err := d.Update(t.Context(), testID(1), func(tx store.Tx) error { return tx.Save(audit(1, strings.Repeat("x", 1<<20))) })
	if !errors.Is(err, sqlite3.FULL) || !strings.Contains(err.Error(), "the disk is full: free some space") {
		t.Errorf("error %v", err)
	}
	if err := d.write.db.Exec("PRAGMA max_page_count = 10000"); err != nil {
		t.Fatal(err)
	}
	update(t, d, 2, audit(2, "kept"))
	if got := audited(t, d); len(got) != 1 {
		t.Errorf("rows %v", got)
	}
}

func TestCanceledUpdate(t *testing.T) {
	d := openTest(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	err := d.Update(ctx, testID(1), func(tx store.Tx) error {
		cancel()
		return tx.Save(audit(1, "late"))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	update(t, d, 2, audit(2, "kept"))
	if got := audited(t, d); len(got) != 1 || got[0] != "kept" {
		t.Errorf("rows %v", got)
	}
}

func TestContextInterruptsRead(t *testing.T) {
	d := openTest(t, Options{Readers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		cancel()
	}()
	err := d.read(ctx, "count", func(c *conn) error {
		close(started)
		return c.each("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", nil, func(*sqlite3.Stmt) {})
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := d.Tenants(t.Context()); err != nil {
		t.Errorf("the connection is not fit for use: %v", err)
	}
}

func TestWaitForReaderEndsWithContext(t *testing.T) {
	d := openTest(t, Options{Readers: 1})
	err := d.read(t.Context(), "hold", func(*conn) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := d.Tenants(ctx)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestReadersSeeOneSnapshot(t *testing.T) {
	d := openTest(t, Options{})
	update(t, d, 1, &ledger.Rows{Audits: []ledger.Audit{{ID: testID(1)}}})
	count := func(c *conn) int {
		rows, err := query(c, &audits, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	err := d.read(t.Context(), "look twice", func(c *conn) error {
		before := count(c)
		update(t, d, 2, audit(2, "meanwhile"))
		if after := count(c); before != 1 || after != 1 {
			t.Errorf("rows %d, then %d; want one snapshot of 1", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(audited(t, d)); got != 2 {
		t.Errorf("%d rows afterwards", got)
	}
}

func TestUncommittedIsUnseen(t *testing.T) {
	d := openTest(t, Options{})
	err := d.Update(t.Context(), testID(1), func(tx store.Tx) error {
		if err := tx.Save(audit(1, "x")); err != nil {
			return err
		}
		if got := audited(t, d); len(got) != 0 {
			t.Errorf("a reader sees %v before the commit", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRingOfBatches(t *testing.T) {
	d := openTest(t, Options{})
	d.batch = ring - 2
	for n := 1; n <= 5; n++ {
		update(t, d, n, &ledger.Rows{})
	}
	d.batch += ring - 2
	update(t, d, 6, &ledger.Rows{})
	for n, want := range map[int]bool{1: true, 2: true, 3: true, 4: false, 5: true, 6: true} {
		if got, err := d.Committed(t.Context(), testID(n)); err != nil || got != want {
			t.Errorf("batch %d: committed %v, want %v; error %v", n, got, want, err)
		}
	}
}

func TestClose(t *testing.T) {
	d, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	inside, finish := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		err := d.Update(t.Context(), testID(1), func(tx store.Tx) error {
			close(inside)
			<-finish
			return tx.Save(audit(1, "x"))
		})
		if err != nil {
			t.Errorf("the update under way: %v", err)
		}
	})
	<-inside
	wait.Go(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	<-d.closed
	if err := d.Update(t.Context(), testID(2), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("update after close: %v", err)
	}
	close(finish)
	wait.Wait()
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// Loops over a real file are tested in virtual time (3-architecture, "Time").
func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openTest(t, Options{})
		for n := range 24 {
			var now pawl.Time
			err := d.Update(t.Context(), testID(n), func(tx store.Tx) error {
				now = tx.Now()
				return tx.Save(audit(n, "x"))
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := pawl.TimeOf(time.Now()); now != want {
				t.Errorf("now is %v, want the bubble's %v", now, want)
			}
			time.Sleep(time.Hour)
		}
		if got := len(audited(t, d)); got != 24 {
			t.Errorf("%d rows", got)
		}
	})
}
