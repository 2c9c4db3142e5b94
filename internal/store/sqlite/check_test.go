package sqlite

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// manyOperations fills a ledger with n operations that have succeeded.
func manyOperations(t *testing.T, d store.Driver, n int) {
	b := store.NewBatcher(d, store.Options{})
	run := func(commands ...ledger.Command) (outs []ledger.Outcome) {
		for _, r := range b.Run(t.Context(), commands...) {
			if r.Err != nil || r.Outcome.Err != nil {
				t.Fatal(r.Err, r.Outcome.Err)
			}
			outs = append(outs, r.Outcome)
		}
		return outs
	}
	run(
		ledger.EnsureTenant{Header: rushHead(), Name: rushTenant(0), Currency: "USD", Opening: 1e15},
		ledger.CreateEndpoint{Header: rushHead(), Endpoint: ledger.Endpoint{ID: testID(1), Tenant: rushTenant(0), URL: "https://example.com/hook", Scheme: "standard"}},
	)
	const batch = 200
	for from := 0; from < n; from += batch {
		var submits, records []ledger.Command
		for i := from; i < from+batch; i++ {
			submits = append(submits, ledger.Submit{
				Header: rushHead(), Tenant: rushTenant(0), APIKey: testID(1), Key: fmt.Sprint(i), Window: time.Hour, Up: rushUpstream, Model: "m", Input: "{}",
				Deadline: pawl.TimeOf(time.Now().Add(time.Hour)), Metered: true, Price: pawl.Money{Amount: 3, Currency: "USD"},
			})
		}
		run(submits...)
		lease := run(ledger.LeaseWork{Header: rushHead(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, rushUpstream.Name, rushTenant(0)), Limit: batch, Up: rushUpstream})
		for _, l := range lease[0].Value.([]ledger.Lease) {
			o := ledger.Observation{Task: rushTask(l.Operation.ID), State: pawl.Succeeded, Word: "done", Progress: -1, Result: "{}"}
			records = append(records,
				ledger.RecordCreate{Header: rushHead(), Up: rushUpstream, Operation: l.Operation.ID, Fence: l.Fence, Outcome: ledger.CreateAccepted, Task: o.Task},
				ledger.ReceiveEvent{Header: rushHead(), Up: rushUpstream, Event: "end", Type: "task.updated", Obs: o, Body: "{}"})
		}
		run(records...)
	}
}

// TestCheckIsBounded: what the check holds in memory does not grow with the
// ledger.
func TestCheckIsBounded(t *testing.T) {
	d := openTest(t, Options{})
	const n = 600
	manyOperations(t, d, n)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	most, began := before, time.Now()
	sum, err := store.Check(t.Context(), d, func(v ledger.Violation) error {
		t.Error("false alarm:", v)
		return nil
	}, func(int) { most = max(most, live()) })
	if err != nil || sum.Operations != n {
		t.Fatalf("%+v, %v", sum, err)
	}
	t.Logf("%d operations in %s, %d KB held", sum.Operations, time.Since(began), (most-before)>>10)
	// A third of the operations, with all that hangs on them, takes 1.1 MB.
	if held := most - before; held > 2<<20 {
		t.Errorf("the check held %d bytes", held)
	}
}
