package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// commitName is what pgx calls the prepared commit: it names a statement after
// its text (pgx.Conn.Prepare).
var commitName = func() string {
	sum := sha256.Sum256([]byte(commitBatch))
	return "stmt_" + hex.EncodeToString(sum[:24])
}()

// count is a command that counts up, so that a second run shows.
type count struct{ source string }

// Head is a header of its own.
func (count) Head() ledger.Header { return store.NewHeader("") }

// Keys names the counted row.
func (c count) Keys(k *ledger.Keys) { k.Sources = append(k.Sources, c.source) }

// Decide counts.
func (c count) Decide(d *ledger.Draft) ledger.Outcome {
	row, _ := d.Sources.Get(c.source)
	row.Name = c.source
	row.Parked++
	d.Sources.Put(c.source, row)
	return ledger.Outcome{Reason: "counted"}
}

func countOf(t testing.TB, d *Driver, source string) int64 {
	t.Helper()
	return one(t, d, "SELECT coalesce(sum(parked), 0)::bigint FROM sources WHERE name = $1::text", textValue(source))
}

// TestLostAnswer: the connection is cut around the commit. Whatever became of
// it is found out before anything is run again, so no command is applied twice
// and none that was answered is missing.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cut    cut
		pooler bool
		rounds int
	}{
		"answer lost": {loseAnswer, false, *rounds}, "request lost": {loseRequest, false, *rounds / 4}, "answer lost before a pooler": {loseAnswer, true, *rounds / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.Database(t)
			if tc.pooler {
				database = pgtest.Pooled(t, database)
			}
			p, url := through(t, database)
			d := openTest(t, url)
			b := store.NewBatcher(d, store.Options{})
			for n := range tc.rounds {
				p.next.Store(int32(tc.cut))
				r := b.Run(context.Background(), count{"s"}, count{"s"})
				if r[0].Err != nil || r[1].Err != nil {
					t.Fatalf("round %d: %v, %v", n, r[0].Err, r[1].Err)
				}
			}
			if n := p.cuts.Load(); int(n) < tc.rounds {
				t.Errorf("%d commits were cut, want %d", n, tc.rounds)
			}
			p.next.Store(int32(pass))
			if got := countOf(t, d, "s"); got != int64(2*tc.rounds) {
				t.Errorf("counted %d, want %d", got, 2*tc.rounds)
			}
		})
	}
}

// TestLateCommit: what was found not to have happened cannot happen any more,
// even where the commit reaches the server after the question.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	p, url := through(t, pgtest.Database(t))
	d := openTest(t, url)
	b := store.NewBatcher(d, store.Options{Patience: 2 * time.Second})
	run(t, b, count{"warm"})
	p.next.Store(int32(late))
	done := make(chan store.Result, 1)
	go func() { done <- b.Run(context.Background(), count{"s"})[0] }()
	release := <-p.held
	// The transaction is open on the server, so the question waits for it.
	select {
	case r := <-done:
		t.Fatalf("answered while the first try could still be committed: %+v", r)
	case <-time.After(300 * time.Millisecond):
	}
	release()
	if r := <-done; r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := countOf(t, d, "s"); got != 1 {
		t.Errorf("counted %d, want 1", got)
	}
	// A batch that was asked for before it began is refused.
	lost := testID(7)
	if found, err := d.Committed(t.Context(), lost); err != nil || found {
		t.Fatal(found, err)
	}
	if err := d.Update(t.Context(), lost, func(store.Tx) error { return nil }); err == nil {
		t.Error("a batch that was declared lost was committed")
	}
}

// TestRestartOfTheServer: while PostgreSQL is down commands are refused, and
// after its return the driver goes on by itself within 5 s.
func TestRestartOfTheServer(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	d := openTest(t, s.URL())
	c := store.NewCommitter(d, store.Options{Patience: 2 * time.Second})
	defer c.Close()
	sure := 0
	do := func() error {
		_, err := c.Do(context.Background(), count{"s"})
		if err == nil {
			sure++
		}
		return err
	}
	for range 3 {
		for range 20 {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := do(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("with the server down: %v, want ErrUnavailable", err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		for do() != nil {
			if time.Since(back) > 5*time.Second {
				t.Fatal("not recovered 5 s after the server's return")
			}
		}
		if _, err := d.Ready(t.Context(), ledger.ReadQueue, "s", 1, 1); err != nil {
			t.Errorf("a read after the server's return: %v", err)
		}
	}
	if got := countOf(t, d, "s"); got != int64(sure) {
		t.Errorf("counted %d, want %d: those that were answered", got, sure)
	}
}

// TestO125FailureOnADeadTransaction: a statement that fails ends its
// transaction; the command that caused it is told the true error, all others of
// its batch are decided in transactions of their own, and nothing is left of
// the dead one.
func TestO125FailureOnADeadTransaction(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	execute(t, d, "ALTER TABLE sources ADD CONSTRAINT unlucky CHECK (name <> 'poison' OR parked <> 1)")
	b := store.NewBatcher(d, store.Options{})
	for range 20 {
		commands := make([]ledger.Command, 9)
		for i := range commands {
			commands[i] = count{fmt.Sprint("s", i)}
		}
		commands[4] = count{"poison"}
		for i, r := range b.Run(context.Background(), commands...) {
			if i != 4 && r.Err != nil {
				t.Fatalf("command %d: %v", i, r.Err)
			}
			if i == 4 && (!errors.Is(r.Err, store.ErrUnavailable) || !contains(r.Err, "23514")) {
				t.Fatalf("the poisoned command: %v, want its own error, SQLSTATE 23514", r.Err)
			}
		}
	}
	if got := countOf(t, d, "s3"); got != 20 {
		t.Errorf("counted %d beside the poison, want 20", got)
	}
	execute(t, d, "ALTER TABLE sources DROP CONSTRAINT unlucky")
	run(t, b, count{"poison"})
}

// TestFrozenNode: a node that stops in the middle of a batch, as under SIGSTOP,
// loses it and its locks, so that another goes on; what it had decided does not
// happen, and it works again when it wakes.
func TestFrozenNode(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	frozen, other := openTest(t, url), openTest(t, url)
	asleep, awake := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- frozen.Update(context.Background(), store.NewID(), func(tx store.Tx) error {
			rows := new(ledger.Rows)
			if err := tx.Load(&ledger.Keys{Sources: []string{"s"}}, rows); err != nil {
				return err
			}
			ledger.NewDraft(rows).Run(count{"s"}, 1)
			if err := tx.Save(rows); err != nil {
				return err
			}
			close(asleep)
			<-awake
			return nil
		})
	}()
	<-asleep
	began := time.Now()
	run(t, store.NewBatcher(other, store.Options{}), count{"s"})
	if waited := time.Since(began); waited > 8*time.Second {
		t.Errorf("waited %v for a node that is frozen", waited)
	}
	close(awake)
	var commit *store.CommitError
	if err := <-done; err == nil || errors.As(err, &commit) {
		t.Errorf("the frozen node's batch: %v, want a plain error", err)
	}
	run(t, store.NewBatcher(frozen, store.Options{}), count{"s"})
	if got := countOf(t, other, "s"); got != 2 {
		t.Errorf("counted %d, want 2", got)
	}
}
