package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// Generator makes one kind of command for the ledger as it is now.
type Generator struct {
	Name string
	// Make draws a command that carries live's header; nil where the kind has
	// nothing to do in this ledger.
	Make func(t *rapid.T, live Live) ledger.Command
	// Repeat names the tables that a second run right after the first may
	// change; "*" stands for all of them.
	Repeat []string
	// Panics says that the kind panics, as none of the ledger's may.
	Panics bool
	// Lawless says that the kind keeps none of the ledger's rules.
	Lawless bool
}

// Live is the reference ledger while a sequence is made.
type Live struct {
	store.Reader
	ledger.Header
}

// Decider decides commands in one batch over a driver. That of the suite is
// [store.Batcher].
type Decider func(ctx context.Context, d store.Driver, batch []ledger.Command) []store.Result

func decide(ctx context.Context, d store.Driver, batch []ledger.Command) []store.Result {
	return store.NewBatcher(d, store.Options{}).Run(ctx, batch...)
}

// enough is how long the suite makes sequences of one kind: a slow driver gets
// as many of rapid's checks as fit.
const enough = 10 * time.Second

// testCuts holds the property over the suite's own commands and over the
// ledger's.
func testCuts(t *testing.T, open Open) {
	t.Run("Plays", func(t *testing.T) { cuts(t, open, plays, enough) })
	t.Run("Ledger", func(t *testing.T) { cuts(t, open, Commands(), enough) })
}

// Cuts tests that any sequence of the commands keeps the ledger's rules and
// gives the same rows and answers however it is cut into batches, faults of the
// database included, and that each command run twice changes nothing the second
// time. The reference is a memory driver with one command a batch.
func Cuts(t *testing.T, open Open, generators []Generator) {
	cuts(t, open, generators, math.MaxInt64)
}

func cuts(t *testing.T, open Open, generators []Generator, limit time.Duration) {
	began, failed := time.Now(), false
	rapid.Check(t, func(rt *rapid.T) {
		// A failure is run again until it is small, however long that takes.
		if !failed && time.Since(began) > limit {
			return
		}
		if diff := cut(t, rt, open, decide, generators); diff != "" {
			failed = true
			rt.Fatal(diff)
		}
	})
}

