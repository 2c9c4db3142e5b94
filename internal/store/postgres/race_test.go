package postgres

import (
	"context"
	testflag "flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// rounds is how often a race is run, and a commit's answer lost.
var rounds = testflag.Int("rounds", 400, "how often races are run")

// TestOrphanRace: a callback and the create's answer commit at the same time in
// two nodes, each in turn first. The later one sees the earlier, so the event is
// matched whichever it was (3-architecture, "The core").
func TestOrphanRace(t *testing.T) {
	t.Parallel()
	rounds := *rounds
	url := pgtest.Database(t)
	a, b := openTest(t, url), openTest(t, url)
	leases := prepare(t, a, rounds)
	for n, lease := range leases {
		accepted := ledger.RecordCreate{
			Header: store.NewHeader(""), Up: upstream, Operation: lease.Operation.ID, Fence: lease.Fence,
			Outcome: ledger.CreateAccepted, Task: fmt.Sprint("task ", n), Status: 200,
		}
		if n%2 == 0 {
			meet(t, a, b, accepted, callback(n))
		} else {
			meet(t, a, b, callback(n), accepted)
		}
		if t.Failed() {
			t.Fatalf("round %d", n)
		}
	}
	if n := one(t, a, "SELECT count(*) FROM operations WHERE state = $1::bigint AND task <> ''", intValue(pawl.Succeeded)); n != int64(rounds) {
		t.Errorf("%d operations were matched, want %d", n, rounds)
	}
	if n := one(t, a, "SELECT count(*) FROM events WHERE parked"); n != 0 {
		t.Errorf("%d orphans are stranded", n)
	}
	check(t, a)
}

// TestO121DuplicateCommittedJustBefore: two nodes make the same claim at once; one is first, and the
// other sees what it made (O-121: the first commits just before the other's
// insert, which on PostgreSQL must not be an error).
func TestO121DuplicateCommittedJustBefore(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := openTest(t, url), openTest(t, url)
	leases := prepare(t, a, 2)
	t.Run("idempotency key", func(t *testing.T) {
		first, second := meet(t, a, b, submission(10), submission(10))
		one, two := first.Value.(ledger.Submitted), second.Value.(ledger.Submitted)
		if one.Replayed || !two.Replayed || one.Operation.ID != two.Operation.ID {
			t.Errorf("replayed %v and %v, operations %v and %v", one.Replayed, two.Replayed, one.Operation.ID, two.Operation.ID)
		}
	})
	t.Run("event key", func(t *testing.T) {
		first, second := meet(t, a, b, callback(11), callback(11))
		one, two := first.Value.(ledger.Received), second.Value.(ledger.Received)
		if one.Verdict != pawl.Orphan || two.Verdict != pawl.Duplicate {
			t.Errorf("verdicts %v and %v, want orphan and duplicate", one.Verdict, two.Verdict)
		}
	})
	t.Run("task", func(t *testing.T) {
		accept := func(l ledger.Lease) ledger.Command {
			return ledger.RecordCreate{
				Header: store.NewHeader(""), Up: upstream, Operation: l.Operation.ID, Fence: l.Fence,
				Outcome: ledger.CreateAccepted, Task: "the same", Status: 200,
			}
		}
		meet(t, a, b, accept(leases[0]), accept(leases[1]))
		rows := new(ledger.Rows)
		task := ledger.TaskID{Upstream: upstream.Name, Task: "the same"}
		if err := a.Load(t.Context(), &ledger.Keys{Tasks: []ledger.TaskID{task}}, rows); err != nil {
			t.Fatal(err)
		}
		if got, _ := rows.Tasks.Get(task); got.Operation != leases[0].Operation.ID {
			t.Errorf("the task is of %v, want the first, %v", got.Operation, leases[0].Operation.ID)
		}
	})
	check(t, a)
}

// TestClaimsOfEveryTable: whatever absent row two nodes find at once, exactly
// one finds it absent.
func TestClaimsOfEveryTable(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	nodes := []*Driver{openTest(t, url), openTest(t, url)}
	before := deadlocks(t, nodes[0])
	const rounds = 200
	for n := range rounds {
		name := fmt.Sprint("n", n)
		id := testID(1000 + n)
		keys := ledger.Keys{
			IdempotencyKeys: []ledger.IdempotencyKeyID{{Tenant: "t", Value: name}}, Correlations: []ledger.CorrelationID{{Tenant: "t", Value: name}},
			EventKeys: []ledger.EventKeyID{{Source: "s", Event: name}}, Tasks: []ledger.TaskID{{Upstream: "s", Task: name}},
			Tenants: []string{name}, Sources: []string{name}, UnknownTypes: []ledger.UnknownTypesID{{Source: name, Tenant: "t"}}, WrappingKeys: []string{name}, AuditSeals: []int64{int64(1 + n)}, APIKeys: []pawl.ID{id},
			Budgets: []ledger.BudgetID{ledger.UpstreamBudgetID(name, "USD", 1)}, Endpoints: []pawl.ID{id},
			Queues: []ledger.QueueID{ledger.WorkQueueID(ledger.ReadQueue, name, "t")},
		}
		var group sync.WaitGroup
		var mu sync.Mutex
		made := map[string]int{}
		for i, d := range nodes {
			group.Go(func() {
				err := d.Update(context.Background(), store.NewID(), func(tx store.Tx) error {
					mine := map[string]int{}
					err := claim(tx, keys, mine)
					mu.Lock()
					defer mu.Unlock()
					for table := range mine {
						made[table]++
					}
					return err
				})
				if err != nil {
					t.Errorf("node %d: %v", i, err)
				}
			})
		}
		group.Wait()
		for table, n := range made {
			if n != 1 {
				t.Fatalf("%s: %d nodes made the row", table, n)
			}
		}
		if len(made) != 13 {
			t.Fatalf("claimed in %d tables, want 13", len(made))
		}
	}
	if after := deadlocks(t, nodes[0]); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
}

// claim makes each wanted row that is absent and notes its table.
func claim(tx store.Tx, keys ledger.Keys, made map[string]int) error {
	rows := new(ledger.Rows)
	var wanted ledger.Keys
	wanted.Merge(keys)
	if err := tx.Load(&wanted, rows); err != nil {
		return err
	}
	ledger.NewDraft(rows).Run(told(func(d *ledger.Draft) {
		claimOne(d, made, "idempotency_keys", &d.IdempotencyKeys, keys.IdempotencyKeys[0], ledger.IdempotencyKey{ID: keys.IdempotencyKeys[0], Operation: testID(1)})
		claimOne(d, made, "correlations", &d.Correlations, keys.Correlations[0], ledger.Correlation{ID: keys.Correlations[0], Operation: testID(1)})
		claimOne(d, made, "event_keys", &d.EventKeys, keys.EventKeys[0], ledger.EventKey{ID: keys.EventKeys[0]})
		claimOne(d, made, "tasks", &d.Tasks, keys.Tasks[0], ledger.Task{ID: keys.Tasks[0]})
		claimOne(d, made, "tenants", &d.Tenants, keys.Tenants[0], ledger.Tenant{Name: keys.Tenants[0]})
		claimOne(d, made, "sources", &d.Sources, keys.Sources[0], ledger.Source{Name: keys.Sources[0]})
		claimOne(d, made, "unknown_types", &d.UnknownTypes, keys.UnknownTypes[0], ledger.UnknownTypes{ID: keys.UnknownTypes[0]})
		claimOne(d, made, "wrapping_keys", &d.WrappingKeys, keys.WrappingKeys[0], ledger.WrappingKey{Name: keys.WrappingKeys[0]})
		claimOne(d, made, "audit_seals", &d.AuditSeals, keys.AuditSeals[0], ledger.AuditSeal{Number: keys.AuditSeals[0]})
		claimOne(d, made, "api_keys", &d.APIKeys, keys.APIKeys[0], ledger.APIKey{ID: keys.APIKeys[0]})
		claimOne(d, made, "budgets", &d.Budgets, keys.Budgets[0], ledger.Budget{ID: keys.Budgets[0]})
		claimOne(d, made, "endpoints", &d.Endpoints, keys.Endpoints[0], ledger.Endpoint{ID: keys.Endpoints[0]})
		claimOne(d, made, "queues", &d.Queues, keys.Queues[0], ledger.Queue{ID: keys.Queues[0]})
	}), 1)
	return tx.Save(rows)
}

func claimOne[K, R comparable](_ *ledger.Draft, made map[string]int, table string, v *ledger.View[K, R], k K, r R) {
	if _, there := v.Get(k); !there {
		v.Put(k, r)
		made[table]++
	}
}

// told is a command that does as it is told.
type told func(*ledger.Draft)

// Head is an empty header.
func (told) Head() ledger.Header { return ledger.Header{} }

// Keys names nothing.
func (told) Keys(*ledger.Keys) {}

// Decide does it.
func (s told) Decide(d *ledger.Draft) ledger.Outcome {
	s(d)
	return ledger.Outcome{}
}

// TestO120DedupeInOppositeOrders: two nodes take the same 200 events, one
// upwards and one downwards, in one statement each.
func TestO120DedupeInOppositeOrders(t *testing.T) {
	t.Parallel()
	const rounds, each = 250, 200
	url := pgtest.Database(t)
	nodes := []*Driver{openTest(t, url), openTest(t, url)}
	before := deadlocks(t, nodes[0])
	for n := range rounds {
		keys := make([]ledger.EventKeyID, each)
		for i := range keys {
			keys[i] = ledger.EventKeyID{Source: "s", Event: fmt.Sprintf("%d/%03d", n, i)}
		}
		var group sync.WaitGroup
		made := make([]int, len(nodes))
		for i, d := range nodes {
			mine := slices.Clone(keys)
			if i == 1 {
				slices.Reverse(mine)
			}
			group.Go(func() {
				err := d.Update(context.Background(), store.NewID(), func(tx store.Tx) error {
					rows := new(ledger.Rows)
					if err := tx.Load(&ledger.Keys{EventKeys: mine}, rows); err != nil {
						return err
					}
					ledger.NewDraft(rows).Run(told(func(d *ledger.Draft) {
						for _, k := range mine {
							if _, taken := d.EventKeys.Get(k); !taken {
								d.EventKeys.Put(k, ledger.EventKey{ID: k, Event: testID(n)})
								made[i]++
							}
						}
					}), 1)
					return tx.Save(rows)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if made[0]+made[1] != each {
			t.Fatalf("round %d: %v events were applied, want %d in all", n, made, each)
		}
	}
	if after := deadlocks(t, nodes[0]); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
}

// TestO128OneClockDecides: the machines of two nodes are five minutes ahead and
// behind. Neither takes over a living lease, and neither is late for what is
// due.
func TestO128OneClockDecides(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	machines := map[*Driver]func() time.Time{}
	for _, off := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		d := openTest(t, url)
		d.clock.machine = func() time.Time { return time.Now().Add(off) }
		machines[d] = d.clock.machine
	}
	for d, machine := range machines {
		b := store.NewBatcher(d, store.Options{})
		run(t, b, ledger.EnsureTenant{Header: store.NewHeader(""), Name: "acme", Currency: "USD", Opening: 1_000_000_000})
		ready := func() int {
			t.Helper()
			queues, err := d.Ready(t.Context(), ledger.SubmitQueue, upstream.Name, pawl.TimeOf(machine()), 9)
			if err != nil {
				t.Fatal(err)
			}
			return len(queues)
		}
		lease := ledger.LeaseWork{Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.SubmitQueue, upstream.Name, "acme"), Limit: 9, Up: upstream}
		op := run(t, b, submission(int(machine().Unix())))[0].Value.(ledger.Submitted).Operation
		if got := pawl.TimeOf(time.Now()).Sub(op.CreatedAt).Abs(); got > time.Minute {
			t.Errorf("decided %v off the database's clock", got)
		}
		if n := ready(); n != 1 {
			t.Errorf("%d queues are ready for what is due now, want 1", n)
		}
		if leases := run(t, b, lease)[0].Value.([]ledger.Lease); len(leases) != 1 || leases[0].Operation.ID != op.ID {
			t.Errorf("leased %+v, want what was just submitted", leases)
		}
		if n := ready(); n != 0 {
			t.Errorf("%d queues are ready while the lease lasts", n)
		}
		for other := range machines {
			if again := run(t, store.NewBatcher(other, store.Options{}), lease)[0].Value.([]ledger.Lease); len(again) != 0 {
				t.Errorf("a living lease was taken over: %+v", again)
			}
		}
	}
}

// TestO128ListsByOneClock: what waits too long is so by the database's clock: a
// node that is an hour ahead names neither an event that was just parked nor an
// operation whose deadline is to come; one that is an hour behind names both in time.
func TestO128ListsByOneClock(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	b := store.NewBatcher(d, store.Options{})
	run(t, b, ledger.EnsureTenant{Header: store.NewHeader(""), Name: "acme", Currency: "USD", Opening: 1_000_000_000})
	s := submission(1)
	s.Deadline = pawl.TimeOf(time.Now().Add(10 * time.Minute))
	run(t, b, s, callback(1))
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		d.clock.machine = func() time.Time { return time.Now().Add(off) }
		run(t, b, count{"s"}) // Whoever commits learns how far the clocks are apart.
		for after, want := range map[time.Duration]int{-time.Minute: 0, 11 * time.Minute: 1} {
			at := pawl.TimeOf(time.Now().Add(off + after))
			parked, err := d.Parked(t.Context(), at, 9)
			if err != nil || len(parked) != want {
				t.Errorf("clock off by %v, %v later: %d parked events, want %d; %v", off, after, len(parked), want, err)
			}
			late, err := d.Late(t.Context(), upstream.Name, at, 9)
			if err != nil || len(late) != want {
				t.Errorf("clock off by %v, %v later: %d late operations, want %d; %v", off, after, len(late), want, err)
			}
		}
	}
}
