package memory_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// The database's clock is 200 ms ahead of the node's, and later behind it:
// leases, their answers and a callback right after the claim are judged by the
// database's clock alone, and all are taken (O-132).
func TestO132OneClockDecides(t *testing.T) {
	for _, ahead := range []time.Duration{200 * time.Millisecond, -200 * time.Millisecond} {
		s := memory.New(memory.Options{Now: func() pawl.Time { return pawl.TimeOf(time.Now().Add(ahead)) }})
		b := store.NewBatcher(s, store.Options{})
		run := func(c ledger.Command) ledger.Outcome {
			t.Helper()
			got := b.Run(t.Context(), c)[0]
			if got.Err != nil || got.Outcome.Err != nil {
				t.Fatalf("%T: %v, %v", c, got.Err, got.Outcome.Err)
			}
			return got.Outcome
		}
		up := ledger.Upstream{Name: "up", Callbacks: true, Reads: true, ReadFirst: time.Hour, ReadMax: time.Hour, ReadFactor: 1000, Timeout: time.Second, SubmitAttempts: 3, ParkOrphans: true, OrphanLimit: 10}
		deadline := pawl.TimeOf(time.Now().Add(time.Hour))
		run(ledger.EnsureTenant{Header: store.NewHeader(""), Name: "t"})
		op := run(ledger.Submit{Header: store.NewHeader(""), Tenant: "t", Key: "k", Window: time.Hour, Up: up, Model: "m", Input: "{}", Deadline: deadline}).Value.(ledger.Submitted).Operation
		leases := run(ledger.LeaseWork{Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.SubmitQueue, "up", "t"), Limit: 1, Up: up}).Value.([]ledger.Lease)
		if len(leases) != 1 {
			t.Fatalf("%s: %d leases of what was just submitted", ahead, len(leases))
		}
		out := run(ledger.RecordCreate{Header: store.NewHeader(""), Up: up, Operation: op.ID, Fence: leases[0].Fence, Outcome: ledger.CreateAccepted, Task: "task"})
		if out.Reason != "accepted" {
			t.Errorf("%s: the answer under a fresh lease is %q", ahead, out.Reason)
		}
		got := run(ledger.ReceiveEvent{Header: store.NewHeader(""), Up: up, Event: "e", Body: "{}", Obs: ledger.Observation{Task: "task", State: pawl.Succeeded, Word: "succeeded", Progress: -1, Result: "{}"}}).Value.(ledger.Received)
		if got.Verdict != pawl.Applied {
			t.Errorf("%s: a callback right after the claim is %s", ahead, got.Verdict)
		}
	}
}
