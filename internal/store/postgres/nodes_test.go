package postgres

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// TestNodes: whoever asks sees all nodes, by the database's clock and not by
// theirs; one that has not been heard of is silent, and forgotten after a day;
// one that has left is gone.
func TestNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := openTest(t, url), openTest(t, url)
	// The machine of the second is an hour ahead.
	b.clock.machine = func() time.Time { return time.Now().Add(time.Hour) }
	first := store.Node{ID: testID(1), Host: "one", Address: "http://127.0.0.1:1", Version: "v1", Lanes: 4, Waiting: 5, Creates: 6, Reads: 7, Deliveries: 8, Captures: 9}
	second := store.Node{ID: testID(2), Host: "two", Version: "v2", Draining: true}
	listed := func(d *Driver) []store.Node {
		t.Helper()
		nodes, err := d.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	began := pawl.TimeOf(time.Now())
	for _, err := range []error{a.Beat(t.Context(), first), b.Beat(t.Context(), second)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []*Driver{a, b} {
		got := listed(d)
		for i := range got {
			if at := got[i].SeenAt; at != got[i].StartedAt || at.Sub(began).Abs() > time.Minute || got[i].Silent() {
				t.Errorf("%s: started %v, seen %v, unheard for %v", got[i].Host, got[i].StartedAt, at, got[i].Unheard)
			}
			got[i].StartedAt, got[i].SeenAt, got[i].Unheard = 0, 0, 0
		}
		if !slices.Equal(got, []store.Node{first, second}) {
			t.Errorf("nodes are %+v", got)
		}
	}
	first.Draining, first.Creates = true, 0
	if err := a.Beat(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got := listed(b)[0]; !got.Draining || got.Creates != 0 || got.Reads != 7 || got.SeenAt <= got.StartedAt {
		t.Errorf("after another beat %+v", got)
	}
	execute(t, a, "UPDATE nodes SET seen_at = clock_timestamp() - interval '31 seconds' WHERE host = 'two'")
	if got := listed(a); got[0].Silent() || !got[1].Silent() {
		t.Errorf("silent after 31 s: %+v", got)
	}
	if err := a.forgetNodes(t.Context()); err != nil || len(listed(a)) != 2 {
		t.Errorf("forgotten after 31 s: %v", err)
	}
	execute(t, a, "UPDATE nodes SET seen_at = clock_timestamp() - interval '25 hours' WHERE host = 'two'")
	if err := a.forgetNodes(t.Context()); err != nil || len(listed(a)) != 1 {
		t.Errorf("not forgotten after 25 h: %v", err)
	}
	if err := a.Leave(t.Context(), first.ID); err != nil || len(listed(b)) != 0 {
		t.Errorf("still there after it left: %v", err)
	}
}

// TestHotTablesAreVacuumedEarly: the tables that are written again and again
// leave room on their pages and are vacuumed long before a fifth of their rows
// are dead, PostgreSQL's own limit.
func TestHotTablesAreVacuumedEarly(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	// What batches only ever add to, and what is of the migrations.
	grow := []string{"payloads", "history", "attempts", "entries", "audits", "batches", "events", "reviews", "endpoints", "wrapping_keys", "audit_seals", "goose_db_version", "goose_lock", "copies"}
	seen := 0
	err := d.each(t.Context(), "ask", `SELECT relname::text, coalesce(array_to_string(reloptions, ' '), '') FROM pg_class
		WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition`, nil, func(row [][]byte) error {
		name, options := fromText(row[0]), fromText(row[1])
		if slices.Contains(grow, name) {
			return nil
		}
		seen++
		if !strings.Contains(options, "fillfactor=") || !strings.Contains(options, "autovacuum_vacuum_scale_factor=0") {
			t.Errorf("%s: %q", name, options)
		}
		return nil
	})
	if err != nil || seen < 15 {
		t.Errorf("%d tables, %v", seen, err)
	}
}
