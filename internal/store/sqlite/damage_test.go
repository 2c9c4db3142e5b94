package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// forged is an id that sorts after all others.
const forged = "x'ffffffffffffffffffffffffffffffff'"

// of is the operation of a model, in SQL.
func of(model string) string { return "(SELECT id FROM operations WHERE model = '" + model + "')" }

// eventOf is an outbound event of an operation.
func eventOf(model, kind string) string {
	return "(SELECT id FROM events WHERE type = 'operation." + kind + "' AND operation = " + of(model) + ")"
}

// row is a row that the check must name: the prefix of its id and a query for
// the id, asked before the damage.
type row struct{ prefix, query string }

func operationRow(model string) row { return row{pawl.PrefixOperation, "SELECT " + of(model)} }
func eventRow(query string) row     { return row{pawl.PrefixEvent, "SELECT " + query} }

var (
	accountRow = row{pawl.PrefixAccount, "SELECT id FROM accounts"}
	allRow     = row{pawl.PrefixEndpoint, "SELECT id FROM endpoints WHERE types = '' AND kind = 1"}
)

func inserted(prefix string) row { return row{prefix, "SELECT " + forged} }

// damages are done by hand to a sound ledger. Each names every row that
// contradicts another one after it, and words of the rule that is broken.
var damages = []struct {
	name string
	sql  string
	rule string
	rows []row
}{
	{
		"two settlements",
		"INSERT INTO entries SELECT account, " + forged + ", tenant, operation, at, kind, from_bucket, to_bucket, amount, actor, note, correction FROM entries WHERE kind = 'charge' AND operation = " + of("settled"),
		"a reservation ends once", []row{inserted(pawl.PrefixEntry), operationRow("settled"), accountRow},
	},
	{
		"missing release",
		"DELETE FROM entries WHERE kind = 'release' AND operation = " + of("failed"),
		"a reservation ends once", []row{operationRow("failed"), accountRow},
	},
	{
		"version gap",
		"UPDATE events SET version = version + 1 WHERE id = " + eventOf("settled", "succeeded") + ";" +
			"UPDATE operations SET version = version + 1 WHERE model = 'settled'",
		"versions have no gaps", []row{eventRow(eventOf("settled", "succeeded"))},
	},
	{
		"version lost",
		"UPDATE operations SET version = version - 1 WHERE model = 'settled'",
		"versions have no gaps", []row{operationRow("settled")},
	},
	{
		"outbound event lost",
		"DELETE FROM events WHERE id = " + eventOf("settled", "running"),
		"versions have no gaps", []row{
			eventRow(eventOf("settled", "succeeded")),
			{pawl.PrefixDelivery, "SELECT id FROM deliveries WHERE event = " + eventOf("settled", "running")},
		},
	},
	{
		"event applied twice",
		"INSERT INTO history SELECT operation, at, " + forged + ", kind, verdict, reason, event, version, state, actor, detail, repeats, last_at FROM history WHERE kind = 'callback' AND operation = " + of("settled"),
		"an event changes an operation once", []row{eventRow("id FROM events WHERE external_id = 'end-settled'")},
	},
	{
		"event taken twice",
		"INSERT INTO events SELECT " + forged + ", direction, tenant, operation, type, at, source, task, external_id, word, verdict, reason, digest, headers, parked, review, rejudged_at, rejudged_verdict, rejudged_reason, rejudged_by, inbox, waiting, troubled, handled, nudged_at, reads, version, snapshot, result, traceparent, removed_at FROM events WHERE external_id = 'end-settled'",
		"an event changes an operation once", []row{inserted(pawl.PrefixEvent)},
	},
	{
		"sequence gap",
		"UPDATE deliveries SET sequence = sequence + 1 WHERE sequence = 3 AND endpoint IN (SELECT id FROM endpoints WHERE types = '' AND kind = 1)",
		"sequences have no gaps", []row{allRow},
	},
	{
		"second terminal state",
		"INSERT INTO events SELECT " + forged + ", direction, tenant, operation, 'operation.failed', at + 1, source, task, external_id, word, verdict, reason, digest, headers, parked, review, rejudged_at, rejudged_verdict, rejudged_reason, rejudged_by, inbox, waiting, troubled, handled, nudged_at, reads, version + 1, snapshot, result, traceparent, removed_at FROM events WHERE id = " + eventOf("settled", "succeeded") + ";" +
			"UPDATE operations SET version = version + 1 WHERE model = 'settled'",
		"an operation ends once", []row{inserted(pawl.PrefixEvent)},
	},
	{
		"another terminal state",
		"UPDATE operations SET state = 6 WHERE model = 'unmetered'",
		"an operation ends once", []row{operationRow("unmetered")},
	},
	{
		"state moved back",
		"UPDATE operations SET state = 3, due_at = 1 WHERE model = 'unmetered'",
		"an operation ends once", []row{operationRow("unmetered")},
	},
	{
		"forgotten operation",
		"UPDATE operations SET due_at = 9223372036854775807 WHERE model = 'called'",
		"something is due", []row{operationRow("called")},
	},
	{
		"charge above reservation",
		"UPDATE operations SET charged = reserved + 5 WHERE model = 'whole';" +
			"UPDATE entries SET amount = amount + 5 WHERE kind = 'charge' AND operation = " + of("whole") + ";" +
			"INSERT INTO entries SELECT account, " + forged + ", tenant, operation, at, 'adjustment', 'available', 'reserved', 5, actor, note, correction FROM entries WHERE kind = 'charge' AND operation = " + of("whole") + ";" +
			"UPDATE accounts SET charged = charged + 5",
		"no charge is above it", []row{operationRow("whole")},
	},
	{
		"delivery lost",
		"DELETE FROM deliveries WHERE sequence = 0 AND event = " + eventOf("running", "running"),
		"a delivery for each endpoint", []row{eventRow(eventOf("running", "running"))},
	},
	{
		"numbered delivery lost",
		"DELETE FROM deliveries WHERE sequence = 1 AND endpoint IN (SELECT id FROM endpoints WHERE types = '' AND kind = 1)",
		"a delivery for each endpoint", []row{eventRow(eventOf("settled", "running")), allRow},
	},
	{
		"delivery of a callback lost",
		"DELETE FROM deliveries WHERE endpoint IN (SELECT id FROM endpoints WHERE kind = 2)",
		"a delivery for each endpoint", []row{
			eventRow(eventOf("called", "running")), {pawl.PrefixEndpoint, "SELECT id FROM endpoints WHERE kind = 2"},
		},
	},
	{
		"delivery never due",
		"UPDATE deliveries SET due_at = 9223372036854775807 WHERE sequence = 0 AND event = " + eventOf("running", "running"),
		"a delivery for each endpoint", []row{{pawl.PrefixDelivery, "SELECT id FROM deliveries WHERE sequence = 0 AND event = " + eventOf("running", "running")}},
	},
	{
		"orphan with a known task",
		"UPDATE tasks SET operation = " + of("pending") + " WHERE task = 'task-nobody'",
		"a person is asked", []row{eventRow("id FROM events WHERE external_id = 'orphan'"), operationRow("pending")},
	},
	{
		"account differs from its journal",
		"UPDATE accounts SET credited = credited + 1",
		"the sums agree", []row{accountRow},
	},
	{
		"journal differs from a reservation",
		"UPDATE entries SET amount = amount + 1 WHERE kind = 'reserve' AND operation = " + of("running"),
		"the sums agree", []row{operationRow("running"), accountRow},
	},
	{
		"reservation differs from its journal",
		"UPDATE operations SET reserved = reserved + 1 WHERE model = 'running'",
		"the sums agree", []row{operationRow("running"), accountRow},
	},
	{
		"create without intention",
		"DELETE FROM history WHERE kind = 'create' AND operation = " + of("running"),
		"a create is recorded before it is sent", []row{operationRow("running")},
	},
	{
		"unconfirmed without intention",
		"DELETE FROM history WHERE kind = 'create' AND operation = " + of("unconfirmed"),
		"a create is recorded before it is sent", []row{operationRow("unconfirmed")},
	},
	{
		"task taken by another operation",
		"UPDATE tasks SET operation = " + of("called") + " WHERE task = 'task-running'",
		"an operation has one task", []row{operationRow("running"), operationRow("called")},
	},
	{
		"event without key",
		"DELETE FROM event_keys WHERE external_id = 'end-settled'",
		"keeps its key", []row{eventRow("id FROM events WHERE external_id = 'end-settled'")},
	},
	{
		"own event without key",
		"DELETE FROM event_keys WHERE external_id = 'own-1'",
		"keeps its key", []row{eventRow("id FROM events WHERE external_id = 'own-1'")},
	},
	{
		"inbound event lost",
		"DELETE FROM events WHERE external_id = 'end-settled'",
		"an event changes an operation once", []row{eventRow("id FROM events WHERE external_id = 'end-settled'")},
	},
	{
		"operation lost",
		"DELETE FROM operations WHERE model = 'running'",
		"", []row{operationRow("running"), accountRow},
	},
}