// cut makes one sequence, runs it in one cut over the driver and says where
// that differs from the reference.
func cut(t *testing.T, rt *rapid.T, open Open, decide Decider, generators []Generator) string {
	ctx := t.Context()
	seq, wrong := drawSequence(ctx, rt, generators)
	if wrong != "" {
		return wrong
	}
	under := &faulty{Driver: open(t)}
	defer func() {
		if err := under.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	for from := 0; from < len(seq.commands); {
		to := min(len(seq.commands), from+rapid.IntRange(1, 9).Draw(rt, "batch"))
		under.next = fault(rapid.IntRange(0, int(lastFault)).Draw(rt, "fault"))
		if to-from == 1 && (under.next == failLoad || under.next == failSave) {
			// Alone in its batch a command would be refused for good.
			under.next = noFault
		}
		for i, r := range decide(ctx, under, seq.commands[from:to]) {
			if diff := seq.differs(from+i, r); diff != "" {
				return diff
			}
		}
		from = to
	}
	return seq.compare(ctx, under.Driver)
}

// Lanes tests that a sequence of commands gives the same rows and answers where
// several committers decide it over one driver, each command in its tenant's
// lane and answered before the next.
func Lanes(t *testing.T, open Open, generators []Generator) {
	began := time.Now()
	rapid.Check(t, func(rt *rapid.T) {
		if time.Since(began) > enough {
			return
		}
		ctx := t.Context()
		seq, wrong := drawSequence(ctx, rt, generators)
		if wrong != "" {
			rt.Fatal(wrong)
		}
		d := open(t)
		lanes := store.NewLanes(d, 3, store.Options{})
		defer func() {
			if err := errors.Join(lanes.Drain(ctx), d.Close()); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		for i, c := range seq.commands {
			out, err := lanes.Do(ctx, c)
			if diff := seq.differs(i, store.Result{Outcome: out, Err: err}); diff != "" {
				rt.Fatal(diff)
			}
		}
		if diff := seq.compare(ctx, d); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// drawSequence makes a sequence that keeps the rules in the reference, or says
// what it breaks there.
func drawSequence(ctx context.Context, rt *rapid.T, generators []Generator) (*sequence, string) {
	seq := newSequence()
	for range rapid.SampledFrom([]int{5, 20, 60}).Draw(rt, "steps") {
		if fault := seq.extend(ctx, rt, generators); fault != "" {
			return nil, fault
		}
	}
	return seq, seq.broken(ctx, seq.reference)
}

// differs says where a command's result is not that of the reference.
func (s *sequence) differs(n int, r store.Result) string {
	if r.Err != nil {
		return fmt.Sprintf("command %d: %v", n, r.Err)
	}
	if diff := cmp.Diff(plain(s.outcomes[n]), plain(r.Outcome), cmpopts.EquateEmpty()); diff != "" {
		return fmt.Sprintf("command %d, %T: outcome (-one by one +otherwise):\n%s", n, s.commands[n], diff)
	}
	return ""
}

// compare says where the rows of a driver are not those of the reference, or
// which rule they break.
func (s *sequence) compare(ctx context.Context, d store.Driver) string {
	want, err := dumped(ctx, s.reference, &s.known)
	got, err2 := dumped(ctx, d, &s.known)
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		return "rows (-one by one +otherwise):\n" + diff
	}
	return s.broken(ctx, d)
}

// sequence is commands in their order with what each came to in the reference.
type sequence struct {
	reference *memory.Store
	batcher   *store.Batcher
	known     known
	latest    *ledger.Rows
	now       pawl.Time
	commands  []ledger.Command
	outcomes  []ledger.Outcome
	// lawless is set by the first command that keeps none of the rules.
	lawless bool
}

// newSequence starts on an empty ledger.
func newSequence() *sequence {
	s := &sequence{reference: memory.New(memory.Options{}), now: epoch}
	s.batcher = store.NewBatcher(s.reference, store.Options{OnCommit: func(c store.Commit) {
		s.latest = c.Rows
		s.known.learn(c.Rows)
	}})
	return s
}

// extend makes a command, runs it in the reference, and perhaps once more.
func (s *sequence) extend(ctx context.Context, rt *rapid.T, generators []Generator) string {
	g := rapid.SampledFrom(generators).Draw(rt, "kind")
	s.now += pawl.Time(rapid.SampledFrom([]int64{0, 1, 1000, 1_000_000, 60_000_000, 3600_000_000}).Draw(rt, "later"))
	live := Live{Reader: s.reference, Header: ledger.Header{Now: s.now, Actor: "someone"}}
	live.Seed[0], live.Seed[1] = byte(len(s.commands)>>8), byte(len(s.commands))
	c := g.Make(rt, live)
	if c == nil {
		return ""
	}
	s.lawless = s.lawless || g.Lawless
	first := s.run(ctx, c)
	if first.Reason == "miss" || first.Reason == "panic" && !g.Panics {
		return fmt.Sprintf("%s failed by a fault of its own: %+v", g.Name, first.Value)
	}
	if !rapid.Bool().Draw(rt, "twice") {
		return ""
	}
	s.run(ctx, again(c))
	for _, c := range changes(s.latest) {
		if !slices.Contains(g.Repeat, c.table) && !slices.Contains(g.Repeat, "*") {
			return fmt.Sprintf("%s run twice changed %s the second time:\n%s", g.Name, c.table, c.detail)
		}
	}
	return ""
}

// broken names the first rule that the ledger breaks (3-architecture,
// "Simulation and proof"): equal rows may be wrong alike.
func (s *sequence) broken(ctx context.Context, facts store.Facts) (fault string) {
	if s.lawless {
		return ""
	}
	_, err := store.Check(ctx, facts, func(v ledger.Violation) error { return errors.New(v.String()) }, nil)
	if err != nil {
		return "check of the ledger: " + err.Error()
	}
	return ""
}

// again is the same command as somebody sends it a second time: with a seed of
// its own.
func again(c ledger.Command) ledger.Command {
	copied := reflect.New(reflect.TypeOf(c)).Elem()
	copied.Set(reflect.ValueOf(c))
	h := c.Head()
	h.Seed[2]++
	copied.FieldByName("Header").Set(reflect.ValueOf(h))
	return copied.Interface().(ledger.Command)
}

func (s *sequence) run(ctx context.Context, c ledger.Command) ledger.Outcome {
	r := s.batcher.Run(ctx, c)[0]
	if r.Err != nil {
		panic(r.Err)
	}
	s.commands, s.outcomes = append(s.commands, c), append(s.outcomes, r.Outcome)
	return r.Outcome
}

// plain is an outcome without what differs from run to run.
func plain(o ledger.Outcome) ledger.Outcome {
	if p, ok := o.Value.(ledger.Panic); ok {
		o.Value = p.Type
	}
	return o
}

// change is a table in which rows were changed or added, and one of them.
type change struct{ table, detail string }

func changes(r *ledger.Rows) (all []change) {
	note := func(table, detail string) {
		if detail != "" {
			all = append(all, change{table, detail})
		}
	}
	note("idempotency keys", changed(&r.IdempotencyKeys))
	note("event keys", changed(&r.EventKeys))
	note("tasks", changed(&r.Tasks))
	note("sources", changed(&r.Sources))
	note("unknown types", changed(&r.UnknownTypes))
	note("tenants", changed(&r.Tenants))
	note("api keys", changed(&r.APIKeys))
	note("wrapping keys", changed(&r.WrappingKeys))
	note("audit seals", changed(&r.AuditSeals))
	note("replays", changed(&r.Replays))
	note("operations", changed(&r.Operations))
	note("events", changed(&r.Events))
	note("reviews", changed(&r.Reviews))
	note("accounts", changed(&r.Accounts))
	note("endpoints", changed(&r.Endpoints))
	note("queues", changed(&r.Queues))
	note("deliveries", changed(&r.Deliveries))
	note("payloads", added(r.Payloads))
	note("history", added(r.History))
	note("entries", added(r.Entries))
	note("attempts", added(r.Attempts))
	note("audits", added(r.Audits))
	return all
}

func changed[K, R comparable](t *ledger.Table[K, R]) string {
	for _, c := range t.Changes() {
		return cmp.Diff(c.Was, c.Now)
	}
	return ""
}

func added[R any](rows []R) string {
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("%+v", rows[0])
}
