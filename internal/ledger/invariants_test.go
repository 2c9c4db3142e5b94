package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestDamages: each of these hand-made damages is found, and its row named.
func TestDamages(t *testing.T) {
	up := upstream()
	whole := func() (*world, pawl.ID) {
		w := stage(t)
		op := w.running(up, "a", 10)
		o := obs("task-a", pawl.Succeeded)
		o.HasCost, o.Cost, o.CostText = true, 4, "4"
		w.event(up, op.ID, "e1", o)
		w.event(up, pawl.ID{}, "orphan", obs("task-x", pawl.Succeeded))
		w.tick(time.Second)
		w.do(LeaseDeliveries{Endpoint: hookID, Limit: 10, Timeout: time.Second})
		w.sound()
		return w, op.ID
	}
	entry := func(w *world, kind string) int {
		for i, e := range w.entries {
			if e.Kind == kind {
				return i
			}
		}
		t.Fatal("no entry " + kind)
		return 0
	}
	outbound := func(w *world, version int64) Event {
		return pick(w.events, func(e Event) bool { return e.Direction == Outbound && e.Version == version })[0]
	}
	inbound := func(w *world, id string) Event {
		return pick(w.events, func(e Event) bool { return e.ExternalID == id })[0]
	}
	again := pawl.NewID(start.Add(time.Hour), 77)
	opRow := func(id pawl.ID) string { return id.Text(pawl.PrefixOperation) }
	cases := map[string]func(w *world, id pawl.ID) string{
		"two settlements": func(w *world, id pawl.ID) string {
			e := w.entries[entry(w, "charge")]
			e.ID = again
			w.entries = append(w.entries, e)
			return again.Text(pawl.PrefixEntry)
		},
		"missing release": func(w *world, id pawl.ID) string {
			i := entry(w, "release")
			w.entries = append(w.entries[:i], w.entries[i+1:]...)
			return opRow(id)
		},
		"version gap": func(w *world, id pawl.ID) string {
			delete(w.events, outbound(w, 2).ID)
			return outbound(w, 3).ID.Text(pawl.PrefixEvent)
		},
		"event applied twice": func(w *world, id pawl.ID) string {
			for _, h := range w.history {
				if h.Kind == CallbackLine {
					w.history = append(w.history, h)
				}
			}
			return inbound(w, "e1").ID.Text(pawl.PrefixEvent)
		},
		"event taken twice": func(w *world, id pawl.ID) string {
			e := inbound(w, "e1")
			e.ID = again
			w.events[e.ID] = e
			return again.Text(pawl.PrefixEvent)
		},
		"sequence gap": func(w *world, id pawl.ID) string {
			for k, d := range w.deliveries {
				if d.Sequence == 1 {
					d.Sequence = 0
					w.deliveries[k] = d
				}
			}
			return hookID.Text(pawl.PrefixEndpoint)
		},
		"second terminal state": func(w *world, id pawl.ID) string {
			e := outbound(w, 3)
			e.ID, e.Version, e.At, e.Type = again, 4, e.At+1, pawl.TypeFailed
			w.events[e.ID] = e
			op := w.ops[id]
			op.Version = 4
			w.ops[id] = op
			return again.Text(pawl.PrefixEvent)
		},
		"charge above reservation": func(w *world, id pawl.ID) string {
			op := w.ops[id]
			op.Charged = op.Reserved + 1
			w.ops[id] = op
			return opRow(id)
		},
		"delivery lost": func(w *world, id pawl.ID) string {
			e := outbound(w, 3)
			for k, d := range w.deliveries {
				if d.Event == e.ID {
					delete(w.deliveries, k)
				}
			}
			return e.ID.Text(pawl.PrefixEvent)
		},
		"delivery never due": func(w *world, id pawl.ID) string {
			var row pawl.ID
			for k, d := range w.deliveries {
				d.DueAt = pawl.Never
				w.deliveries[k], row = d, k
			}
			return row.Text(pawl.PrefixDelivery)
		},
		"orphan with a known task": func(w *world, id pawl.ID) string {
			w.tasks[TaskID{"s", "task-x"}] = Task{ID: TaskID{"s", "task-x"}, Operation: id}
			return inbound(w, "orphan").ID.Text(pawl.PrefixEvent)
		},
		"sums differ": func(w *world, id pawl.ID) string {
			a := w.account()
			a.Credited++
			w.accounts[a.ID] = a
			return a.ID.Text(pawl.PrefixAccount)
		},
		"create without intention": func(w *world, id pawl.ID) string {
			var kept []History
			for _, h := range w.history {
				if h.Kind != CreateLine && h.Kind != CallbackLine {
					kept = append(kept, h)
				}
			}
			w.history = kept
			return opRow(id)
		},
		"event without key": func(w *world, id pawl.ID) string {
			delete(w.keys, EventKeyID{"s", "task-a", "e1"})
			return inbound(w, "e1").ID.Text(pawl.PrefixEvent)
		},
		"forgotten": func(w *world, id pawl.ID) string {
			op := w.ops[id]
			op.State, op.DueAt = pawl.Running, pawl.Never
			w.ops[id] = op
			return opRow(id)
		},
		"review closed behind its back": func(w *world, id pawl.ID) string {
			op := w.ops[id]
			op.Reviews = 1 << pawl.ReviewConflict
			w.ops[id] = op
			return opRow(id)
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			w, id := whole()
			row := damage(w, id)
			found := w.check()
			for _, v := range found {
				if v.Row == row && v.Rule != "" && v.Detail != "" {
					return
				}
			}
			t.Errorf("want %s named, found %v", row, found)
		})
	}
}

