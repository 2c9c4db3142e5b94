package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

// filled is a ledger in SQLite with n rows of every table.
func filled(t *testing.T, n int) *sqlite.Driver {
	t.Helper()
	d := openSQLite(t)
	if err := d.Update(t.Context(), store.NewID(), func(tx store.Tx) error { return tx.Save(storetest.Whole(n)) }); err != nil {
		t.Fatal(err)
	}
	return d
}

func openSQLite(t *testing.T) *sqlite.Driver {
	t.Helper()
	d, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// everything is every row of a ledger by its table, in an order of the rows'
// own: that of keys may differ where text had to be escaped.
func everything(t *testing.T, w store.Whole) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	counts, err := w.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		err := w.Export(t.Context(), c.Table, 0, func(row any) error {
			all[c.Table] = append(all[c.Table], fmt.Sprintf("%#v", row))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(all[c.Table])) != c.Rows {
			t.Errorf("%s: %d rows were counted and %d read", c.Table, c.Rows, len(all[c.Table]))
		}
		slices.Sort(all[c.Table])
	}
	return all
}

// TestCopy: every row of every table arrives as it was, there and back.
func TestCopy(t *testing.T) {
	t.Parallel()
	const n = 7
	from, there, back := filled(t, n), openTest(t, pgtest.Database(t)), openSQLite(t)
	counts, err := store.Copy(t.Context(), from, there, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) != storetest.Tables() {
		t.Errorf("%d tables were copied of %d", len(counts), storetest.Tables())
	}
	for _, c := range counts {
		if c.Rows != n {
			t.Errorf("%s: %d rows, want %d", c.Table, c.Rows, n)
		}
	}
	if _, err := store.Copy(t.Context(), there, back, nil); err != nil {
		t.Fatal(err)
	}
	want := everything(t, from)
	for name, w := range map[string]store.Whole{"in PostgreSQL": there, "back in SQLite": back} {
		if diff := cmp.Diff(want, everything(t, w)); diff != "" {
			t.Errorf("%s (-source +copy):\n%s", name, diff)
		}
	}
}

// interrupted is a target that fails at its n-th import: before it took effect, or after.
type interrupted struct {
	store.CopyTarget
	left  int
	after bool
}

var errCut = errors.New("cut")

func (c *interrupted) Import(ctx context.Context, s store.CopyState, rows *ledger.Rows) error {
	c.left--
	if c.left == 0 && !c.after {
		return errCut
	}
	if err := c.CopyTarget.Import(ctx, s, rows); err != nil || c.left != 0 {
		return err
	}
	return errCut
}