// TestCheckOfDamagedLedgers: the check names exactly the rows of a damage, and
// the rule in words.
func TestCheckOfDamagedLedgers(t *testing.T) {
	sound := t.TempDir()
	d, err := Open(t.Context(), sound, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("sound", func(t *testing.T) {
		wholeLedger(t, d)
		for _, v := range checked(t, d.Reader) {
			t.Error("false alarm:", v)
		}
	})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			dir := copied(t, sound)
			want := damage(t, dir, c.sql, c.rows)
			r, err := OpenReadOnly(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			found := checked(t, r)
			var named []string
			for _, v := range found {
				named = append(named, v.Row)
			}
			slices.Sort(named)
			if named = slices.Compact(named); !slices.Equal(named, want) {
				t.Errorf("named %v, want %v\n%v", named, want, found)
			}
			if !slices.ContainsFunc(found, func(v ledger.Violation) bool { return strings.Contains(v.Rule, c.rule) && v.Detail != "" }) {
				t.Errorf("no rule with %q in %v", c.rule, found)
			}
		})
	}
}

func checked(t testing.TB, facts store.Facts) (found []ledger.Violation) {
	t.Helper()
	sum, err := store.Check(context.Background(), facts, func(v ledger.Violation) error {
		found = append(found, v)
		return nil
	}, nil)
	if err != nil || sum.Operations == 0 || sum.Violations != len(found) {
		t.Fatalf("%+v, %v", sum, err)
	}
	return found
}

// copied is a folder with a copy of a closed ledger.
func copied(t testing.TB, from string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	content, err := os.ReadFile(filepath.Join(from, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// damage runs SQL on a closed ledger and returns the text ids of the rows, as
// they were before it, in order. Each statement must change something.
func damage(t testing.TB, dir, sql string, rows []row) (ids []string) {
	t.Helper()
	c, err := sqlite3.OpenFlags(filepath.Join(dir, fileName), sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, r := range rows {
		s, _, err := c.Prepare(r.query)
		if err != nil {
			t.Fatal(r.query, err)
		}
		for s.Step() {
			ids = append(ids, pawl.ID(s.ColumnRawBlob(0)).Text(r.prefix))
		}
		if err := s.Close(); err != nil {
			t.Fatal(r.query, err)
		}
	}
	for statement := range strings.SplitSeq(sql, ";") {
		if err := c.Exec(statement); err != nil || c.Changes() == 0 {
			t.Fatalf("%s: %d rows changed, %v", statement, c.Changes(), err)
		}
	}
	slices.Sort(ids)
	return ids
}
