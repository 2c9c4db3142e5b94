package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

var errBroken = errors.New("broken")

// sizes is an OnCommit that notes how many commands each commit held.
func sizes(into *[]int) func(store.Commit) {
	return func(c store.Commit) { *into = append(*into, c.Commands) }
}

func values(results []store.Result) (all []string) {
	for _, r := range results {
		switch {
		case r.Err != nil:
			all = append(all, "unavailable")
		case r.Outcome.Err != nil:
			all = append(all, r.Outcome.Reason)
		default:
			all = append(all, fmt.Sprint(r.Outcome.Value))
		}
	}
	return all
}

func want(t *testing.T, got []store.Result, values_ ...string) {
	t.Helper()
	if all := values(got); !slices.Equal(all, values_) {
		t.Fatalf("results are %v, want %v", all, values_)
	}
}

func TestBatchIsOneTransaction(t *testing.T) {
	m := memory.New(memory.Options{})
	var commits []int
	b := store.NewBatcher(m, store.Options{OnCommit: sizes(&commits)})
	want(t, b.Run(t.Context(), counter("a"), counter("b"), counter("a")), "1", "1", "2")
	if !slices.Equal(commits, []int{3}) {
		t.Errorf("commits held %v commands, want one of 3", commits)
	}
	if n := counted(t, m, "a"); n != 2 {
		t.Errorf("a is %d after two commands", n)
	}
}

func TestMissCutsTheBatch(t *testing.T) {
	m := memory.New(memory.Options{})
	var commits []int
	b := store.NewBatcher(m, store.Options{OnCommit: sizes(&commits)})
	want(t, b.Run(t.Context(), counter("a"), counter("a"), count("b"), counter("a")), "1", "2", "1", "3")
	if !slices.Equal(commits, []int{2, 2}) {
		t.Errorf("commits held %v commands, want 2 before the miss and 2 from it on", commits)
	}
}

func TestMissInFirstPlaceLearns(t *testing.T) {
	m := memory.New(memory.Options{})
	b := store.NewBatcher(m, store.Options{})
	want(t, b.Run(t.Context(), count("a"), counter("b")), "1", "1")
}

// lookups asks for n rows that it did not declare, one after the other.
func lookups(n int) command {
	return command{decide: func(d *ledger.Draft) ledger.Outcome {
		for i := range n {
			d.Sources.Get(fmt.Sprint(n, "-", i))
		}
		return ledger.Outcome{Value: n}
	}}
}

// alone is a command that says that it needs nothing of what follows from its
// operations.
type alone struct{ command }

func (alone) Alone() bool { return true }

// TestAloneUntilItMisses: nothing follows from the operations of a batch in which
// all commands want them alone. One that told wrongly is decided anew with all
// that follows, and so is a batch with one that never said so.
func TestAloneUntilItMisses(t *testing.T) {
	m := memory.New(memory.Options{})
	op := ledger.Operation{ID: pawl.NewID(1, 1), Tenant: "t", Upstream: "up", Account: pawl.NewID(1, 2)}
	see := func(account bool) command {
		return command{keys: ledger.Keys{Operations: []pawl.ID{op.ID}}, decide: func(d *ledger.Draft) ledger.Outcome {
			d.Operations.Get(op.ID)
			if account {
				d.Accounts.Get(op.Account)
			}
			return ledger.Outcome{Reason: "seen", Value: "seen"}
		}}
	}
	var loads []bool
	b := store.NewBatcher(spied{Store: m, load: func(k *ledger.Keys) bool {
		loads = append(loads, k.Alone)
		return true
	}}, store.Options{})
	want(t, b.Run(t.Context(), command{decide: func(d *ledger.Draft) ledger.Outcome {
		d.Operations.Put(op.ID, op)
		return ledger.Outcome{Value: "made"}
	}}), "made")
	for name, tt := range map[string]struct {
		batch []ledger.Command
		loads []bool
	}{
		"alone":               {[]ledger.Command{alone{see(false)}, alone{see(false)}}, []bool{true}},
		"told wrongly":        {[]ledger.Command{alone{see(true)}}, []bool{true, false}},
		"told wrongly, later": {[]ledger.Command{alone{see(false)}, alone{see(true)}}, []bool{true, false}},
		"beside one that did": {[]ledger.Command{alone{see(true)}, see(true)}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			loads = nil
			for _, r := range b.Run(t.Context(), tt.batch...) {
				if r.Err != nil || r.Outcome.Reason != "seen" {
					t.Errorf("%+v", r)
				}
			}
			if !slices.Equal(loads, tt.loads) {
				t.Errorf("loads were alone: %v, want %v", loads, tt.loads)
			}
		})
	}
}

func TestTooManyMisses(t *testing.T) {
	b := store.NewBatcher(memory.New(memory.Options{}), store.Options{})
	want(t, b.Run(t.Context(), lookups(9), lookups(8), counter("a")), "miss", "8", "1")
}