// TestLoose names each kind of row that hangs on nothing.
func TestLoose(t *testing.T) {
	id := pawl.NewID(start, 5)
	for name, c := range map[string]struct {
		facts LooseFacts
		row   string
	}{
		"task":     {LooseFacts{TasksWithoutOperation: []Task{{Operation: id}}}, id.Text("op")},
		"delivery": {LooseFacts{DeliveriesWithoutEvent: []Delivery{{ID: id}}}, id.Text("dlv")},
		"entry":    {LooseFacts{EntriesWithoutAccount: []Entry{{ID: id}}}, id.Text("ent")},
		"key":      {LooseFacts{KeysWithoutOperation: []IdempotencyKey{{Operation: id}}}, id.Text("op")},
	} {
		found := CheckLoose(c.facts)
		if len(found) != 1 || found[0].Row != c.row {
			t.Errorf("%s: %v, want %s", name, found, c.row)
		}
	}
}

// TestOwed: only what is certain is called lost.
func TestOwed(t *testing.T) {
	at := start.Add(1234567 * time.Microsecond)
	expect(t, "an id carries its moment", madeAt(pawl.NewID(at, ^uint64(0))), at)
	op := Operation{Tenant: tenant, Callback: pawl.NewID(start, 8)}
	e := Event{ID: pawl.NewID(at, 1), Type: pawl.TypeRunning}
	for name, c := range map[string]struct {
		ep   Endpoint
		want bool
	}{
		"lived":              {Endpoint{Kind: WebhookEndpoint, Tenant: tenant, CreatedAt: at - 1}, true},
		"of the same moment": {Endpoint{Kind: WebhookEndpoint, Tenant: tenant, CreatedAt: at}, false},
		"changed since":      {Endpoint{Kind: WebhookEndpoint, Tenant: tenant, CreatedAt: at - 9, UpdatedAt: at + 1}, false},
		"deleted before":     {Endpoint{Kind: WebhookEndpoint, Tenant: tenant, CreatedAt: at - 9, DeletedAt: at - 1}, false},
		"deleted after":      {Endpoint{Kind: WebhookEndpoint, Tenant: tenant, CreatedAt: at - 9, DeletedAt: at + 1}, true},
		"other types":        {Endpoint{Kind: WebhookEndpoint, Tenant: tenant, CreatedAt: at - 9, Types: pawl.TypeFailed}, false},
		"another tenant's":   {Endpoint{Kind: WebhookEndpoint, Tenant: "other", CreatedAt: at - 9}, false},
		"its callback":       {Endpoint{ID: op.Callback, Kind: CallbackEndpoint, CreatedAt: at - 9, UpdatedAt: at + 1}, true},
		"another's callback": {Endpoint{ID: pawl.NewID(start, 9), Kind: CallbackEndpoint, Tenant: tenant, CreatedAt: at - 9}, false},
	} {
		expect(t, name, owed(op, c.ep, e), c.want)
	}
}
