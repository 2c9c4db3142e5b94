package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// running prepares n operations that the provider works on. They are due again
// and again, as the upstream is read.
func running(t testing.TB, d *Driver, up ledger.Upstream, n int) []ledger.Lease {
	t.Helper()
	leases := prepare(t, d, n)
	var accepted []ledger.Command
	for n, l := range leases {
		accepted = append(accepted, ledger.RecordCreate{
			Header: store.NewHeader(""), Up: up, Operation: l.Operation.ID, Fence: l.Fence,
			Outcome: ledger.CreateAccepted, Task: fmt.Sprint("task ", n), Status: 200,
		})
	}
	run(t, store.NewBatcher(d, store.Options{Patience: time.Minute}), accepted...)
	return leases
}

// progressing is an event of the n-th task that tells how far work is.
func progressing(up ledger.Upstream, n, progress int) ledger.ReceiveEvent {
	e := callback(n)
	e.Up, e.Event, e.Body = up, fmt.Sprint("progress ", n, " ", progress), "body"
	e.Obs.State, e.Obs.Word, e.Obs.Progress, e.Obs.Result = pawl.Running, "busy", int32(progress), ""
	return e
}

// TestProgressWaitsForNobody: somebody holds every row that a tenant's
// operations share. Events that only tell how work goes on are taken
// nevertheless, and an end is not: it books money.
func TestProgressWaitsForNobody(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	d := openTest(t, url)
	running(t, d, upstream, 2)
	b := store.NewBatcher(d, store.Options{Patience: time.Minute})
	run(t, b, ledger.CreateEndpoint{Header: store.NewHeader(""), Endpoint: ledger.Endpoint{
		ID: testID(50), Tenant: "acme", URL: "https://receiver.example", Scheme: "standard-webhooks",
	}})
	other, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	// A source that counts nothing has no row: who wants to lock it makes one.
	for _, statement := range []string{"BEGIN", "INSERT INTO sources (name) VALUES ('studio')"} {
		if _, err := other.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"tenants", "queues", "tasks", "accounts", "endpoints", "endpoint_sets"} {
		if _, err := other.Exec(t.Context(), "SELECT 1 FROM "+table+" FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
	}
	for _, progress := range []int{100, 200} {
		out := run(t, b, progressing(upstream, 0, progress), progressing(upstream, 1, progress))
		for _, o := range out {
			if got := o.Value.(ledger.Received).Verdict; got != pawl.Applied {
				t.Errorf("verdict %v, want applied", got)
			}
		}
	}
	ended := make(chan store.Result, 1)
	go func() { ended <- store.NewBatcher(d, store.Options{}).Run(context.Background(), callback(0))[0] }()
	awaitLockWait(t, d)
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.Err != nil || r.Outcome.Value.(ledger.Received).Verdict != pawl.Applied {
		t.Errorf("the end: %+v", r)
	}
	check(t, d)
}

// awaitLockWait returns once some transaction of the database waits for a lock.
func awaitLockWait(t *testing.T, d *Driver) {
	t.Helper()
	for one(t, d, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0 {
		time.Sleep(5 * time.Millisecond)
	}
}

// TestWindowMeetsProgress: an event has put off the earliest operation of a
// queue, and is not committed while somebody leases from that queue. The lease
// waits for it, takes what there is, and the queue is ready in time for the rest.
func TestWindowMeetsProgress(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := openTest(t, url), openTest(t, url)
	running(t, a, upstream, 4)
	earliest := one(t, a, "SELECT substr(task, 6)::bigint FROM operations ORDER BY due_at, id LIMIT 1")
	lease := ledger.LeaseWork{Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.ReadQueue, upstream.Name, "acme"), Limit: 1, Up: upstream}
	leased := make(chan store.Result, 1)
	event := progressing(upstream, int(earliest), 100)
	err := a.Update(t.Context(), store.NewID(), func(tx store.Tx) error {
		keys, rows := ledger.Keys{Alone: event.Alone()}, new(ledger.Rows)
		event.Keys(&keys)
		if err := tx.Load(&keys, rows); err != nil {
			return err
		}
		if out, miss := ledger.NewDraft(rows).Run(event, tx.Now()); miss != nil || out.Reason != "progress" {
			t.Errorf("%+v, misses %+v", out, miss)
		}
		if err := tx.Save(rows); err != nil {
			return err
		}
		go func() {
			leased <- store.NewBatcher(b, store.Options{Patience: time.Minute}).Run(context.Background(), lease)[0]
		}()
		awaitLockWait(t, a)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := <-leased; r.Err != nil || r.Outcome.Reason != "leased" {
		t.Fatalf("%+v", r)
	}
	inTime(t, a)
	late := one(t, a, "SELECT count(*) FROM queues q WHERE kind = 2 AND next_due > (SELECT min(due_at) FROM operations)")
	if still := one(t, a, "SELECT substr(task, 6)::bigint FROM operations ORDER BY due_at, id LIMIT 1"); late != 0 || still == earliest {
		t.Errorf("%d queues are ready too late; task %d is due first, as before the event: %v", late, still, still == earliest)
	}
	check(t, a)
}

func inTime(t *testing.T, d *Driver) {
	t.Helper()
	if queues, err := d.Misqueued(t.Context(), 10); err != nil || len(queues) > 0 {
		t.Errorf("queues that would be ready too late: %+v, %v", queues, err)
	}
}

// TestQueuesAreReadyInTime: operations are put off by events while leases are
// taken and handed back from small windows of their queue, by two nodes at once.
// In no snapshot is the queue ready later than an operation of it is due, nothing
// waits in a circle, and each command is answered.
func TestQueuesAreReadyInTime(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	nodes := []*Driver{openTest(t, url), openTest(t, url)}
	up := upstream
	up.ReadFirst, up.ReadMax, up.ReadFactor = 20*time.Millisecond, 20*time.Millisecond, 1000
	const operations, callers = 40, 6
	running(t, nodes[0], up, operations)
	before := deadlocks(t, nodes[0])
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for i, d := range nodes {
		c := newCrossed(t, d, store.Options{})
		do := func(command ledger.Command) any {
			out, err := c.Do(context.WithoutCancel(ctx), command)
			if err != nil || out.Err != nil {
				t.Errorf("%T: %v, %v", command, err, out.Err)
				cancel()
			}
			return out.Value
		}
		for caller := range callers {
			group.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					do(progressing(up, rand.IntN(operations), n<<8|caller<<4|i))
				}
			})
		}
		group.Go(func() {
			for ctx.Err() == nil {
				leases, _ := do(ledger.LeaseWork{
					Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.ReadQueue, up.Name, "acme"), Limit: 1 + rand.IntN(5), Up: up,
				}).([]ledger.Lease)
				for _, l := range leases {
					do(ledger.ReleaseLease{Header: store.NewHeader(""), Operation: l.Operation.ID, Fence: l.Fence})
				}
			}
		})
	}
	for ctx.Err() == nil && !t.Failed() {
		inTime(t, nodes[0])
	}
	cancel()
	group.Wait()
	inTime(t, nodes[0])
	if after := deadlocks(t, nodes[0]); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
	check(t, nodes[0])
}