func TestMissOfWhatWasAskedFor(t *testing.T) {
	loads := 0
	d := spied{Store: memory.New(memory.Options{}), load: func(k *ledger.Keys) bool {
		loads++
		return !slices.Contains(k.Sources, "lost")
	}}
	b := store.NewBatcher(d, store.Options{})
	results := b.Run(t.Context(), counter("lost"), counter("a"))
	want(t, results, "miss", "1")
	if err := results[0].Outcome.Err; err.Kind != pawl.Internal || results[0].Outcome.Fate != ledger.Dropped {
		t.Errorf("outcome is %+v, want an internal error that leaves nothing", results[0].Outcome)
	}
	if loads != 2 {
		t.Errorf("loaded %d times, want once with the lost row and once without", loads)
	}
}

func TestPoisonHarmsNobodyElse(t *testing.T) {
	for _, at := range []int{0, 1, 6, 9} {
		m := memory.New(memory.Options{})
		d := spied{Store: m, save: func(r *ledger.Rows) error {
			if _, ok := r.Sources.Get("poison"); ok {
				return errBroken
			}
			return nil
		}}
		batch := make([]ledger.Command, 10)
		for i := range batch {
			batch[i] = counter("a")
		}
		batch[at] = counter("poison")
		for i, r := range store.NewBatcher(d, store.Options{}).Run(t.Context(), batch...) {
			if i == at && (!errors.Is(r.Err, store.ErrUnavailable) || !errors.Is(r.Err, errBroken)) {
				t.Errorf("poison at %d: error is %v", at, r.Err)
			}
			if i != at && r.Err != nil {
				t.Errorf("poison at %d: command %d failed with it: %v", at, i, r.Err)
			}
		}
		if n := counted(t, m, "a"); n != 9 {
			t.Errorf("poison at %d: %d commands took effect, want 9", at, n)
		}
	}
}

// failing fails a step the first n times.
func failing(at memory.Step, n int) func(memory.Step) error {
	return func(s memory.Step) error {
		if s == at && n > 0 {
			n--
			return errBroken
		}
		return nil
	}
}

func TestCommitOfUnknownOutcome(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func(memory.Step) error
		want  string
		count int64
	}{
		{"took effect", failing(memory.AfterCommit, 1), "1", 1},
		{"took no effect", failing(memory.BeforeCommit, 1), "1", 1},
		{"took no effect three times", failing(memory.BeforeCommit, 3), "1", 1},
		{"took no effect four times", failing(memory.BeforeCommit, 4), "unavailable", 0},
		{"took effect, told late", both(failing(memory.AfterCommit, 1), failing(memory.OnCommitted, 5)), "1", 1},
		{"took effect, never told", both(failing(memory.AfterCommit, 1), failing(memory.OnCommitted, 1e6)), "unavailable", 1},
		{"took no effect, never told", both(failing(memory.BeforeCommit, 1), failing(memory.OnCommitted, 1e6)), "unavailable", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m := memory.New(memory.Options{Fault: tc.fault})
				b := store.NewBatcher(m, store.Options{Patience: time.Minute})
				want(t, b.Run(t.Context(), counter("a")), tc.want)
				if n := counted(t, m, "a"); n != tc.count {
					t.Errorf("took effect %d times, want %d", n, tc.count)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("took %v, longer than the patience", took)
				}
			})
		})
	}
}

func both(a, b func(memory.Step) error) func(memory.Step) error {
	return func(s memory.Step) error { return errors.Join(a(s), b(s)) }
}

func TestUnknownCommitIsNotSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{Fault: both(failing(memory.AfterCommit, 1), failing(memory.OnCommitted, 1e6))})
		want(t, store.NewBatcher(m, store.Options{}).Run(t.Context(), counter("a"), counter("a")), "unavailable", "unavailable")
		if n := counted(t, m, "a"); n != 2 {
			t.Errorf("a is %d, want what the one transaction left", n)
		}
	})
}

func TestEndedContextStopsTries(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	d := spied{Store: memory.New(memory.Options{}), save: func(*ledger.Rows) error {
		tries++
		cancel()
		return errBroken
	}}
	want(t, store.NewBatcher(d, store.Options{}).Run(ctx, counter("a"), counter("b")), "unavailable", "unavailable")
	if tries != 1 {
		t.Errorf("%d tries after the context had ended", tries-1)
	}
}

func TestNowAlwaysRises(t *testing.T) {
	clock := []pawl.Time{100, 90, 120}
	m := memory.New(memory.Options{Now: func() pawl.Time {
		now := clock[0]
		clock = clock[1:]
		return now
	}})
	b := store.NewBatcher(m, store.Options{})
	moment := command{decide: func(d *ledger.Draft) ledger.Outcome { return ledger.Outcome{Value: int64(d.Now)} }}
	want(t, b.Run(t.Context(), moment, moment), "100", "101")
	want(t, b.Run(t.Context(), moment), "102")
	want(t, b.Run(t.Context(), moment), "120")
}

func TestPanicIsLoggedWithoutItsValue(t *testing.T) {
	var log bytes.Buffer
	b := store.NewBatcher(memory.New(memory.Options{}), store.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	careless := command{decide: func(*ledger.Draft) ledger.Outcome { panic("secret-of-a-tenant") }}
	want(t, b.Run(t.Context(), counter("a"), careless, counter("a")), "1", "panic", "2")
	if !strings.Contains(log.String(), "TestPanicIsLoggedWithoutItsValue") {
		t.Errorf("the log lacks the stack: %s", log.String())
	}
	if strings.Contains(log.String(), "secret-of-a-tenant") {
		t.Error("the log holds the panic's value")
	}
}
