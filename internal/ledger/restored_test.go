package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestDoubtCreate: what a restored ledger holds as yet to be created may have
// been created since the backup. It is repeated where that is safe (1-product
// B2): the same key within its window, under the same credential.
func TestDoubtCreate(t *testing.T) {
	plain, safe := upstream(), idempotent()
	other := idempotent()
	other.Credential = [8]byte{2}
	for _, c := range []struct {
		name string
		up   Upstream
		// age is how old the backup is, the window being ten minutes.
		age  time.Duration
		next Action
	}{
		{"not idempotent", plain, time.Second, ActAdvance},
		{"idempotent", safe, time.Second, ActSubmit},
		{"idempotent, at the window's last moment", safe, 10*time.Minute - time.Microsecond, ActSubmit},
		{"idempotent, window over", safe, 10 * time.Minute, ActAdvance},
		{"idempotent, another credential", other, time.Second, ActAdvance},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := stage(t)
			op := w.submit(c.up, "a", 10)
			expect(t, "marked", w.do(DoubtCreate{Operation: op.ID, Since: w.now, Credential: safe.Credential}).Reason, "doubted")
			w.now = w.now.Add(c.age)
			w.lease(c.up, op.ID, c.next)
			if c.next == ActAdvance {
				w.do(Advance{Operation: op.ID, Fence: w.ops[op.ID].Lease, Up: c.up})
				expectState(t, "state", w.ops[op.ID], pawl.Unconfirmed)
				expect(t, "held", w.account().Reserved, 10)
			}
			w.sound()
		})
	}
}

// TestDoubtCreateLeavesTheRest: what is on record already is not doubted.
func TestDoubtCreateLeavesTheRest(t *testing.T) {
	up := upstream()
	w := stage(t)
	running := w.submit(up, "a", 0)
	w.create(up, running.ID, CreateAccepted, "task-a")
	flying := w.submit(up, "b", 0)
	w.lease(up, flying.ID, ActSubmit)
	hands := up
	hands.Name, hands.Adapter, hands.Worker = "hands", WorkerAdapter, true
	own := w.submit(hands, "c", 0)
	for what, id := range map[string]pawl.ID{"running": running.ID, "on the wire": flying.ID, "for an own worker": own.ID} {
		before := w.ops[id]
		expect(t, what, w.do(DoubtCreate{Operation: id, Since: w.now}).Reason, "unchanged")
		expect(t, what, w.ops[id], before)
	}
	expect(t, "nobody's", w.do(DoubtCreate{Operation: pawl.NewID(1, 1)}).Reason, "not_found")
	w.sound()
}