// TestCopyResumed: a copy that is interrupted at any transaction goes on from
// there, whether the transaction took effect or not.
func TestCopyResumed(t *testing.T) {
	t.Parallel()
	from, there := filled(t, 5), openTest(t, pgtest.Database(t))
	want := everything(t, from)
	// The first transaction claims the target, the last one ends the copy.
	imports := 1 + storetest.Tables() + 1
	for _, at := range []int{1, 2, 3, 12, 13, imports - 1, imports, imports + 1} {
		after := at%2 == 0
		_, err := store.Copy(t.Context(), from, &interrupted{there, at, after}, nil)
		if cutHere := at <= imports; cutHere != errors.Is(err, errCut) {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if err == nil || at == imports && after {
			if _, err := store.Copy(t.Context(), from, there, nil); !errors.Is(err, store.ErrCopied) {
				t.Errorf("after the end: %v", err)
			}
		} else if _, err := store.Copy(t.Context(), from, there, nil); err != nil {
			t.Fatalf("cut at %d and resumed: %v", at, err)
		}
		if diff := cmp.Diff(want, everything(t, there)); diff != "" {
			t.Fatalf("cut at %d (-source +copy):\n%s", at, diff)
		}
		empty(t, there)
		execute(t, there, "DELETE FROM copies")
	}
}

// TestCopyRefused: no ledger is written over, nor mixed with another one.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	from, there := filled(t, 2), openTest(t, url)
	refused := func(what string, from store.Whole, want error) {
		t.Helper()
		before := everything(t, there)
		if _, err := store.Copy(t.Context(), from, there, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if diff := cmp.Diff(before, everything(t, there)); diff != "" {
			t.Errorf("%s: the target was changed:\n%s", what, diff)
		}
	}
	if _, err := store.Copy(t.Context(), from, &interrupted{there, 4, false}, nil); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	refused("another ledger into a half copy", filled(t, 2), store.ErrOtherCopy)
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, store.ErrUnfinishedCopy) {
		t.Errorf("a node on a half copy: %v", err)
	}
	half, err := Open(t.Context(), url, Options{Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := half.Close(); err != nil {
		t.Error(err)
	}
	if err := from.Update(t.Context(), store.NewID(), func(store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	refused("the same ledger, which was served meanwhile", from, store.ErrOtherCopy)
	execute(t, there, "DELETE FROM copies")
	refused("into a ledger", from, store.ErrNotEmpty)
	empty(t, there)
	if _, err := store.Copy(t.Context(), from, there, nil); err != nil {
		t.Fatal(err)
	}
	refused("again", from, store.ErrCopied)
	refused("another ledger into a whole copy", filled(t, 2), store.ErrNotEmpty)
}

// served is a target whose source is served while it is copied: a batch comes
// with the fifth import.
type served struct {
	*Driver
	from    store.Driver
	imports int
}

// Import is the driver's own.
func (s *served) Import(ctx context.Context, state store.CopyState, rows *ledger.Rows) error {
	if s.imports++; s.imports == 5 {
		if err := s.from.Update(ctx, store.NewID(), func(store.Tx) error { return nil }); err != nil {
			return err
		}
	}
	return s.Driver.Import(ctx, state, rows)
}

// TestCopyOfAServedLedger: a copy whose source changed on the way is none, though
// it may have as many rows: no node starts on it.
func TestCopyOfAServedLedger(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	from, there := filled(t, 2), openTest(t, url)
	if _, err := store.Copy(t.Context(), from, &served{Driver: there, from: from}, nil); !errors.Is(err, store.ErrServedSource) {
		t.Errorf("%v, want that it was served", err)
	}
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, store.ErrUnfinishedCopy) {
		t.Errorf("a node on it: %v", err)
	}
}

// TestUnserved: the connections of another process are seen.
func TestUnserved(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	d, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var served *ServedError
	if err := Unserved(t.Context(), url); !errors.As(err, &served) {
		t.Errorf("beside a driver: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Unserved(t.Context(), url); err != nil {
		t.Errorf("without one: %v", err)
	}
}

// TestUnservedByWhoTells: a node behind a pooler, or under a name of its own, is
// seen by what it tells of itself, and no longer once it has gone silent.
func TestUnservedByWhoTells(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	d := openTest(t, url+"&application_name=ours")
	if err := Unserved(t.Context(), url); err != nil {
		t.Errorf("before it tells: %v", err)
	}
	n := store.Node{ID: store.NewID()}
	if err := d.Beat(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{url, url + "&pooler=transaction"} {
		var served *ServedError
		if err := Unserved(t.Context(), url); !errors.As(err, &served) || served.Nodes != 1 || served.Sessions != 0 {
			t.Errorf("beside a node: %v", err)
		}
	}
	execute(t, d, "UPDATE nodes SET seen_at = seen_at - interval '31 seconds'")
	if err := Unserved(t.Context(), url); err != nil {
		t.Errorf("after 31 s of silence: %v", err)
	}
}

// TestFromEarlierVersions: a ledger of every earlier schema, with data in it, has
// the same rows under the newest one; see the test of the same name for SQLite.
func TestFromEarlierVersions(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for version := int64(1); version < int64(len(files)); version++ {
		url := pgtest.Database(t)
		at, err := locate(url)
		if err == nil {
			err = migrateTo(t.Context(), at, version)
		}
		if err != nil {
			t.Fatal(err)
		}
		all, err := Migrations(t.Context(), url)
		if err != nil || all[version-1].AppliedAt == 0 || all[version].AppliedAt != 0 {
			t.Errorf("version %d: %v, %v", version, all, err)
		}
		if _, err := OpenReadOnly(t.Context(), url); !contains(err, "pawl migrate up") {
			t.Errorf("version %d is read: %v", version, err)
		}
		// What a node of that version has open goes on below the newer schema.
		d := &Driver{}
		if d.Reader, err = openReader(t.Context(), at, 1); err != nil {
			t.Fatal(err)
		}
		d.Reader.clock = newClock()
		if d.writers, err = at.pool(t.Context(), 2, nil); err != nil {
			t.Fatal(err)
		}
		save := func(rows *ledger.Rows) {
			t.Helper()
			if err := d.Update(t.Context(), store.NewID(), func(tx store.Tx) error { return tx.Save(rows) }); err != nil {
				t.Fatal(err)
			}
		}
		save(storetest.Whole(3))
		if err := Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		save(&ledger.Rows{Audits: []ledger.Audit{{ID: store.NewID()}}})
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		newest := openTest(t, url)
		counts, err := newest.Counts(t.Context())
		for _, c := range counts {
			want := int64(3)
			if c.Table == "audits" {
				want++
			}
			if c.Rows != want {
				t.Errorf("from version %d: %s has %d rows, want %d", version, c.Table, c.Rows, want)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}
