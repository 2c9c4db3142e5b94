package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// TestOpenAtOnce: several nodes start on an empty database at the same time.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			d, err := Open(context.Background(), url, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestNewerSchema: a node refuses what a newer one has brought up to date.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	d := openTest(t, url)
	if r, err := OpenReadOnly(t.Context(), url); err != nil {
		t.Error(err)
	} else if err := r.Close(); err != nil {
		t.Error(err)
	}
	execute(t, d, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)")
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("open: %v, want ErrNewerSchema", err)
	}
	if _, err := OpenReadOnly(t.Context(), url); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("open for reading: %v, want ErrNewerSchema", err)
	}
	if _, err := OpenReadOnly(t.Context(), pgtest.Database(t)); !contains(err, "no ledger in this database") {
		t.Errorf("an empty database: %v", err)
	}
}

// TestOpenErrors: a person is told what to do, and no password is repeated.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	good := pgtest.Database(t)
	missing := good[:strings.LastIndex(good, "/")] + "/not_there?sslmode=disable"
	for url, want := range map[string]string{
		"mysql://u:hunter2@h/d":                    "it must be postgres://",
		"postgres://u:hunter2@h:notaport/d":        "it must be postgres://",
		"postgres://u:hunter2@h/d?sslmode=perhaps": "it must be postgres://",
		"postgres://u:hunter2@h/d?pooler=session":  "pooler must be transaction",
		missing: "make it with createdb",
		"postgres://u:hunter2@127.0.0.1:1/d?connect_timeout=1": "connection refused",
	} {
		_, err := Open(t.Context(), url, Options{})
		if !contains(err, want) || contains(err, "hunter2") {
			t.Errorf("%q: %v, want %q and no password", url, err, want)
		}
	}
}

// TestPartitions: rows go into the partition of the month in which what they
// belong to was made, and into the default one where there is none.
func TestPartitions(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	d := openTest(t, url)
	now := time.Now().UTC()
	month := func(at time.Time) string { return "payloads_" + at.Format("200601") }
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]pawl.Time{
		month(now):                    pawl.TimeOf(now),
		month(first):                  pawl.TimeOf(first),
		month(first.AddDate(0, 1, 0)): pawl.TimeOf(first.AddDate(0, 2, 0).Add(-time.Millisecond)),
		"payloads_default":            pawl.TimeOf(first.AddDate(0, -1, 0)),
	}
	n := 0
	for _, at := range cases {
		n++
		err := d.Update(t.Context(), store.NewID(), func(tx store.Tx) error {
			// The highest and the lowest id of the moment.
			return tx.Save(&ledger.Rows{Payloads: []ledger.Payload{
				{ID: ledger.PayloadID{Owner: pawl.NewID(at, 0), Kind: 1}}, {ID: ledger.PayloadID{Owner: pawl.NewID(at, 1<<63), Kind: 2}},
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for table, at := range cases {
		if got := one(t, d, "SELECT count(*) FROM "+table+" WHERE owner >= $1::uuid", idValue(pawl.NewID(at, 0))); got < 2 {
			t.Errorf("%s has %d of the rows of %v", table, got, at)
		}
	}
	// A month whose rows are in the default partition stays there, and others are
	// made; making them again does nothing.
	execute(t, d, fmt.Sprintf("ALTER TABLE payloads DETACH PARTITION %s", month(now)))
	execute(t, d, fmt.Sprintf("DROP TABLE %s", month(now)))
	err := d.Update(t.Context(), store.NewID(), func(tx store.Tx) error {
		return tx.Save(&ledger.Rows{Payloads: []ledger.Payload{{ID: ledger.PayloadID{Owner: pawl.NewID(pawl.TimeOf(now), 0), Kind: 1}}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.makePartitions(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := one(t, d, "SELECT count(*) FROM payloads_default"); got != 3 {
		t.Errorf("%d rows in the default partition, want 3", got)
	}
}

// TestForgottenBatches: batches are kept for hours and then removed.
func TestForgottenBatches(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	now := time.Now()
	old, young := pawl.NewID(pawl.TimeOf(now.Add(-batchesKept-time.Minute)), 1), pawl.NewID(pawl.TimeOf(now.Add(-batchesKept+time.Minute)), 1)
	for _, id := range []pawl.ID{old, young} {
		if err := d.Update(t.Context(), id, func(store.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := d.LastCommit(t.Context()); err != nil || at.Std() != now.Add(-batchesKept+time.Minute).UTC().Truncate(time.Millisecond) {
		t.Errorf("last commit %v, %v", at, err)
	}
	if err := d.forgetBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[pawl.ID]int64{old: 0, young: 1} {
		if n := one(t, d, "SELECT count(*) FROM batches WHERE id = $1::uuid", idValue(id)); n != want {
			t.Errorf("batch %v: %d, want %d", id, n, want)
		}
	}
}

// TestEmptyPartitionsAreDropped: those of past months alone, and not the last one,
// whose content may still come.
func TestEmptyPartitionsAreDropped(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	first := time.Date(time.Now().UTC().Year(), time.Now().UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	name := func(back int) string { return "payloads_" + first.AddDate(0, -back, 0).Format("200601") }
	for back := 1; back <= 3; back++ {
		month := first.AddDate(0, -back, 0)
		if err := d.writers.use(t.Context(), func(c *conn) error {
			return c.makePartition(t.Context(), partition{name(back), "payloads", month})
		}); err != nil {
			t.Fatal(err)
		}
	}
	old := pawl.NewID(pawl.TimeOf(first.AddDate(0, -3, 5)), 7)
	add := ledger.Rows{Payloads: []ledger.Payload{{ID: ledger.PayloadID{Owner: old, Kind: ledger.InputPayload}, Body: "kept"}}}
	save := func(rows ledger.Rows, batch uint64) {
		t.Helper()
		err := d.Update(t.Context(), pawl.NewID(pawl.TimeOf(time.Now()), batch), func(tx store.Tx) error { return tx.Save(&rows) })
		if err != nil {
			t.Fatal(err)
		}
	}
	exists := func(back int) (found bool) {
		t.Helper()
		err := d.each(t.Context(), "look", "SELECT 1 WHERE to_regclass($1::text) IS NOT NULL", []value{textValue(name(back))}, func([][]byte) error {
			found = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	expect := func(what string, want ...bool) {
		t.Helper()
		if err := d.dropPartitions(t.Context()); err != nil {
			t.Fatal(err)
		}
		for back, there := range want {
			if got := exists(back); got != there {
				t.Errorf("%s: the partition of %d months ago exists: %v", what, back, got)
			}
		}
	}
	save(add, 1)
	expect("with a row in the oldest", true, true, false, true)
	save(ledger.Rows{Removed: ledger.Removals{Payloads: []ledger.PayloadID{{Owner: old, Kind: ledger.InputPayload}}}}, 2)
	expect("with none", true, true, false, false)
	save(add, 3)
	got, err := d.Payloads(t.Context(), add.Payloads[0].ID)
	if err != nil || got[add.Payloads[0].ID] != "kept" {
		t.Errorf("what comes late for a dropped month reads %v, %v", got, err)
	}
}
