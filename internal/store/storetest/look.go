package storetest

import (
	"slices"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// testLook holds that a list which may look at few rows at a time gives in all
// what one does that may look at everything, and that a page looks no further.
func testLook(t *testing.T, open Open) {
	p := newPair(t, open)
	p.put(t, func(d *ledger.Draft) {
		for n := 1; n <= 40; n++ {
			op := sample[ledger.Operation](n)
			op.ID, op.Tenant, op.Upstream, op.State = id(n), "t", "common", pawl.Succeeded
			if n == 3 || n == 4 || n == 29 {
				op.Upstream = "rare"
			}
			d.Operations.Put(op.ID, op)
			row := sample[ledger.Delivery](n)
			row.ID, row.Tenant, row.State, row.CreatedAt = id(n), "t", pawl.DeliveryDelivered, epoch
			if op.Upstream == "rare" {
				row.State = pawl.DeliverySkipped
			}
			d.Deliveries.Put(row.ID, row)
		}
	})
	var found []pawl.ID
	pages := 0
	for page := (store.Page{Limit: 2, Look: &store.Look{Most: 5}}); pages < 20; pages++ {
		rows, err := p.Operations(t.Context(), store.OperationFilter{Tenant: "t", Upstream: "rare"}, page)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, ids(rows, operationID)...)
		if page.After = page.Stop(len(rows)); len(rows) == page.Limit {
			page.After = rows[len(rows)-1].ID
		}
		if page.After.IsZero() {
			break
		}
	}
	same(t, "the rare operations", numbered(29, 4, 3), found)
	if _, all := p.Driver.(*memory.Store); !all && pages < 7 {
		t.Errorf("40 rows in steps of 5 took %d pages", pages)
	}
	found = nil
	for page := (store.Page{Limit: 2, Oldest: true, Look: &store.Look{Most: 5}}); ; {
		rows, err := p.Deliveries(t.Context(), store.DeliveryFilter{Tenant: "t", State: pawl.DeliverySkipped}, page)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, ids(rows, deliveryID)...)
		if page.After = page.Stop(len(rows)); len(rows) == page.Limit {
			page.After = rows[len(rows)-1].ID
		}
		if page.After.IsZero() {
			break
		}
	}
	same(t, "the rare deliveries", numbered(3, 4, 29), found)
}

// testStory holds what happened to an operation: the latest of each kind, before a
// moment, newest first.
func testStory(t *testing.T, open Open) {
	p := newPair(t, open)
	var logs ledger.Rows
	var want store.Story
	all := make([]ledger.Delivery, 4)
	for n := range all {
		all[n] = sample[ledger.Delivery](n + 1)
		all[n].ID, all[n].Operation, all[n].CreatedAt = id(n+1), id(1+(n+1)/4), epoch+pawl.Time(n+1)
	}
	want.Deliveries = slices.Clone(all[:3])
	p.put(t, func(d *ledger.Draft) {
		for _, row := range all {
			d.Deliveries.Put(row.ID, row)
		}
	})
	for n := 1; n <= 8; n++ {
		of := id(1 + n/7)
		h, e, a := sample[ledger.History](n), sample[ledger.Entry](n), sample[ledger.Attempt](n)
		h.Operation, h.At, h.ID, e.Operation, e.At, e.ID = of, epoch+pawl.Time(n), id(n), of, epoch+pawl.Time(n), id(n)
		a.Delivery, a.At, a.ID = id((n+1)/2), epoch+pawl.Time(n), id(n)
		logs.History, logs.Entries, logs.Attempts = append(logs.History, h), append(logs.Entries, e), append(logs.Attempts, a)
		if n < 7 {
			want.History, want.Entries, want.Attempts = append(want.History, h), append(want.Entries, e), append(want.Attempts, a)
		}
	}
	p.save(t, rows{logs: logs})
	slices.Reverse(want.Deliveries)
	slices.Reverse(want.History)
	slices.Reverse(want.Entries)
	slices.Reverse(want.Attempts)
	story := func(before pawl.Time, limit int) store.Story {
		got, err := p.Story(t.Context(), id(1), before, limit)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same(t, "everything", want, story(pawl.Never, 100))
	same(t, "the latest of each", store.Story{
		History: want.History[:2], Entries: want.Entries[:2], Deliveries: want.Deliveries[:2], Attempts: want.Attempts[:2],
	}, story(pawl.Never, 2))
	same(t, "before a moment", store.Story{
		History: want.History[3:], Entries: want.Entries[3:], Deliveries: want.Deliveries, Attempts: want.Attempts[3:],
	}, story(epoch+4, 100))
}

// testLate holds which operations are past their deadlines.
func testLate(t *testing.T, open Open) {
	p := newPair(t, open)
	p.put(t, func(d *ledger.Draft) {
		for n := 1; n <= 6; n++ {
			op := sample[ledger.Operation](n)
			op.ID, op.State, op.Upstream, op.Deadline = id(n), pawl.Pending, "up", epoch+pawl.Time(10-n)
			switch n {
			case 5:
				op.State = pawl.Running
			case 6:
				op.Upstream = "other"
			}
			d.Operations.Put(op.ID, op)
		}
	})
	for _, c := range []struct {
		by    pawl.Time
		limit int
		want  []pawl.ID
	}{{epoch, 9, nil}, {epoch + 7, 9, numbered(4, 3)}, {epoch + 9, 3, numbered(4, 3, 2)}, {epoch + 1000, 9, numbered(4, 3, 2, 1)}} {
		rows, err := p.Late(t.Context(), "up", c.by, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "late operations", c.want, ids(rows, operationID))
	}
}
