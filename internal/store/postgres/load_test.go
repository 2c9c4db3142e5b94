package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

// TestTwoNodesUnderLoad: two nodes take every kind of command at once, over few
// tenants, upstreams, tasks and endpoints, so that everything is hot. No
// statement fails, no deadlock arises, and the ledger keeps its rules.
func TestTwoNodesUnderLoad(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	nodes := []*Driver{openTest(t, url), openTest(t, url)}
	before := deadlocks(t, nodes[0])
	var generators []storetest.Generator
	for _, g := range storetest.Commands() {
		if !g.Panics && !g.Lawless {
			generators = append(generators, g)
		}
	}
	var log logged
	var done atomic.Int64
	var group sync.WaitGroup
	const callers, each = 6, 250
	for _, d := range nodes {
		c := newCrossed(t, d, store.Options{Log: log.logger()})
		for caller := range callers {
			group.Go(func() {
				dice := rand.New(rand.NewPCG(uint64(caller), uint64(len(generators))))
				for range each {
					g := generators[dice.IntN(len(generators))]
					live := storetest.Live{Reader: d, Header: store.NewHeader("someone")}
					command := rapid.Custom(func(t *rapid.T) *ledger.Command {
						rapid.Bool().Draw(t, "something")
						made := g.Make(t, live)
						return &made
					}).Example(int(dice.Int32()))
					if *command == nil {
						continue
					}
					if _, err := c.Do(context.Background(), *command); err != nil {
						t.Errorf("%s: %v", g.Name, err)
						return
					}
					done.Add(1)
				}
			})
		}
	}
	group.Wait()
	if after := deadlocks(t, nodes[0]); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
	if text := log.String(); text != "" {
		t.Errorf("the log says:\n%.2000s", text)
	}
	if n := done.Load(); n < callers*each/2 {
		t.Errorf("only %d commands were decided", n)
	}
	check(t, nodes[0])
	queues, err := nodes[0].Misqueued(t.Context(), 10)
	if err != nil || len(queues) > 0 {
		t.Errorf("queues that would be woken too late: %v, %v", queues, err)
	}
}

// crossed are the lanes of a node, each command in one at random: worse than
// lanes by tenant ever are.
type crossed []*store.Committer

func newCrossed(t *testing.T, d *Driver, o store.Options) (lanes crossed) {
	for range 3 {
		c := store.NewCommitter(d, o)
		t.Cleanup(func() { _ = c.Close() })
		lanes = append(lanes, c)
	}
	return lanes
}

func (l crossed) Do(ctx context.Context, c ledger.Command) (ledger.Outcome, error) {
	return l[rand.IntN(len(l))].Do(ctx, c)
}

// TestHotRows: many events on few operations and one account, from two nodes of
// several lanes each. No transaction is refused for another's sake, as the
// database's own log says too.
func TestHotRows(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	url := server.URL()
	nodes := []*Driver{openTest(t, url), openTest(t, url)}
	leases := prepare(t, nodes[0], 10)
	before := deadlocks(t, nodes[0])
	var accepted []ledger.Command
	for n, l := range leases {
		accepted = append(accepted, ledger.RecordCreate{
			Header: store.NewHeader(""), Up: upstream, Operation: l.Operation.ID, Fence: l.Fence,
			Outcome: ledger.CreateAccepted, Task: fmt.Sprint("task ", n), Status: 200,
		})
	}
	run(t, store.NewBatcher(nodes[0], store.Options{}), accepted...)
	var group sync.WaitGroup
	const callers, each = 32, 50
	for i, d := range nodes {
		c := newCrossed(t, d, store.Options{})
		for caller := range callers {
			group.Go(func() {
				for n := range each {
					e := callback(n % len(leases))
					e.Event = fmt.Sprint(i, caller, n)
					e.Obs.State, e.Obs.Progress, e.Obs.Word, e.Obs.Result = pawl.Running, int32(n), "busy", ""
					if n == each-1 {
						e = callback((n + caller) % len(leases))
					}
					var command ledger.Command = e
					if n%10 == 3 {
						command = submission(1000 + caller*each + n) // the other node submits the same
					}
					if _, err := c.Do(context.Background(), command); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	if after := deadlocks(t, nodes[0]); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
	for line := range strings.Lines(server.Log()) {
		if strings.Contains(line, "40P01") || strings.Contains(line, "40001") {
			t.Errorf("the server's log: %s", line)
		}
	}
	if n := one(t, nodes[0], "SELECT count(*) FROM operations WHERE state = $1::bigint", intValue(pawl.Succeeded)); n != int64(len(leases)) {
		t.Errorf("%d operations succeeded, want %d", n, len(leases))
	}
	if n := one(t, nodes[0], "SELECT count(*) FROM operations"); n != int64(len(leases)+callers*each/10) {
		t.Errorf("%d operations, want %d: each key made one", n, len(leases)+callers*each/10)
	}
	check(t, nodes[0])
}

// TestO119OldTransactionHoldsBackVacuum: a snapshot that somebody holds is named
// as the cause, what is due is claimed meanwhile, and when the snapshot ends the
// dead rows go.
func TestO119OldTransactionHoldsBackVacuum(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	d, other := openTest(t, url), openTest(t, url)
	b := store.NewBatcher(d, store.Options{})
	run(t, b, count{"s"})
	h, err := d.Hindrance(t.Context())
	if err != nil || h.Age >= time.Second {
		t.Fatalf("with nothing open: %+v, %v", h, err)
	}
	err = other.read(t.Context(), "hold", func(c *conn) error {
		if err := c.exec(t.Context(), "SELECT count(*) FROM sources"); err != nil {
			return err
		}
		for range 300 {
			run(t, b, count{"s"})
		}
		time.Sleep(1100 * time.Millisecond)
		h, err := d.Hindrance(t.Context())
		if err != nil || h.Age < time.Second || !contains(fmt.Errorf("%s", h.Who), "program pawl") {
			t.Errorf("with a snapshot held: %+v, %v", h, err)
		}
		execute(t, d, "VACUUM sources")
		if n := deadIn(t, d); n < 300 {
			t.Errorf("%d dead rows are left by a vacuum under the snapshot, want 300 or more", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	execute(t, d, "VACUUM sources")
	if n := deadIn(t, d); n > 10 {
		t.Errorf("%d dead rows are left after the snapshot ended", n)
	}
	if h, err := d.Hindrance(t.Context()); err != nil || h.Age >= time.Second {
		t.Errorf("after the snapshot ended: %+v, %v", h, err)
	}
}

// deadIn are the dead rows of the table of sources as the last vacuum left them.
func deadIn(t testing.TB, d *Driver) int64 {
	time.Sleep(1100 * time.Millisecond)
	return one(t, d, "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'sources'")
}
