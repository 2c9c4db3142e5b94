package ledger

import (
	"testing"

	"github.com/pawlhq/pawl"
)

// TestWindowOfRowsThatMoved: between being found and being locked rows of a
// window became due later or left the queue. What is known reaches no further
// than what was found, so the queue is due then at the latest: a row behind it
// was not seen.
func TestWindowOfRowsThatMoved(t *testing.T) {
	const now, limit = 100, 2
	queue := WorkQueueID(ReadQueue, "s", tenant)
	row := func(n uint64, at pawl.Time) Operation {
		return Operation{ID: pawl.NewID(1, n), DueAt: at, Queue: ReadQueue, Upstream: "s", Tenant: tenant, State: pawl.Running}
	}
	found := []Due{{10, row(1, 0).ID}, {20, row(2, 0).ID}, {30, row(3, 0).ID}}
	left := row(2, 20)
	left.Queue = SubmitQueue
	for name, tt := range map[string]struct {
		found []Due
		rows  []Operation
		leads []uint64
		next  pawl.Time
	}{
		"none moved":                  {found, []Operation{row(1, 10), row(2, 20), row(3, 30)}, []uint64{1, 2}, 30},
		"one beyond the last":         {found, []Operation{row(1, 10), row(2, 50), row(3, 30)}, []uint64{1, 3}, 30},
		"the last":                    {found, []Operation{row(1, 10), row(2, 20), row(3, 500)}, []uint64{1, 2}, 30},
		"all":                         {found, []Operation{row(1, 400), row(2, 400), row(3, 500)}, nil, 30},
		"one out of the queue":        {found, []Operation{row(1, 10), left, row(3, 30)}, []uint64{1, 3}, 30},
		"one due no more":             {found, []Operation{row(1, 10), row(2, pawl.Never), row(3, 30)}, []uint64{1, 3}, 30},
		"one in a window of them all": {found[:2], []Operation{row(1, 10), row(2, 400)}, []uint64{1}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			rows := new(Rows)
			w := Window{queue, limit}
			rows.DueWorkFound(w, tt.found, tt.rows)
			d := NewDraft(rows)
			d.Now = now
			got, next := d.dueWork(w)
			if len(got) != len(tt.leads) || next != tt.next {
				t.Fatalf("%d rows, next at %d; want %d, %d", len(got), next, len(tt.leads), tt.next)
			}
			for i, n := range tt.leads {
				if got[i].ID != pawl.NewID(1, n) {
					t.Errorf("row %d is %v, want %d", i, got[i].ID, n)
				}
			}
		})
	}
}
